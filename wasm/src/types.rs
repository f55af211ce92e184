//! The TypeScript types that wasm-bindgen cannot know.

use wasm_bindgen::prelude::*;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** Numbers one after the other. A Float32Array is copied at once, others are converted. */
export type Numbers = Float32Array | ArrayLike<number>;

/** A height and a width, or one number for both. */
export type Size2d = number | [number, number];

export type ActivationName =
  | "identity" | "relu" | "leakyRelu" | "relu6" | "elu" | "sigmoid" | "tanh" | "softplus" | "gelu" | "geluTanh"
  | "silu" | "mish" | "hardsigmoid" | "hardswish" | "hardtanh" | "softmax" | "logSoftmax";
/** `setting` is the slope of leakyRelu, the alpha of elu, the beta of softplus. */
export type Activation = ActivationName | { type: ActivationName; setting?: number };

interface Named {
  /** Parameters are `name.weight` and so on; the layer's place, counted from 0, where there is none. */
  name?: string;
}
interface Weighted extends Named {
  outputs: number;
  bias?: boolean;
  activation?: Activation;
}
interface Pool extends Named {
  size: Size2d;
  /** As `size`, unless given. */
  stride?: Size2d;
  padding?: Size2d;
  dilation?: Size2d;
}
interface Norm extends Named {
  epsilon?: number;
  affine?: boolean;
}

/** A layer. What it takes from the one before it is found out. */
export type LayerDescription =
  | { type: "input"; shape: number[] }
  | ({ type: "linear" } & Weighted)
  | ({ type: "conv1d"; kernel: number; stride?: number; padding?: number; dilation?: number; groups?: number } & Weighted)
  | ({ type: "conv2d"; kernel: Size2d; stride?: Size2d; padding?: Size2d; dilation?: Size2d; groups?: number } & Weighted)
  | ({ type: "maxPool2d" } & Pool)
  | ({ type: "avgPool2d"; countPadding?: boolean } & Pool)
  | ({ type: "globalAvgPool2d" | "flatten" } & Named)
  | ({ type: "embedding"; count: number; size: number } & Named)
  | ({ type: "dropout"; p: number; seed?: number } & Named)
  | ({ type: "batchNorm1d" | "batchNorm2d"; momentum?: number } & Norm)
  | ({ type: "layerNorm" | "rmsNorm" } & Norm)
  | ({ type: "groupNorm"; groups: number } & Norm)
  | ({ type: "sequential"; layers: LayerDescription[] } & Named)
  | ({ type: "residual"; layers: LayerDescription[]; shortcut?: LayerDescription[] } & Named)
  | ({ type: ActivationName; setting?: number } & Named)
  | ActivationName
  | "flatten"
  | "globalAvgPool2d";

export interface ModelOptions {
  /** What all parameters are drawn from: 0, unless given. */
  seed?: number;
}

interface OptimizerSettings {
  learningRate?: number;
  weightDecay?: number;
}
export type OptimizerDescription =
  | ({ type: "sgd"; momentum?: number; dampening?: number; nesterov?: boolean } & OptimizerSettings)
  | ({ type: "adam" | "adamW"; beta1?: number; beta2?: number; epsilon?: number; amsgrad?: boolean } & OptimizerSettings)
  | ({ type: "rmsprop"; alpha?: number; epsilon?: number; momentum?: number; centered?: boolean } & OptimizerSettings)
  | ({ type: "adagrad"; epsilon?: number } & OptimizerSettings)
  | "sgd" | "adam" | "adamW" | "rmsprop" | "adagrad";

/** Targets are class indices for crossEntropy (or probabilities) and nll, and shaped as the output for the others. */
export type LossDescription =
  | { type: "crossEntropy"; labelSmoothing?: number }
  | { type: "huber"; delta?: number }
  | { type: "smoothL1"; beta?: number }
  | { type: "nll" | "mse" | "l1" | "bceWithLogits" }
  | "crossEntropy" | "nll" | "mse" | "l1" | "huber" | "smoothL1" | "bceWithLogits";

export interface CompileOptions {
  optimizer: OptimizerDescription;
  loss: LossDescription;
  /** Scales gradients so that their L2 norm is at most this. */
  clipNorm?: number;
  /** What becomes of a step whose loss or gradients are not finite: an Error, unless given. */
  notFinite?: "error" | "skip" | "pass";
}

export interface SaveOptions {
  /** Whether the optimizer's moments are in it: yes, unless given. */
  moments?: boolean;
  /** Bytes of your own, which `load` returns. */
  user?: Uint8Array;
}

export interface Weight {
  name: string;
  shape: number[];
  kind: "trained" | "frozen" | "state";
  data: Float32Array;
}

/** Bytes. */
export interface Memory {
  total: number;
  params: number;
  state: number;
  grads: number;
  moments: number;
  work: number;
}

export interface LoopOptions {
  /** The number of the last epoch and one: 1, unless given. */
  epochs?: number;
  /** 32, unless given. The last batch of an epoch may be smaller. */
  batchSize?: number;
  /** What the order of the samples is drawn from, with the number of the epoch: 0, unless given. */
  seed?: number;
  /** To go on with a training: the epoch and the batch to start with. */
  firstEpoch?: number;
  firstBatch?: number;
}

export interface Progress {
  /** The epoch, counted from 0, and how many there are. */
  epoch: number;
  epochs: number;
  /** How many batches of the epoch are done, and how many it has. */
  batch: number;
  batches: number;
  /** Updates of the model, and samples of this training so far. */
  step: number;
  samples: number;
  /** The loss of the last batch, before its update, and the mean of the epoch so far. */
  loss: number;
  meanLoss: number;
  learningRate: number;
}

export interface Evaluation {
  /** The mean over the samples. */
  loss: number;
  /** The share that was taken for what it is, where targets are class indices. */
  accuracy?: number;
}
"#;
