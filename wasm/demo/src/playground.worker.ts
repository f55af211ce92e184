// Trains small networks on points, and looks at what their neurons answer everywhere.

import { load, Model, type FitProgress, type LayerDescription } from "slabgrad";
import { SIDE, type FromWorker, type Setup, type ToWorker } from "./playground.protocol";
import { points } from "./points";
import { Training } from "./training";

const tell = (message: FromWorker) => postMessage(message);

/** Every place of the map, row by row from the top. */
const places = Float32Array.from({ length: SIDE * SIDE * 2 }, (_, i) => {
  const [place, axis] = [i >> 1, i & 1];
  const [row, column] = [Math.floor(place / SIDE), place % SIDE];
  return axis === 0 ? ((column + 0.5) / SIDE) * 2 - 1 : 1 - ((row + 0.5) / SIDE) * 2;
});

let setup: Setup;
let training: Training;
let data: { x: Float32Array; y: Float32Array };
/** The network up to each hidden layer: models of their own, which get its weights. */
let parts: Model[] = [];
let reported = 0;

function layers({ layers, activation }: Setup): LayerDescription[] {
  const hidden = layers.map((outputs, i): LayerDescription => ({ type: "linear", name: `hidden${i + 1}`, outputs, activation }));
  return [{ type: "input", shape: [2] }, ...hidden];
}

async function reset(next: Setup) {
  await load();
  await training?.pause();
  training?.model.free();
  for (const part of parts) part.free();
  setup = next;
  data = points(setup);
  const hidden = layers(setup);
  const model = new Model([...hidden, { type: "linear", name: "out", outputs: 2 }], { seed: setup.seed });
  model.compile({ optimizer: { type: "adam", learningRate: setup.rate }, loss: "crossEntropy" });
  parts = setup.layers.map((_, i) => new Model(hidden.slice(0, i + 2)));
  training = new Training(model, () => data, { batchSize: 20, seed: setup.seed, interval: 0 }, report);
  tell({ type: "ready", ...data, parameters: model.parameterCount });
  look(model.evaluate(data.x, data.y).loss);
}

/** A small network learns faster than anybody can watch: there is a rest after every step. */
const REST = 4;

function report({ loss }: FitProgress) {
  const now = performance.now();
  if (now - reported > 100 || !training.isRunning) {
    reported = now;
    look(loss);
  }
  if (training.isRunning) return new Promise<void>((resolve) => setTimeout(resolve, REST));
}

function look(loss: number) {
  const { model } = training;
  const weights = model.weights();
  const neurons = parts.map((part, i) => {
    for (const { name } of part.weights()) part.setWeight(name, weights.find((weight) => weight.name === name)!.data);
    const outputs = part.predict(places);
    const count = setup.layers[i];
    const most = setup.activation === "relu" || setup.activation === "identity" ? Math.max(...outputs.map(Math.abs), 1e-6) : 1;
    return Array.from({ length: count }, (_, neuron) => {
      // A sigmoid's answers are from 0 to 1, the others' from -1 to 1.
      const scaled = (value: number) => (setup.activation === "sigmoid" ? value * 2 - 1 : value / most);
      return Float32Array.from({ length: SIDE * SIDE }, (_, place) => scaled(outputs[place * count + neuron]));
    });
  });
  const logits = model.predict(places);
  const answer = Float32Array.from({ length: SIDE * SIDE }, (_, i) => Math.tanh((logits[2 * i + 1] - logits[2 * i]) / 2));
  const accuracy = model.evaluate(data.x, data.y, { batchSize: data.y.length }).accuracy ?? 0;
  tell({ type: "progress", step: model.steps, loss, accuracy, answer, neurons });
}

async function handle(message: ToWorker) {
  switch (message.type) {
    case "reset":
      return reset(message.setup);
    case "run":
      return training.run();
    case "pause":
      return training.pause();
    case "step":
      return training.step();
    case "rate":
      training.model.learningRate = message.rate;
  }
}

onmessage = ({ data }: MessageEvent<ToWorker>) => {
  handle(data).catch((error) => tell({ type: "error", text: error instanceof Error ? error.message : String(error) }));
};
