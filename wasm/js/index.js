import start, { EvaluationSession, FitSession, Model as CompiledModel } from "./slabgrad.js";

/** A module with a function that returns a vector: an engine without SIMD does not take it. */
const WITH_SIMD = new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11,
]);

let loading;
let memory;

export const hasSimd = () => WebAssembly.validate(WITH_SIMD);

export function load(options = {}) {
  const { simd = hasSimd(), module } = options;
  // Each is written out, so that bundlers see both files.
  loading ??= start({
    module_or_path:
      module ?? (simd ? new URL("./slabgrad_simd.wasm", import.meta.url) : new URL("./slabgrad.wasm", import.meta.url)),
  }).then(
    (exports) => {
      memory = exports.memory;
    },
    (error) => {
      // The next call tries again.
      loading = undefined;
      throw error;
    },
  );
  return loading;
}

export const memoryBytes = () => memory?.buffer.byteLength ?? 0;

export class Model extends CompiledModel {
  evaluate(x, y, options = {}) {
    const session = new EvaluationSession(this, x, y, options.batchSize ?? 32);
    try {
      while (session.step(this));
      return session.result();
    } finally {
      session.free();
    }
  }

  async *fit(x, y, options = {}) {
    const { validation, interval = 8, ...loop } = options;
    const session = new FitSession(this, x, y, loop);
    let evaluation;
    let deadline = performance.now() + interval;
    const isDue = () => performance.now() >= deadline;
    const pause = async () => {
      await nextTask();
      deadline = performance.now() + interval;
    };
    try {
      if (validation) evaluation = new EvaluationSession(this, validation.x, validation.y, loop.batchSize ?? 32);
      for (; !session.isDone; session.nextEpoch()) {
        while (session.step(this)) {
          if (isDue()) {
            yield { ...session.progress(this), epochEnd: false };
            await pause();
          }
        }
        const progress = { ...session.progress(this), epochEnd: true };
        if (evaluation) {
          while (evaluation.step(this)) if (isDue()) await pause();
          progress.validation = evaluation.result();
          evaluation.restart();
        }
        yield progress;
        await pause();
      }
    } finally {
      session.free();
      evaluation?.free();
    }
  }
}

/** Lets everything happen that waits: input, drawing, messages. */
function nextTask() {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}
