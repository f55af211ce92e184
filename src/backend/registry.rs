//! Kernels of others, plugged in while the program runs: a vendor's matrix product, an optimizer's update in C.
//!
//! What is registered holds for the whole process, from the next operation on, in every front end. A backend of one's own
//! ([`Backend`](super::Backend)) is the way without a registry: it is a type, chosen when the program is compiled.

use std::any::{Any, TypeId};
use std::boxed::Box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};
use std::vec::Vec;

use super::{Backend, Matrix, Real, Start};
use crate::optim::{Group, Optimizer};

/// A matrix product, as [`Backend::matmul`]: the sizes `m`, `n`, `k`; both operands; the result, of which a row starts so many
/// elements behind the one before; and whether it is written or added to. The operands and the result are as large as the
/// sizes say.
pub type MatmulKernel<E> = fn([usize; 3], Matrix<'_, E>, Matrix<'_, E>, &mut [E], usize, Start);

/// An optimizer's update of a run of parameters of one group, as [`Optimizer::update`].
pub type UpdateKernel<B, O> = fn(
    &<O as Optimizer<B>>::Coefficients,
    &Group<<B as Backend>::Elem>,
    &mut [<B as Backend>::Elem],
    &[<B as Backend>::Elem],
    [&mut [<B as Backend>::Elem]; 3],
);

/// Kernels by their type, which names the backend and the optimizer, too.
struct Registry {
    /// Whether there are any: nobody else pays for more than a look at it.
    is_used: AtomicBool,
    kernels: RwLock<Vec<(TypeId, Box<dyn Any + Send + Sync>)>>,
}

static KERNELS: Registry = Registry { is_used: AtomicBool::new(false), kernels: RwLock::new(Vec::new()) };

impl Registry {
    fn set<K: Copy + Send + Sync + 'static>(&self, kernel: Option<K>) -> Option<K> {
        let mut kernels = self.kernels.write().unwrap_or_else(PoisonError::into_inner);
        let place = kernels.iter().position(|(id, _)| *id == TypeId::of::<K>());
        let before = place.and_then(|i| kernels.swap_remove(i).1.downcast_ref::<K>().copied());
        if let Some(kernel) = kernel {
            kernels.push((TypeId::of::<K>(), Box::new(kernel)));
        }
        self.is_used.store(!kernels.is_empty(), Ordering::Release);
        before
    }

    #[inline]
    fn get<K: Copy + Send + Sync + 'static>(&self) -> Option<K> {
        if self.is_used.load(Ordering::Acquire) { self.find() } else { None }
    }

    #[cold]
    fn find<K: Copy + Send + Sync + 'static>(&self) -> Option<K> {
        let kernels = self.kernels.read().unwrap_or_else(PoisonError::into_inner);
        kernels.iter().find_map(|(_, kernel)| kernel.downcast_ref::<K>().copied())
    }
}

/// Computes all matrix products of this element type by `kernel` from now on, or with `None` by the built-in ones again. Returns
/// the kernel that was registered before. The bits are the kernel's then, whatever the backend.
///
/// ```
/// use slabgrad::backend::{Matrix, Start, register_matmul_kernel};
///
/// fn plain([m, n, k]: [usize; 3], a: Matrix<'_, f64>, b: Matrix<'_, f64>, c: &mut [f64], c_row: usize, start: Start) {
///     for (i, row) in c.chunks_mut(c_row).take(m).enumerate() {
///         for (j, c) in row.iter_mut().take(n).enumerate() {
///             let product: f64 =
///                 (0..k).map(|l| a.data[i * a.row + l * a.col] * b.data[l * b.row + j * b.col]).sum();
///             *c = if start == Start::Output { *c + product } else { product };
///         }
///     }
/// }
/// assert!(register_matmul_kernel(Some(plain as slabgrad::backend::MatmulKernel<f64>)).is_none());
/// assert!(register_matmul_kernel::<f64>(None).is_some());
/// ```
pub fn register_matmul_kernel<E: Real>(kernel: Option<MatmulKernel<E>>) -> Option<MatmulKernel<E>> {
    KERNELS.set(kernel)
}

/// Runs all updates of the optimizer `O` by `kernel` from now on, or with `None` by its own again. Returns the kernel that was
/// registered before.
pub fn register_update_kernel<B: Backend, O: Optimizer<B>>(
    kernel: Option<UpdateKernel<B, O>>,
) -> Option<UpdateKernel<B, O>> {
    KERNELS.set(kernel)
}

#[inline]
pub(crate) fn matmul_kernel<E: Real>() -> Option<MatmulKernel<E>> {
    KERNELS.get()
}

#[inline]
pub(crate) fn update_kernel<B: Backend, O: Optimizer<B>>() -> Option<UpdateKernel<B, O>> {
    KERNELS.get()
}
