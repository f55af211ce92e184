//! burn with its backend for the CPU, `flex`.

use burn::{
    module::Param,
    nn::{
        Linear, PaddingConfig2d,
        conv::{Conv2d, Conv2dConfig},
        loss::{CrossEntropyLoss, CrossEntropyLossConfig},
    },
    optim::{AdamConfig, GradientsParams, ModuleOptimizer},
    prelude::*,
    tensor::{TensorData, activation::relu},
};

use crate::workload::{Layer, Workload};

#[derive(Module, Debug)]
struct Net {
    convs: Vec<Conv2d>,
    linears: Vec<Linear>,
}

impl Net {
    fn new(workload: &Workload, device: &Device) -> Self {
        let (mut convs, mut linears) = (Vec::new(), Vec::new());
        for (layer, [weight, bias]) in workload.layers.iter().zip(&workload.parameters) {
            let bias = Some(Param::from_data(TensorData::new(bias.clone(), [bias.len()]), device));
            match *layer {
                Layer::Conv { channels, outputs, stride } => {
                    let config = Conv2dConfig::new([channels, outputs], [3, 3]).with_stride([stride, stride]);
                    let conv = config.with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1)).init(device);
                    let weight = TensorData::new(weight.clone(), [outputs, channels, 3, 3]);
                    convs.push(Conv2d { weight: Param::from_data(weight, device), bias, ..conv });
                }
                Layer::Linear { inputs, outputs } => {
                    // burn keeps weights as `[in, out]`.
                    let transposed =
                        (0..inputs * outputs).map(|i| weight[i % outputs * inputs + i / outputs]).collect();
                    let weight = TensorData::new::<f32, _>(transposed, [inputs, outputs]);
                    linears.push(Linear { weight: Param::from_data(weight, device), bias });
                }
            }
        }
        Self { convs, linears }
    }

    fn logits(&self, x: &Batch) -> Tensor<2> {
        let mut x = match x {
            Batch::Features(x) => x.clone(),
            Batch::Images(x) => {
                let x = self.convs.iter().fold(x.clone(), |x, conv| relu(conv.forward(x)));
                x.flatten(1, 3)
            }
        };
        for (i, linear) in self.linears.iter().enumerate() {
            x = linear.forward(x);
            if i + 1 < self.linears.len() {
                x = relu(x);
            }
        }
        x
    }
}

enum Batch {
    Features(Tensor<2>),
    Images(Tensor<4>),
}

pub(crate) struct Burn {
    workload: Workload,
    device: Device,
    /// Taken while an optimizer makes another of it.
    net: Option<Net>,
    optimizer: ModuleOptimizer,
    loss: CrossEntropyLoss,
    batches: Vec<(Batch, Tensor<1, Int>)>,
}

fn adam() -> ModuleOptimizer {
    AdamConfig::new().with_epsilon(1e-8).init()
}

impl Burn {
    pub(crate) fn new(workload: Workload) -> Self {
        let device = Device::flex().autodiff();
        let batches = workload.batches.iter().map(|(x, labels)| {
            let data = TensorData::new(x.clone(), workload.shape.clone());
            let x = match workload.shape.len() {
                2 => Batch::Features(Tensor::from_data(data, &device)),
                _ => Batch::Images(Tensor::from_data(data, &device)),
            };
            let labels: Vec<i64> = labels.iter().map(|&label| label as i64).collect();
            (x, Tensor::from_data(&labels[..], &device))
        });
        let batches = batches.collect();
        let net = Some(Net::new(&workload, &device));
        let loss = CrossEntropyLossConfig::new().init(&device);
        Self { workload, device, net, optimizer: adam(), loss, batches }
    }
}

impl crate::Peer for Burn {
    fn restart(&mut self) {
        self.net = Some(Net::new(&self.workload, &self.device));
        self.optimizer = adam();
    }

    fn step(&mut self, batch: usize) -> f32 {
        let (x, labels) = &self.batches[batch];
        let net = self.net.take().expect("a net");
        let loss = self.loss.forward(net.logits(x), labels.clone());
        let gradients = GradientsParams::from_grads(loss.backward(), &net);
        self.net = Some(self.optimizer.step(1e-3, net, gradients));
        loss.into_scalar()
    }
}
