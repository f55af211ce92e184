// What the page of the digits and its worker tell each other.

export type OptimizerName = "adam" | "adamW" | "sgd" | "momentum" | "rmsprop" | "adagrad";

export type ToWorker =
  | { type: "reset"; seed: number; optimizer: OptimizerName; rate: number }
  | { type: "run" | "pause" | "step" | "save" }
  | { type: "optimizer"; optimizer: OptimizerName; rate: number }
  | { type: "rate"; rate: number }
  | { type: "draw"; pixels: Float32Array }
  | { type: "teach"; pixels: Float32Array; label: number }
  | { type: "load"; image: Uint8Array };

export interface Settings {
  seed: number;
  optimizer: OptimizerName;
  rate: number;
}

export type FromWorker =
  | { type: "ready"; parameters: number; settings: Settings; own: number; examples: Float32Array }
  | { type: "progress"; step: number; epoch: number; loss: number; speed: number; memory: number; module: number }
  | { type: "test"; step: number; loss: number; accuracy: number; confusion: number[][]; filters: Float32Array }
  | { type: "probabilities"; probabilities: Float32Array }
  | { type: "own"; count: number }
  | { type: "paused" }
  | { type: "saved"; image: Uint8Array }
  | { type: "error"; text: string };
