import type { Numbers } from "./slabgrad.js";

/** A model that was compiled at build time: a module that `slabgrad_static::export!` makes. */
export class StaticModel {
  /** Loads a module: from its address, a response, its bytes, or compiled. */
  static load(source: string | URL | Response | BufferSource | WebAssembly.Module): Promise<StaticModel>;

  /** The inputs of a training step and of an inference, where they lie: writing here saves a copy. They share memory. */
  readonly inputs: Float32Array[];
  readonly inferenceInputs: Float32Array[];
  /** The memory for a slab image. */
  readonly image: Uint8Array;

  /** Draws the parameters from a seed, and starts the optimizer anew. */
  init(seed?: number): void;
  /** A training step with these inputs, or with what lies in `inputs`; returns the loss before the update. */
  trainStep(learningRate: number, ...data: Numbers[]): number;
  /** The first output for these inputs, or for what lies in `inferenceInputs`: a view, until the next call. */
  predict(...data: Numbers[]): Float32Array;
  /** A slab image with the optimizer's state. */
  save(): Uint8Array;
  load(image: Uint8Array): void;
}
