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
const BLOCK = 10;
const BLOCKS = 75;
/** Steps before that, to learn how many make a block. */
const WARM = 10;

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

/** The batches of a workload, one after the other. */
function batches(name) {
  const { shape, batch, samples } = WORKLOADS[name];
  const features = shape.reduce((a, b) => a * b);
  const { x, y } = data(WORKLOADS[name], features);
  const starts = Array.from({ length: samples / batch }, (_, i) => i * batch);
  return starts.map((from) => [x.subarray(from * features, (from + batch) * features), y.subarray(from, from + batch)]);
}

async function ours(name, steps) {
  await load();
  const { shape, layers } = WORKLOADS[name];
  const model = new Model([{ type: "input", shape }, ...layers], { seed: 1 });
  model.compile({ optimizer: "adam", loss: "crossEntropy" });
  const all = batches(name);
  for (let i = 0; i < steps; i++) model.trainStep(...all[i % all.length]);
  return {
    hash: hash(model),
    run: (count) => {
      for (let i = 0; i < count; i++) model.trainStep(...all[i % all.length]);
    },
    free: () => model.free(),
  };
}

/** ONNX Runtime, on what peer/artifacts.py has made. A step is what its documentation has: forward, backward, update, reset. */
async function peers(name) {
  const { ort } = globalThis;
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmPaths = new URL("./peer/", import.meta.url).href;
  const file = (file) => new URL(`./peer/${name}/${file}`, import.meta.url).href;
  const session = await ort.TrainingSession.create(
    { checkpointState: file("checkpoint"), trainModel: file("training_model.onnx"), optimizerModel: file("optimizer_model.onnx") },
    { executionProviders: ["wasm"] },
  );
  const { shape, batch } = WORKLOADS[name];
  const [input, target] = session.trainingInputNames;
  const all = batches(name).map(([x, y]) => ({
    [input]: new ort.Tensor("float32", x, [batch, ...shape]),
    [target]: new ort.Tensor("int64", BigInt64Array.from(y, BigInt), [batch]),
  }));
  const losses = [];
  return {
    losses,
    run: async (count) => {
      for (let i = 0; i < count; i++) {
        const [loss] = Object.values(await session.runTrainStep(all[i % all.length]));
        losses.push(loss.data[0]);
        await session.runOptimizerStep();
        await session.lazyResetGrad();
      }
    },
    free: () => session.release(),
  };
}

async function milliseconds(contestant, count) {
  const start = performance.now();
  await contestant.run(count);
  return (performance.now() - start) / count;
}

const median = (times) => times.sort((a, b) => a - b)[times.length >> 1];

globalThis.bench = async (name, steps, withPeer) => {
  const first = await ours(name, steps);
  const contestants = [first];
  if (withPeer) contestants.push(await peers(name));
  // Warm afterwards: the engine's best code is there.
  const counts = [];
  for (const one of contestants) counts.push(Math.max(1, Math.round(BLOCK / (await milliseconds(one, WARM)))));
  const times = contestants.map(() => []);
  // In turns, so that what else the machine does is the same for both.
  for (let block = 0; block < BLOCKS; block++) {
    for (const [i, one] of contestants.entries()) times[i].push(await milliseconds(one, counts[i]));
  }
  const losses = contestants[1]?.losses;
  if (losses && !(losses.at(-1) < losses[0])) throw new Error(`the peer does not learn ${name}: ${losses[0]}, then ${losses.at(-1)}`);
  contestants.forEach((one) => one.free());
  const [own, peer] = times.map(median);
  return { name, milliseconds: own, peer, hash: first.hash };
};
