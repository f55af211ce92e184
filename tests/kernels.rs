//! Kernels of others: a matrix product of the crate `matrixmultiply` and an update of Adam that are plugged in, serve every
//! front end, and are gone without a trace when they are taken out again.

#![cfg(feature = "std")]

use std::sync::atomic::{AtomicUsize, Ordering};

use slabgrad::backend::{MatmulKernel, Matrix, Start, UpdateKernel, register_matmul_kernel, register_update_kernel};
use slabgrad::compiled::Context;
use slabgrad::layer::{Model, Sequential};
use slabgrad::optim::{AdamCoefficients, Group};
use slabgrad::prelude::*;
use slabgrad::tape::{GrowingTape, Handle};

static PRODUCTS: AtomicUsize = AtomicUsize::new(0);
static UPDATES: AtomicUsize = AtomicUsize::new(0);

fn sgemm([m, n, k]: [usize; 3], a: Matrix<'_, f32>, b: Matrix<'_, f32>, c: &mut [f32], c_row: usize, start: Start) {
    PRODUCTS.fetch_add(1, Ordering::Relaxed);
    let beta = if start == Start::Output { 1.0 } else { 0.0 };
    let stride = |distance: usize| isize::try_from(distance).unwrap();
    // SAFETY: a registered kernel gets operands and a result that are as large as the sizes say.
    unsafe {
        matrixmultiply::sgemm(
            m,
            k,
            n,
            1.0,
            a.data.as_ptr(),
            stride(a.row),
            stride(a.col),
            b.data.as_ptr(),
            stride(b.row),
            stride(b.col),
            beta,
            c.as_mut_ptr(),
            stride(c_row),
            1,
        );
    }
}

type AdamKernel = UpdateKernel<Strict<f32>, Adam>;

/// Adam, one parameter at a time, as a kernel in C would have it.
// The type of the kernel has it by reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn adam(c: &AdamCoefficients<f32>, group: &Group<f32>, params: &mut [f32], grads: &[f32], [m, v, _]: [&mut [f32]; 3]) {
    UPDATES.fetch_add(1, Ordering::Relaxed);
    for i in 0..params.len() {
        let g = grads[i] + group.weight_decay * params[i];
        m[i] = c.betas[0] * m[i] + c.rest[0] * g;
        v[i] = c.betas[1] * v[i] + c.rest[1] * (g * g);
        let root = libm::sqrtf(v[i]) * c.root_scale;
        params[i] -= c.rate * group.learning_rate_factor * m[i] / (root + c.epsilon);
    }
}

/// The parameters after three steps, eager or compiled.
fn train(is_compiled: bool) -> Vec<f32> {
    let net = Sequential::new().conv2d("conv", 1, 4, Conv2d::kernel(3)).relu().flatten().linear("fc", 144, 3);
    let mut model: Model = Model::new(net, [1, 8, 8], 1).unwrap();
    let x: Vec<f32> = (0..8 * 64).map(|i| (i * 37 % 101) as f32 / 50.0 - 1.0).collect();
    let label = [0.0, 1.0, 2.0, 0.0, 1.0, 2.0, 0.0, 1.0];
    let loss =
        |tape: &mut GrowingTape, y: Handle, extra: &[Handle]| tape.cross_entropy(y, extra[0], CrossEntropy::new());
    let mut context = Context::new();
    for _ in 0..3 {
        let (x, label) = ((Shape::new([8, 1, 8, 8]), &x[..]), (Shape::new([8]), &label[..]));
        if is_compiled {
            context.training_step(&mut model, &mut Adam::new(0.01), loss, x, &[label]).unwrap();
        } else {
            let input = model.tape().constant(x.0, x.1);
            let y = model.forward(input).unwrap();
            let label = model.tape().constant(label.0, label.1);
            let loss = loss(model.tape(), y, &[label]);
            model.backward(loss).unwrap();
            model.update(&Adam::new(0.01)).unwrap();
            model.zero_grad();
        }
    }
    model.tape().params().to_vec()
}

fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

// One test: what is registered is the whole process's.
#[test]
fn kernels_are_plugged_in_and_taken_out_again() {
    let built_in = train(false);
    assert_eq!(built_in, train(true));

    let before = register_matmul_kernel(Some(sgemm as MatmulKernel<f32>));
    assert!(before.is_none());
    for is_compiled in [false, true] {
        let count = PRODUCTS.load(Ordering::Relaxed);
        let found = train(is_compiled);
        assert!(PRODUCTS.load(Ordering::Relaxed) > count + 9, "every product is the kernel's");
        let difference = largest_difference(&built_in, &found);
        assert!(difference < 1e-4, "the parameters differ by {difference}");
    }
    assert!(register_matmul_kernel::<f32>(None).is_some());
    let count = PRODUCTS.load(Ordering::Relaxed);
    assert_eq!(train(true), built_in, "the built-in product is back");
    assert_eq!(PRODUCTS.load(Ordering::Relaxed), count);

    assert!(register_update_kernel::<Strict<f32>, Adam>(Some(adam as AdamKernel)).is_none());
    for is_compiled in [false, true] {
        let count = UPDATES.load(Ordering::Relaxed);
        let difference = largest_difference(&built_in, &train(is_compiled));
        assert!(UPDATES.load(Ordering::Relaxed) > count && difference < 1e-5, "the parameters differ by {difference}");
    }
    assert!(register_update_kernel::<Strict<f32>, Adam>(None).is_some());
    assert_eq!(train(false), built_in, "the built-in update is back");
}
