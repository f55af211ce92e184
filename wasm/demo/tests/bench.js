// The page of the benchmark: the networks and data of benches/steps/workloads.rs.

import { load, Model } from "./slabgrad/index.js";

const linear = (name, outputs, activation = "identity") => ({ type: "linear", name, outputs, activation });
const conv2d = (name, outputs, stride) => ({ type: "conv2d", name, outputs, kernel: 3, stride, padding: 1, activation: "relu" });
const WORKLOADS = {
  W1: { shape: [64], batch: 16, classes: 10, samples: 256, layers: [linear("fc1", 32, "relu"), linear("fc2", 10)] },
  W2: {
    shape: [784],
    batch: 32,
    classes: 10,
    samples: 512,
    layers: [linear("fc1", 256, "relu"), linear("fc2", 128, "relu"), linear("fc3", 10)],
  },
  W3: {
    shape: [1, 28, 28],
    batch: 32,
    classes: 4,
    samples: 512,
    layers: [conv2d("conv1", 16, 1), conv2d("conv2", 32, 2), "flatten", linear("fc1", 64, "relu"), linear("fc2", 4)],
  },
};
/** Milliseconds that a block of steps takes, and how many blocks there are: the median counts. */
const BLOCK = 30;
const BLOCKS = 25;

const mul = (a, b) => Math.imul(a, b) >>> 0;

function prototype(label, i) {
  let h = mul((label * 7919 + i * 104729 + 17) >>> 0, 2654435761);
  h = (h ^ (h >>> 15)) >>> 0;
  h = mul(h, 2246822519);
  h = (h ^ (h >>> 13)) >>> 0;
  return (h & 0xffff) < 0x5000 ? Math.fround(((h >>> 16) & 0xff) / 255) : 0;
}

/** As `Data::new` makes them, in single precision. */
function data({ samples, classes }, features) {
  let state = 12345;
  const random = () => {
    state = (mul(state, 1664525) + 1013904223) >>> 0;
    return state >>> 8;
  };
  const [x, y] = [new Float32Array(samples * features), new Float32Array(samples)];
  const [much, little] = [Math.fround(0.7), Math.fround(0.3)];
  for (let sample = 0; sample < samples; sample++) {
    const label = random() % classes;
    y[sample] = label;
    for (let i = 0; i < features; i++) {
      const noise = Math.fround(little * Math.fround(random() / 16777216));
      x[sample * features + i] = Math.fround(much * prototype(label, i)) + noise;
    }
  }
  return { x, y };
}

/** FNV-1a of the parameters' bits, as `cargo bench --bench steps -- run` prints it. */
function hash(model) {
  let hash = 0xcbf29ce484222325n;
  for (const { data } of model.weights()) {
    for (const bits of new Uint32Array(data.buffer)) hash = BigInt.asUintN(64, (hash ^ BigInt(bits)) * 0x100000001b3n);
  }
  return hash.toString(16).padStart(16, "0");
}

globalThis.bench = async (name, steps) => {
  await load();
  const workload = WORKLOADS[name];
  const features = workload.shape.reduce((a, b) => a * b);
  const { x, y } = data(workload, features);
  const model = new Model([{ type: "input", shape: workload.shape }, ...workload.layers], { seed: 1 });
  model.compile({ optimizer: "adam", loss: "crossEntropy" });
  const batches = workload.samples / workload.batch;
  const step = (i) => {
    const [from, to] = [(i % batches) * workload.batch, ((i % batches) + 1) * workload.batch];
    model.trainStep(x.subarray(from * features, to * features), y.subarray(from, to));
  };
  for (let i = 0; i < steps; i++) step(i);
  const result = hash(model);
  const run = (count) => {
    const start = performance.now();
    for (let i = 0; i < count; i++) step(i);
    return (performance.now() - start) / count;
  };
  // Warm by now: the engine's best code is there.
  const count = Math.max(2, Math.round(BLOCK / run(3)));
  const times = Array.from({ length: BLOCKS }, () => run(count)).sort((a, b) => a - b);
  model.free();
  return { name, milliseconds: times[Math.floor(BLOCKS / 2)], hash: result };
};
