import { Evaluation, LoopOptions, Model as CompiledModel, Numbers, Progress } from "./slabgrad.js";

export * from "./slabgrad.js";

export interface LoadOptions {
  /** The build with SIMD or the one without; found out, unless given. Both have the same results. */
  simd?: boolean;
  /** Where the module comes from instead of beside this file: an address, a response, its bytes, or compiled. */
  module?: string | URL | Request | Response | BufferSource | WebAssembly.Module;
}

/** Loads the module. Call it and wait before anything else; later calls return at once. */
export function load(options?: LoadOptions): Promise<void>;

/** Whether this engine has SIMD. */
export function hasSimd(): boolean;

/** Bytes of the module's memory: 0 before it is loaded. It grows, and does not shrink. */
export function memoryBytes(): number;

export interface EvaluateOptions {
  /** 32, unless given. */
  batchSize?: number;
}

export interface FitOptions extends LoopOptions {
  /** Evaluates the model on these samples after each epoch. */
  validation?: { x: Numbers; y: Numbers };
  /** Milliseconds of training between two pauses for the page: 8, unless given. */
  interval?: number;
}

export interface FitProgress extends Progress {
  /** Whether an epoch has just ended; there is a validation then, if one was asked for. */
  epochEnd: boolean;
  validation?: Evaluation;
}

export class Model extends CompiledModel {
  /** The mean loss of the samples, and the accuracy where targets are class indices. */
  evaluate(x: Numbers, y: Numbers, options?: EvaluateOptions): Evaluation;

  /**
   * Trains, and reports at the end of each epoch and, within it, about every `interval` milliseconds. It goes on when the next
   * report is asked for: `break` ends it, and so does `return()`; the steps that were taken stay taken.
   */
  fit(x: Numbers, y: Numbers, options?: FitOptions): AsyncGenerator<FitProgress, void, void>;
}
