//! The matrix products and the convolutions that occur in training steps of W1 to W3; `benches/products` takes them from here, too.

use slabgrad::backend::{Backend, Matrix, Start};
use slabgrad::ops::{BackwardCall, ForwardCall, Gradient, MAX_INPUTS, Spec, Window2d, conv2d};
use slabgrad::shape::Shape;

/// `c = a b`, of `m x k` and `k x n`.
pub(crate) struct Product {
    pub(crate) name: String,
    pub(crate) sizes: [usize; 3],
    /// The distances between rows and between columns.
    pub(crate) a: [usize; 2],
    pub(crate) b: [usize; 2],
}

pub(crate) fn products() -> Vec<Product> {
    [
        linear("W1 fc1", 16, 64, 32, true),
        linear("W1 fc2", 16, 32, 10, false),
        linear("W2 fc1", 32, 784, 256, true),
        linear("W2 fc2", 32, 256, 128, false),
        linear("W2 fc3", 32, 128, 10, false),
        columns("W3 conv1", 9, 784, 16, true),
        columns("W3 conv2", 144, 196, 32, false),
        linear("W3 fc1", 32, 6272, 64, false),
        linear("W3 fc2", 32, 64, 4, false),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// `y = x Wᵀ`, `dx = dy W` and `dW = dyᵀ x`; the first layer of a network has no `dx`.
fn linear(layer: &str, batch: usize, inputs: usize, outputs: usize, is_first: bool) -> Vec<Product> {
    let mut products = vec![
        product(layer, "y", [batch, outputs, inputs], [inputs, 1], [1, inputs]),
        product(layer, "dW", [outputs, inputs, batch], [1, outputs], [inputs, 1]),
    ];
    if !is_first {
        products.push(product(layer, "dx", [batch, inputs, outputs], [outputs, 1], [inputs, 1]));
    }
    products
}

/// The products of a convolution of one sample whose image was gathered into columns, `taps x pixels`.
fn columns(layer: &str, taps: usize, pixels: usize, outputs: usize, is_first: bool) -> Vec<Product> {
    let mut products = vec![
        product(layer, "y", [outputs, pixels, taps], [taps, 1], [pixels, 1]),
        product(layer, "dW", [outputs, taps, pixels], [pixels, 1], [1, pixels]),
    ];
    if !is_first {
        products.push(product(layer, "dx", [taps, pixels, outputs], [1, taps], [pixels, 1]));
    }
    products
}

fn product(layer: &str, what: &str, sizes: [usize; 3], a: [usize; 2], b: [usize; 2]) -> Product {
    Product { name: format!("{layer} {what}"), sizes, a, b }
}

impl Product {
    /// `a`, `b` and room for `c`.
    pub(crate) fn operands(&self) -> [Vec<f32>; 3] {
        let [m, n, k] = self.sizes;
        [numbers(m * k, 1), numbers(k * n, 2), vec![0.0; m * n]]
    }

    pub(crate) fn run<B: Backend<Elem = f32>>(&self, a: &[f32], b: &[f32], c: &mut [f32]) {
        let matrix = |data, [row, col]: [usize; 2]| Matrix { data, row, col };
        B::matmul(self.sizes, matrix(a, self.a), matrix(b, self.b), c, self.sizes[1], Start::Zero);
    }
}

/// A convolution 3x3 with padding 1 of a batch of square images.
pub(crate) struct Convolution {
    pub(crate) name: &'static str,
    pub(crate) batch: usize,
    pub(crate) channels: usize,
    pub(crate) size: usize,
    pub(crate) outputs: usize,
    pub(crate) stride: usize,
}

pub(crate) const CONVOLUTIONS: [Convolution; 2] = [
    Convolution { name: "W3 conv1", batch: 32, channels: 1, size: 28, outputs: 16, stride: 1 },
    Convolution { name: "W3 conv2", batch: 32, channels: 16, size: 28, outputs: 32, stride: 2 },
];

/// What a convolution computes.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Pass {
    Forward,
    InputGradient,
    WeightGradient,
}

impl Pass {
    pub(crate) const ALL: [Self; 3] = [Self::Forward, Self::InputGradient, Self::WeightGradient];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Forward => "y",
            Self::InputGradient => "dx",
            Self::WeightGradient => "dW",
        }
    }
}

/// The operands of a pass.
pub(crate) struct Operands {
    pub(crate) x: Vec<f32>,
    pub(crate) weight: Vec<f32>,
    pub(crate) bias: Vec<f32>,
    pub(crate) dy: Vec<f32>,
    /// What the pass computes.
    pub(crate) result: Vec<f32>,
    scratch: Vec<f32>,
}

impl Convolution {
    pub(crate) fn out_size(&self) -> usize {
        self.size.div_ceil(self.stride)
    }

    pub(crate) fn multiplications(&self) -> usize {
        self.batch * self.outputs * self.out_size().pow(2) * self.channels * 9
    }

    fn spec(&self) -> Spec {
        let x = Shape::new([self.batch, self.channels, self.size, self.size]);
        let weight = Shape::new([self.outputs, self.channels, 3, 3]);
        let window = Window2d::size(3).stride(self.stride).padding(1);
        conv2d::spec(x, weight, Some(Shape::new([self.outputs])), window, 1).expect("a convolution")
    }

    pub(crate) fn operands(&self, pass: Pass) -> Operands {
        let spec = self.spec();
        let x = numbers(self.batch * self.channels * self.size.pow(2), 1);
        let weight = numbers(self.outputs * self.channels * 9, 2);
        let dy = numbers(spec.shape.len(), 3);
        let (results, scratch) = match pass {
            Pass::Forward => (dy.len(), spec.scratch),
            Pass::InputGradient => (x.len(), spec.scratch_backward[0]),
            Pass::WeightGradient => (weight.len(), spec.scratch_backward[1]),
        };
        let (result, scratch) = (vec![0.0; results], vec![0.0; scratch]);
        Operands { x, weight, bias: numbers(self.outputs, 4), dy, result, scratch }
    }

    pub(crate) fn run<B: Backend<Elem = f32>>(&self, pass: Pass, operands: &mut Operands) {
        let args = &self.spec().args;
        let Operands { x, weight, bias, dy, result, scratch } = operands;
        let mut inputs: [&[f32]; MAX_INPUTS] = [&[]; MAX_INPUTS];
        inputs[..3].copy_from_slice(&[x, weight, bias]);
        let op = conv2d::op::<B>();
        let gradient = match pass {
            Pass::Forward => {
                let call = ForwardCall { args, x: inputs, y: result, saved: &mut [], scratch, state: &[] };
                return (op.forward)(call);
            }
            Pass::InputGradient => op.backward[0],
            Pass::WeightGradient => op.backward[1],
        };
        let Gradient::Kernel { run, .. } = gradient else { panic!("a convolution has kernels") };
        run(BackwardCall { args, x: inputs, y: &[], saved: &[], dy, dx: result, add: false, scratch, first_row: 0 });
    }
}

/// Numbers between -1 and 1.
fn numbers(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|i| ((i + 7 * seed) * 7919 % 2003) as f32 / 1001.0 - 1.0).collect()
}
