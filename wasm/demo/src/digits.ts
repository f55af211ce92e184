// The page of the digits: it shows, and leaves training to the worker.

import { Chart } from "./chart";
import type { FromWorker, OptimizerName, ToWorker } from "./digits.protocol";
import { Pad } from "./pad";
import { announcer, bytes, drawValues, element, percent, rateAt, showError, trainingButtons } from "./page";

const worker = new Worker(new URL("./digits.worker.ts", import.meta.url), { type: "module" });
const tell = (message: ToWorker) => worker.postMessage(message);

const optimizer = element<HTMLSelectElement>("optimizer");
const rate = element<HTMLInputElement>("rate");
const seed = element<HTMLInputElement>("seed");
const announce = announcer("status");
const lossChart = new Chart(element("loss-chart"), "loss");
const accuracyChart = new Chart(element("accuracy-chart"), "accuracy", [0, 1]);
const pad = new Pad(element<HTMLCanvasElement>("pad"), (pixels) => tell({ type: "draw", pixels }));

let examples: Float32Array | undefined;
let lastAccuracy = 0;
let lowestLoss = Infinity;

function settings() {
  return { seed: Math.max(0, Math.floor(Number(seed.value) || 0)), optimizer: optimizer.value as OptimizerName, rate: rateAt(Number(rate.value)) };
}

function showRate() {
  const text = String(rateAt(Number(rate.value)));
  element("rate-shown").textContent = text;
  // The slider counts in powers of ten.
  rate.setAttribute("aria-valuetext", text);
}

function reset() {
  training.stop();
  showError(undefined);
  tell({ type: "reset", ...settings() });
}

const training = trainingButtons(tell, reset, announce);
seed.onchange = reset;
optimizer.onchange = () => tell({ type: "optimizer", ...settings() });
rate.oninput = () => {
  showRate();
  tell({ type: "rate", rate: settings().rate });
};
element("save").onclick = () => tell({ type: "save" });
element<HTMLInputElement>("load").onchange = async (event) => {
  const input = event.target as HTMLInputElement;
  const file = input.files?.[0];
  if (file) tell({ type: "load", image: new Uint8Array(await file.arrayBuffer()) });
  input.value = "";
};
element("clear").onclick = () => pad.clear();
element("example").onclick = () => {
  if (!examples) return;
  const i = Math.floor(Math.random() * (examples.length / 64));
  pad.show(examples.subarray(i * 64, i * 64 + 64));
};

for (let digit = 0; digit < 10; digit++) {
  const bar = document.createElement("li");
  const name = document.createElement("b");
  name.textContent = String(digit);
  bar.append(name, document.createElement("i"), document.createElement("span"));
  element("bars").append(bar);

  const button = document.createElement("button");
  button.type = "button";
  button.textContent = String(digit);
  button.setAttribute("aria-label", `Add the drawing as ${digit}`);
  button.onclick = () => {
    if (pad.isEmpty) return announce("Draw a digit first.", true);
    tell({ type: "teach", pixels: pad.pixels(), label: digit });
  };
  element("labels").append(button);
}

function showProbabilities(probabilities: Float32Array) {
  const best = probabilities.indexOf(Math.max(...probabilities));
  [...element("bars").children].forEach((bar, digit) => {
    const share = probabilities[digit];
    bar.classList.toggle("best", digit === best);
    (bar.children[1] as HTMLElement).style.setProperty("--share", String(share));
    bar.children[2].textContent = percent(share, 0);
  });
  element("pad").setAttribute("aria-label", pad.isEmpty ? "Drawing pad, empty" : `Drawing pad: taken for ${best}, ${percent(probabilities[best], 0)}`);
}

const cells = makeConfusion(element<HTMLTableElement>("confusion"));

function makeConfusion(table: HTMLTableElement): HTMLTableCellElement[][] {
  const head = table.createTHead().insertRow();
  head.append(document.createElement("td"));
  const header = (scope: string, text: string) => {
    const cell = document.createElement("th");
    cell.scope = scope;
    cell.textContent = text;
    return cell;
  };
  for (let i = 0; i < 10; i++) head.append(header("col", String(i)));
  const body = table.createTBody();
  return Array.from({ length: 10 }, (_, digit) => {
    const row = body.insertRow();
    row.append(header("row", String(digit)));
    return Array.from({ length: 10 }, () => row.insertCell());
  });
}

function showConfusion(confusion: number[][]) {
  confusion.forEach((row, digit) => {
    const sum = row.reduce((a, b) => a + b);
    row.forEach((count, answer) => {
      const cell = cells[digit][answer];
      const share = count / sum;
      const text = count ? String(count) : "·";
      if (cell.textContent === text) return;
      cell.textContent = text;
      // Mistakes are rarer, and are to be seen all the same.
      const strength = count === 0 ? 0.04 : digit === answer ? 0.15 + 0.45 * share : 0.25 + 0.5 * share;
      cell.style.background = digit === answer || count === 0 ? `rgb(var(--shade) / ${strength})` : `rgb(234 120 32 / ${strength})`;
    });
  });
}

function showFilters(filters: Float32Array) {
  const most = Math.max(...filters.map(Math.abs), 1e-9);
  const all = element("filters");
  for (let i = 0; i < filters.length / 9; i++) {
    const canvas = (all.children[i] as HTMLCanvasElement | undefined) ?? all.appendChild(document.createElement("canvas"));
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Filter ${i + 1}`);
    drawValues(canvas, filters.subarray(i * 9, i * 9 + 9).map((weight) => weight / most), 3);
  }
}

const count = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

function hear(message: FromWorker) {
  switch (message.type) {
    case "ready":
      examples = message.examples;
      lossChart.clear();
      accuracyChart.clear();
      lowestLoss = Infinity;
      seed.value = String(message.settings.seed);
      optimizer.value = message.settings.optimizer;
      rate.value = String(Math.log10(message.settings.rate));
      showRate();
      training.stop();
      element("parameters").textContent = count.format(message.parameters);
      for (const id of ["loss", "epoch", "speed", "memory"]) element(id).textContent = "–";
      hear({ type: "own", count: message.own });
      announce("Ready to train.", true);
      if (!pad.isEmpty) tell({ type: "draw", pixels: pad.pixels() });
      return;
    case "progress":
      lowestLoss = Math.min(lowestLoss, message.loss);
      element("loss").textContent = message.loss.toFixed(4);
      element("epoch").textContent = String(message.epoch + 1);
      if (training.isRunning()) element("speed").textContent = count.format(message.speed);
      element("memory").textContent = bytes(message.memory);
      element("module").textContent = bytes(message.module);
      element("loss").dataset.step = String(message.step);
      lossChart.add(message.step, message.loss);
      element("loss-text").textContent = `After ${count.format(message.step)} steps the loss of a batch is ${message.loss.toFixed(4)}; the lowest shown was ${lowestLoss.toFixed(4)}.`;
      announce(`Epoch ${message.epoch + 1}, loss ${message.loss.toFixed(3)}, test accuracy ${percent(lastAccuracy)}.`);
      return;
    case "test":
      lastAccuracy = message.accuracy;
      element("accuracy").textContent = percent(message.accuracy);
      accuracyChart.add(message.step, message.accuracy);
      element("accuracy-text").textContent = `After ${count.format(message.step)} steps ${percent(message.accuracy)} of the test digits are recognised; their loss is ${message.loss.toFixed(4)}.`;
      showConfusion(message.confusion);
      showFilters(message.filters);
      return;
    case "probabilities":
      return showProbabilities(message.probabilities);
    case "own":
      element("own").textContent = message.count === 0 ? "No drawings of your own yet." : `${message.count} of your own drawings ${message.count === 1 ? "is" : "are"} trained with.`;
      return;
    case "paused":
      return announce(`Paused. Test accuracy ${percent(lastAccuracy)}.`, true);
    case "saved": {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([message.image as BlobPart]));
      link.download = "digits.slab";
      link.click();
      URL.revokeObjectURL(link.href);
      return announce("Saved, with the optimizer's state.", true);
    }
    case "error":
      training.stop();
      return showError(message.text);
  }
}

worker.onmessage = ({ data }: MessageEvent<FromWorker>) => hear(data);
worker.onerror = (event) => showError(event.message || "The worker could not be loaded.");
reset();
