//! candle on the CPU. Its AdamW without weight decay is Adam.

use candle_core::{Device, Result, Tensor, Var};
use candle_nn::{AdamW, Conv2d, Conv2dConfig, Linear, Module, Optimizer, ParamsAdamW, loss::cross_entropy};

use crate::workload::{Layer, Workload};

pub(crate) struct Candle {
    workload: Workload,
    net: Net,
    batches: Vec<(Tensor, Tensor)>,
}

struct Net {
    layers: Vec<Box<dyn Module>>,
    optimizer: AdamW,
}

impl Net {
    fn new(workload: &Workload) -> Result<Self> {
        let (mut layers, mut parameters): (Vec<Box<dyn Module>>, _) = (Vec::new(), Vec::new());
        for (layer, [weight, bias]) in workload.layers.iter().zip(&workload.parameters) {
            let shape = match *layer {
                Layer::Conv { channels, outputs, .. } => vec![outputs, channels, 3, 3],
                Layer::Linear { inputs, outputs } => vec![outputs, inputs],
            };
            let weight = Var::from_vec(weight.clone(), shape, &Device::Cpu)?;
            let bias = Var::from_vec(bias.clone(), bias.len(), &Device::Cpu)?;
            let (w, b) = (weight.as_tensor().clone(), Some(bias.as_tensor().clone()));
            layers.push(match *layer {
                Layer::Conv { stride, .. } => {
                    Box::new(Conv2d::new(w, b, Conv2dConfig { padding: 1, stride, ..Conv2dConfig::default() }))
                }
                Layer::Linear { .. } => Box::new(Linear::new(w, b)),
            });
            parameters.extend([weight, bias]);
        }
        let optimizer = AdamW::new(parameters, ParamsAdamW { weight_decay: 0.0, ..ParamsAdamW::default() })?;
        Ok(Self { layers, optimizer })
    }

    fn step(&mut self, workload: &Workload, x: &Tensor, labels: &Tensor) -> Result<f32> {
        let mut x = x.clone();
        for (i, (layer, kind)) in self.layers.iter().zip(workload.layers).enumerate() {
            if matches!(kind, Layer::Linear { .. }) {
                x = x.flatten_from(1)?;
            }
            x = layer.forward(&x)?;
            if i + 1 < self.layers.len() {
                x = x.relu()?;
            }
        }
        let loss = cross_entropy(&x, labels)?;
        self.optimizer.backward_step(&loss)?;
        loss.to_scalar()
    }
}

impl Candle {
    pub(crate) fn new(workload: Workload) -> Self {
        let batches = workload.batches.iter().map(|(x, labels)| {
            let labels: Vec<u32> = labels.iter().map(|&label| label as u32).collect();
            let count = labels.len();
            let x = Tensor::from_vec(x.clone(), workload.shape.clone(), &Device::Cpu)?;
            Ok((x, Tensor::from_vec(labels, count, &Device::Cpu)?))
        });
        let batches = batches.collect::<Result<_>>().expect("batches");
        let net = Net::new(&workload).expect("a net");
        Self { workload, net, batches }
    }
}

impl crate::Peer for Candle {
    fn restart(&mut self) {
        self.net = Net::new(&self.workload).expect("a net");
    }

    fn step(&mut self, batch: usize) -> f32 {
        let (x, labels) = &self.batches[batch];
        self.net.step(&self.workload, x, labels).expect("a step")
    }
}
