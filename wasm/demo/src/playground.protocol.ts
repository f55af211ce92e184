// What the playground and its worker tell each other.

export const DATA = ["circle", "xor", "clusters", "spiral"] as const;
export const ACTIVATIONS = ["tanh", "relu", "sigmoid", "identity"] as const;

export interface Setup {
  data: (typeof DATA)[number];
  activation: (typeof ACTIVATIONS)[number];
  /** Neurons of the hidden layers. */
  layers: number[];
  rate: number;
  noise: number;
  seed: number;
}

/** Places along a side of the maps of answers, over -1 to 1. */
export const SIDE = 40;

export type ToWorker = { type: "reset"; setup: Setup } | { type: "run" | "pause" | "step" } | { type: "rate"; rate: number };

export type FromWorker =
  | { type: "ready"; x: Float32Array; y: Float32Array; parameters: number }
  | {
      type: "progress";
      step: number;
      loss: number;
      accuracy: number;
      /** The answer at every place, and that of each neuron of each hidden layer, from -1 to 1. */
      answer: Float32Array;
      neurons: Float32Array[][];
    }
  | { type: "error"; text: string };
