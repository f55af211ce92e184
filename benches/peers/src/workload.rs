//! The workloads, as `benches/steps/nets.rs` has them, and the file that peers start from.

pub(crate) enum Layer {
    /// 3x3 with padding 1.
    Conv {
        channels: usize,
        outputs: usize,
        stride: usize,
    },
    Linear {
        inputs: usize,
        outputs: usize,
    },
}

pub(crate) struct Workload {
    /// The layers, with a relu between each two.
    pub(crate) layers: &'static [Layer],
    /// Weight `[out, in, ..]` and bias of each layer.
    pub(crate) parameters: Vec<[Vec<f32>; 2]>,
    /// The axes of a batch of samples.
    pub(crate) shape: Vec<usize>,
    /// Samples and labels.
    pub(crate) batches: Vec<(Vec<f32>, Vec<f32>)>,
}

const W1: &[Layer] = &[Layer::Linear { inputs: 64, outputs: 32 }, Layer::Linear { inputs: 32, outputs: 10 }];
const W2: &[Layer] = &[
    Layer::Linear { inputs: 784, outputs: 256 },
    Layer::Linear { inputs: 256, outputs: 128 },
    Layer::Linear { inputs: 128, outputs: 10 },
];
const W3: &[Layer] = &[
    Layer::Conv { channels: 1, outputs: 16, stride: 1 },
    Layer::Conv { channels: 16, outputs: 32, stride: 2 },
    Layer::Linear { inputs: 6272, outputs: 64 },
    Layer::Linear { inputs: 64, outputs: 4 },
];

impl Layer {
    fn outputs(&self) -> usize {
        match self {
            Self::Conv { outputs, .. } | Self::Linear { outputs, .. } => *outputs,
        }
    }

    fn weights(&self) -> usize {
        match self {
            Self::Conv { channels, outputs, .. } => outputs * channels * 9,
            Self::Linear { inputs, outputs } => outputs * inputs,
        }
    }
}

impl Workload {
    pub(crate) fn read(name: &str, file: &str) -> Self {
        let (layers, samples, shape) = match name {
            "W1" => (W1, 256, vec![16, 64]),
            "W2" => (W2, 512, vec![32, 784]),
            "W3" => (W3, 512, vec![32, 1, 28, 28]),
            _ => panic!("{name} is not known"),
        };
        let bytes = std::fs::read(file).unwrap_or_else(|error| panic!("cannot read {file}: {error}"));
        let mut numbers = bytes.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().expect("four bytes")));
        let mut take = |count: usize| -> Vec<f32> { numbers.by_ref().take(count).collect() };
        let parameters = layers.iter().map(|layer| [take(layer.weights()), take(layer.outputs())]).collect();
        let (batch, len) = (shape[0], shape.iter().product());
        let x: Vec<Vec<f32>> = (0..samples / batch).map(|_| take(len)).collect();
        let batches: Vec<_> = x.into_iter().map(|x| (x, take(batch))).collect();
        assert!(batches.iter().all(|(_, labels)| labels.len() == batch), "{file} is too short for {name}");
        assert!(numbers.next().is_none(), "{file} is too long for {name}");
        Self { layers, parameters, shape, batches }
    }
}
