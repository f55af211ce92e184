// The playground: settings live in the address, training in the worker.

import { Chart } from "./chart";
import { announcer, drawValues, element, percent, rateAt, showError, trainingButtons } from "./page";
import { ACTIVATIONS, DATA, SIDE, type FromWorker, type Setup, type ToWorker } from "./playground.protocol";

const worker = new Worker(new URL("./playground.worker.ts", import.meta.url), { type: "module" });
const tell = (message: ToWorker) => worker.postMessage(message);

const form = element<HTMLFormElement>("controls");
const layers = element<HTMLSelectElement>("layers");
const rate = element<HTMLInputElement>("rate");
const noise = element<HTMLInputElement>("noise");
const seed = element<HTMLInputElement>("seed");
const announce = announcer("status");
const chart = new Chart(element("loss-chart"), "loss");

const chosen = (name: string) => new FormData(form).get(name) as string;

function setup(): Setup {
  return {
    data: chosen("data") as Setup["data"],
    activation: chosen("activation") as Setup["activation"],
    layers: layers.value.split(",").filter(Boolean).map(Number),
    rate: rateAt(Number(rate.value)),
    noise: Number(noise.value),
    seed: Math.max(0, Math.floor(Number(seed.value) || 0)),
  };
}

/** Puts all settings into the address. */
function remember() {
  const { data, activation, layers, rate, noise, seed } = setup();
  const settings = new URLSearchParams({ data, activation, layers: layers.join("-"), rate: String(rate), noise: String(noise), seed: String(seed) });
  history.replaceState(null, "", `#${settings}`);
  for (const [input, value] of [[element<HTMLInputElement>("rate"), rate], [element<HTMLInputElement>("noise"), noise]] as const) {
    element(`${input.id}-shown`).textContent = String(value);
    input.setAttribute("aria-valuetext", String(value));
  }
}

/** Takes those settings from the address that are possible. */
function recall() {
  const settings = new URLSearchParams(location.hash.slice(1));
  const radio = (name: string, possible: readonly string[]) => {
    const value = settings.get(name);
    if (value && possible.includes(value)) form.querySelector<HTMLInputElement>(`[name=${name}][value=${value}]`)!.checked = true;
  };
  radio("data", DATA);
  radio("activation", ACTIVATIONS);
  const wanted = settings.get("layers")?.replaceAll("-", ",");
  if (wanted !== undefined && [...layers.options].some((option) => option.value === wanted)) layers.value = wanted;
  const number = (name: string) => (settings.has(name) && Number.isFinite(Number(settings.get(name))) ? Number(settings.get(name)) : undefined);
  const wantedRate = number("rate");
  if (wantedRate && wantedRate > 0) rate.value = String(Math.log10(wantedRate));
  noise.value = String(number("noise") ?? noise.value);
  seed.value = String(number("seed") ?? seed.value);
}

function reset() {
  training.stop();
  showError(undefined);
  remember();
  tell({ type: "reset", setup: setup() });
}

const training = trainingButtons(tell, reset, announce);
rate.oninput = () => {
  remember();
  tell({ type: "rate", rate: setup().rate });
};
form.onchange = (event) => {
  if (event.target !== rate) reset();
};
form.onsubmit = (event) => event.preventDefault();
window.onhashchange = () => {
  recall();
  reset();
};

const boundary = element<HTMLCanvasElement>("boundary");
const map = document.createElement("canvas");
/** The points, drawn once. */
const dots = document.createElement("canvas");

function drawPoints({ x, y }: { x: Float32Array; y: Float32Array }) {
  const size = boundary.width;
  dots.width = dots.height = size;
  const context = dots.getContext("2d")!;
  context.lineWidth = 1.5;
  context.strokeStyle = "#ffffff";
  y.forEach((label, i) => {
    context.beginPath();
    context.arc(((x[2 * i] + 1) / 2) * size, ((1 - x[2 * i + 1]) / 2) * size, 4.5, 0, 2 * Math.PI);
    context.fillStyle = label ? "rgb(22 72 170)" : "rgb(186 80 8)";
    context.fill();
    context.stroke();
  });
}

function drawBoundary(answer: Float32Array) {
  drawValues(map, answer, SIDE);
  const context = boundary.getContext("2d")!;
  context.drawImage(map, 0, 0, boundary.width, boundary.height);
  context.drawImage(dots, 0, 0);
}

function drawNeurons(neurons: Float32Array[][]) {
  const all = element("neurons");
  while (all.children.length > neurons.length) all.lastElementChild!.remove();
  neurons.forEach((layer, i) => {
    let row = all.children[i] as HTMLElement | undefined;
    if (!row) {
      row = all.appendChild(document.createElement("div"));
      row.append(Object.assign(document.createElement("h3"), { textContent: `Hidden layer ${i + 1}` }));
    }
    while (row.children.length - 1 > layer.length) row.lastElementChild!.remove();
    layer.forEach((values, neuron) => {
      let canvas = row.children[neuron + 1] as HTMLCanvasElement | undefined;
      if (!canvas) {
        canvas = row.appendChild(document.createElement("canvas"));
        canvas.setAttribute("role", "img");
        canvas.setAttribute("aria-label", `Answers of neuron ${neuron + 1} of layer ${i + 1}`);
      }
      drawValues(canvas, values, SIDE);
    });
  });
  if (neurons.length === 0) all.textContent = "There is no hidden layer: the answer is a straight line.";
  else if (all.firstChild?.nodeType === Node.TEXT_NODE) all.firstChild.remove();
}

const count = new Intl.NumberFormat("en");

function hear(message: FromWorker) {
  switch (message.type) {
    case "ready":
      drawPoints(message);
      chart.clear();
      element("parameters").textContent = count.format(message.parameters);
      return announce("Ready to train.", true);
    case "progress":
      element("accuracy").textContent = percent(message.accuracy);
      element("loss").textContent = message.loss.toFixed(4);
      element("steps").textContent = count.format(message.step);
      chart.add(message.step, message.loss);
      element("loss-text").textContent = `After ${count.format(message.step)} steps the loss is ${message.loss.toFixed(4)}.`;
      element("boundary-text").textContent = `Points of the data in their colours; the background is the answer. ${percent(message.accuracy)} of the points lie on the right side.`;
      drawBoundary(message.answer);
      drawNeurons(message.neurons);
      if (message.step > 0) announce(`Step ${count.format(message.step)}, loss ${message.loss.toFixed(3)}, accuracy ${percent(message.accuracy)}.`);
      return;
    case "error":
      training.stop();
      return showError(message.text);
  }
}

worker.onmessage = ({ data }: MessageEvent<FromWorker>) => hear(data);
worker.onerror = (event) => showError(event.message || "The worker could not be loaded.");
recall();
reset();
