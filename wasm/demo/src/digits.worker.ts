// Trains on the digits.

import { load, memoryBytes, Model, type FitProgress, type LayerDescription, type OptimizerDescription } from "slabgrad";
import digitsUrl from "../../../data/digits.bin?url";
import type { FromWorker, OptimizerName, Settings, ToWorker } from "./digits.protocol";
import { Training, type Position } from "./training";

const LAYERS: LayerDescription[] = [
  { type: "input", shape: [1, 8, 8] },
  { type: "conv2d", name: "conv1", outputs: 8, kernel: 3, padding: 1, activation: "relu" },
  { type: "maxPool2d", size: 2 },
  { type: "conv2d", name: "conv2", outputs: 16, kernel: 3, padding: 1, activation: "relu" },
  "flatten",
  { type: "linear", name: "fc", outputs: 10 },
];
const BATCH = 16;
const TRAINED = 1437;
const PIXELS = 64;

/** What a checkpoint holds beside the model: the user's own bytes in the slab image. */
interface Notes {
  settings: Settings;
  position: Position;
  own: { pixels: number[]; label: number }[];
}

const tell = (message: FromWorker) => postMessage(message);

let settings: Settings;
let training: Training;
let own: Notes["own"] = [];
let drawing: Float32Array | undefined;
let reported = { time: 0, samples: 0, tested: 0 };

const digits = loadDigits();

/** The digits in one order for all seeds, of which the last 360 are for testing. */
async function loadDigits() {
  const bytes = new Uint8Array(await (await fetch(digitsUrl)).arrayBuffer());
  const count = bytes.length / (PIXELS + 1);
  const x = new Float32Array(count * PIXELS);
  const y = new Float32Array(count);
  for (let i = 0; i < count; i++) {
    // 1000 and the number of digits have no common divisor: every digit comes once.
    const start = ((i * 1000) % count) * (PIXELS + 1);
    for (let p = 0; p < PIXELS; p++) x[i * PIXELS + p] = bytes[start + p] / 16;
    y[i] = bytes[start + PIXELS];
  }
  const split = TRAINED * PIXELS;
  return { x: x.slice(0, split), y: y.slice(0, TRAINED), testX: x.slice(split), testY: y.slice(TRAINED) };
}

function optimizer(name: OptimizerName, learningRate: number): OptimizerDescription {
  return name === "momentum" ? { type: "sgd", momentum: 0.9, learningRate } : { type: name, learningRate };
}

function compile(model: Model) {
  model.compile({ optimizer: optimizer(settings.optimizer, settings.rate), loss: "crossEntropy" });
}

/** Trains this model from now on. */
async function start(model: Model) {
  const { x, y, testX } = await digits;
  const data = () => ({
    x: Float32Array.from([...x, ...own.flatMap(({ pixels }) => pixels)]),
    y: Float32Array.from([...y, ...own.map(({ label }) => label)]),
  });
  training?.model.free();
  training = new Training(model, data, { batchSize: BATCH, seed: settings.seed }, report);
  reported = { time: performance.now(), samples: 0, tested: 0 };
  tell({ type: "ready", parameters: model.parameterCount, settings, own: own.length, examples: testX });
  await test();
}

function report(progress: FitProgress) {
  const now = performance.now();
  const { step, epoch, loss, samples } = progress;
  const seconds = (now - reported.time) / 1000;
  if (seconds > 0.1 || !training.isRunning) {
    const speed = Math.max(samples - reported.samples, 0) / seconds;
    const memory = training.model.memory()?.total ?? 0;
    tell({ type: "progress", step, epoch, loss, speed, memory, module: memoryBytes() });
    reported = { ...reported, time: now, samples };
    predict();
  }
  if ((progress.epochEnd && now - reported.tested > 500) || !training.isRunning) void test();
}

async function test() {
  const { testX, testY } = await digits;
  const { model } = training;
  reported.tested = performance.now();
  const logits = model.predict(testX);
  const confusion = Array.from({ length: 10 }, () => new Array<number>(10).fill(0));
  let right = 0;
  testY.forEach((label, i) => {
    const scores = logits.subarray(i * 10, i * 10 + 10);
    const answer = scores.indexOf(Math.max(...scores));
    confusion[label][answer]++;
    right += Number(answer === label);
  });
  const { loss } = model.evaluate(testX, testY, { batchSize: testY.length });
  const filters = model.weight("conv1.weight")!.data;
  tell({ type: "test", step: model.steps, loss, accuracy: right / testY.length, confusion, filters });
  predict();
}

function predict() {
  if (!drawing) return;
  const logits = training.model.predict(drawing);
  const most = Math.max(...logits);
  const powers = logits.map((logit) => Math.exp(logit - most));
  const sum = powers.reduce((a, b) => a + b);
  tell({ type: "probabilities", probabilities: powers.map((power) => power / sum) });
}

async function save() {
  const wasRunning = training.isRunning;
  await training.pause();
  const notes: Notes = { settings, position: training.position, own };
  const image = training.model.save({ user: new TextEncoder().encode(JSON.stringify(notes)) });
  tell({ type: "saved", image });
  if (wasRunning) training.run();
}

async function resume(image: Uint8Array) {
  await training.pause();
  // A model of its own, so that an image that does not fit leaves the old one as it is.
  const model = new Model(LAYERS);
  const before = settings;
  try {
    const notes = JSON.parse(new TextDecoder().decode(model.load(image))) as Notes;
    settings = notes.settings;
    compile(model);
    own = notes.own;
    await start(model);
    training.position = notes.position;
  } catch (error) {
    settings = before;
    model.free();
    throw error;
  }
}

async function handle(message: ToWorker) {
  switch (message.type) {
    case "reset": {
      await load();
      await training?.pause();
      settings = { seed: message.seed, optimizer: message.optimizer, rate: message.rate };
      own = [];
      const model = new Model(LAYERS, { seed: settings.seed });
      compile(model);
      return start(model);
    }
    case "run":
      reported.time = performance.now();
      reported.samples = 0;
      return training.run();
    case "pause":
      await training.pause();
      return tell({ type: "paused" });
    case "step":
      await training.step();
      return tell({ type: "paused" });
    case "optimizer":
      settings = { ...settings, optimizer: message.optimizer, rate: message.rate };
      return compile(training.model);
    case "rate":
      settings = { ...settings, rate: message.rate };
      training.model.learningRate = message.rate;
      return;
    case "draw":
      drawing = message.pixels;
      return predict();
    case "teach": {
      const wasRunning = training.isRunning;
      await training.pause();
      own.push({ pixels: [...message.pixels], label: message.label });
      tell({ type: "own", count: own.length });
      if (wasRunning) training.run();
      return;
    }
    case "save":
      return save();
    case "load":
      return resume(message.image);
  }
}

onmessage = ({ data }: MessageEvent<ToWorker>) => {
  handle(data).catch((error) => tell({ type: "error", text: error instanceof Error ? error.message : String(error) }));
};
