//! How an operation's file gives tapes and expressions their methods.

use crate::backend::Backend;
use crate::error::ShapeError;
use crate::ops::{Op, Spec};

use super::Handle;

/// What a method records.
pub(crate) struct Call<B: Backend> {
    pub(crate) op: &'static Op<B>,
    pub(crate) spec: Result<Spec, ShapeError>,
    /// An operand whose elements are whole numbers below a bound.
    pub(crate) indices: Option<(usize, usize)>,
    pub(crate) state: Option<Handle>,
}

impl<B: Backend> Call<B> {
    pub(crate) const fn new(op: &'static Op<B>, spec: Result<Spec, ShapeError>) -> Self {
        Self { op, spec, indices: None, state: None }
    }

    /// The elements of this operand have to be whole numbers below `bound`.
    pub(crate) const fn indices(self, operand: usize, bound: usize) -> Self {
        Self { indices: Some((operand, bound)), ..self }
    }

    /// With this state.
    pub(crate) const fn with_state(self, state: Handle) -> Self {
        Self { state: Some(state), ..self }
    }
}

impl<B: Backend> From<(&'static Op<B>, Result<Spec, ShapeError>)> for Call<B> {
    fn from((op, spec): (&'static Op<B>, Result<Spec, ShapeError>)) -> Self {
        Self::new(op, spec)
    }
}

impl<B: Backend> From<(&'static Op<B>, Spec)> for Call<B> {
    fn from((op, spec): (&'static Op<B>, Spec)) -> Self {
        Self::new(op, Ok(spec))
    }
}

/// The methods of an operation on tapes and on expressions: its operands, those that may be absent, its settings, and the
/// table and spec that they give, or a [`Call`] with more than these. Within it, an operand's name stands for its shape. A state
/// is a setting of type [`Handle`].
///
/// `methods! { /// Softmax along `axis`. softmax(x)(axis: usize) => (op(), spec(x, axis)) }` expands to
///
/// ```text
/// impl<S: Storage> Tape<S> {
///     /// Softmax along `axis`.
///     #[track_caller]
///     pub fn softmax(&mut self, x: Handle, axis: usize) -> Handle {
///         let inputs = [Some(x), None, None];
///         let x = self.shape(x);
///         self.record(Call::from((op(), spec(x, axis))), inputs)
///     }
/// }
/// impl<S: Storage> Expr<'_, S> {
///     /// Softmax along `axis`.
///     #[track_caller]
///     pub fn softmax(self, axis: usize) -> Self {
///         self.with(self.tape().softmax(self.handle(), axis))
///     }
/// }
/// ```
macro_rules! methods {
    ($(
        $(#[$meta:meta])*
        $name:ident($x:ident $(, $y:ident)* $(; $($z:ident),+)?)($($setting:ident: $type:ty),*) => $call:expr
    );+ $(;)?) => {$(
        impl<S: $crate::tape::Storage> $crate::tape::Tape<S> {
            $(#[$meta])*
            #[track_caller]
            pub fn $name(
                &mut self,
                $x: $crate::tape::Handle
                $(, $y: $crate::tape::Handle)*
                $($(, $z: Option<$crate::tape::Handle>)+)?
                $(, $setting: $type)*
            ) -> $crate::tape::Handle {
                let inputs = $crate::tape::inputs([Some($x) $(, Some($y))* $($(, $z)+)?]);
                let ($x, $($y,)* $($($z,)+)?) = (
                    self.shape($x),
                    $(self.shape($y),)*
                    $($($z.map(|z| self.shape(z)),)+)?
                );
                self.record($crate::tape::Call::from($call), inputs)
            }
        }

        impl<S: $crate::tape::Storage> $crate::tape::Expr<'_, S> {
            $(#[$meta])*
            #[track_caller]
            #[must_use]
            #[allow(clippy::should_implement_trait, reason = "the operators call these")]
            pub fn $name(
                self
                $(, $y: Self)*
                $($(, $z: Option<Self>)+)?
                $(, $setting: $type)*
            ) -> Self {
                let var = self.tape().$name(
                    self.handle()
                    $(, $y.handle())*
                    $($(, $z.map(Self::handle))+)?
                    $(, $setting)*
                );
                self.with(var)
            }
        }
    )+};
}
pub(crate) use methods;

/// Fills up with absent inputs.
pub(crate) fn inputs<const N: usize>(given: [Option<Handle>; N]) -> [Option<Handle>; crate::ops::MAX_INPUTS] {
    let mut inputs = [None; crate::ops::MAX_INPUTS];
    inputs.iter_mut().zip(given).for_each(|(input, given)| *input = given);
    inputs
}
