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

/** Blue for positive, orange for negative, white or dark for 0, from -1 to 1. */
export function diverging(value: number): [number, number, number] {
  const strength = Math.min(Math.abs(value), 1);
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  const zero = isDark ? [32, 38, 51] : [240, 242, 247];
  const full = value >= 0 ? [45, 108, 223] : [234, 120, 32];
  return zero.map((from, i) => Math.round(from + (full[i] - from) * strength)) as [number, number, number];
}

/** Draws values from -1 to 1, one pixel each. */
export function drawValues(canvas: HTMLCanvasElement, values: ArrayLike<number>, width: number) {
  const height = values.length / width;
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(width, height);
  for (let i = 0; i < values.length; i++) {
    const [red, green, blue] = diverging(values[i]);
    image.data.set([red, green, blue, 255], i * 4);
  }
  context.putImageData(image, 0, 0);
}
