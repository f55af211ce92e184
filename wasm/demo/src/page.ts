// What both pages need.

import "./style.css";

export function element<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`there is no element ${id}`);
  return found as T;
}

/** A text that is read out: not more often than every few seconds. */
export function announcer(id: string, milliseconds = 4000) {
  const status = element(id);
  let last = -Infinity;
  return (text: string, now = false) => {
    if (!now && performance.now() - last < milliseconds) return;
    last = performance.now();
    status.textContent = text;
  };
}

/** The buttons that train, pause, make a step and start anew; what is returned stops a training that the worker has ended. */
export function trainingButtons(tell: (message: { type: "run" | "pause" | "step" }) => void, reset: () => void, announce: (text: string, now: boolean) => void) {
  const run = element<HTMLButtonElement>("run");
  let isRunning = false;
  const set = (value: boolean) => {
    isRunning = value;
    run.textContent = value ? "Pause" : "Train";
  };
  run.onclick = () => {
    set(!isRunning);
    announce(isRunning ? "Training." : "Paused.", true);
    tell({ type: isRunning ? "run" : "pause" });
  };
  element("step").onclick = () => {
    set(false);
    tell({ type: "step" });
  };
  element("reset").onclick = reset;
  return { stop: () => set(false), isRunning: () => isRunning };
}

export function showError(text: string | undefined) {
  const alert = element("error");
  alert.hidden = text === undefined;
  alert.textContent = text ?? "";
}

export const percent = (share: number, digits = 1) => `${(100 * share).toFixed(digits)} %`;

export function bytes(count: number): string {
  return count < 1024 * 1024 ? `${(count / 1024).toFixed(1)} KB` : `${(count / 1024 / 1024).toFixed(2)} MB`;
}

/** A learning rate from the place of a slider, with two digits. */
export const rateAt = (place: number) => Number((10 ** place).toPrecision(2));

const dark = matchMedia("(prefers-color-scheme: dark)");

/** Draws values from -1 to 1, one pixel each: blue for positive, orange for negative, the page's colour for 0. */
export function drawValues(canvas: HTMLCanvasElement, values: ArrayLike<number>, width: number) {
  const height = values.length / width;
  // To set a size is to throw the old picture's memory away.
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(width, height);
  const zero = dark.matches ? [32, 38, 51] : [240, 242, 247];
  for (let i = 0; i < values.length; i++) {
    const full = values[i] >= 0 ? [45, 108, 223] : [234, 120, 32];
    const strength = Math.min(Math.abs(values[i]), 1);
    for (let c = 0; c < 3; c++) image.data[i * 4 + c] = zero[c] + (full[c] - zero[c]) * strength;
    image.data[i * 4 + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}
