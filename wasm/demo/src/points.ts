// Points of two classes in the square from -1 to 1, drawn from a seed.

import type { Setup } from "./playground.protocol";

const COUNT = 400;

/** Mulberry32: numbers from 0 to below 1. */
function generator(seed: number) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function points({ data, noise, seed }: Setup) {
  const random = generator(seed);
  const spread = (size: number) => (random() + random() + random() - 1.5) * size;
  const x = new Float32Array(COUNT * 2);
  const y = new Float32Array(COUNT);
  for (let i = 0; i < COUNT; i++) {
    const label = i % 2;
    let [a, b] = [random() * 1.8 - 0.9, random() * 1.8 - 0.9];
    if (data === "circle") {
      const angle = random() * 2 * Math.PI;
      const radius = label ? 0.4 * Math.sqrt(random()) : 0.65 + 0.25 * random();
      [a, b] = [radius * Math.cos(angle), radius * Math.sin(angle)];
    } else if (data === "xor") {
      a = (label ? 1 : -1) * Math.sign(b) * (0.08 + 0.82 * Math.abs(a));
      b = Math.sign(b) * (0.08 + 0.82 * Math.abs(b));
    } else if (data === "clusters") {
      const middle = label ? 0.45 : -0.45;
      [a, b] = [middle + spread(0.35), middle + spread(0.35)];
    } else {
      const along = Math.floor(i / 2) / (COUNT / 2);
      const angle = along * 3.4 * Math.PI + label * Math.PI;
      [a, b] = [0.9 * along * Math.sin(angle), 0.9 * along * Math.cos(angle)];
    }
    x[i * 2] = a + spread(noise);
    x[i * 2 + 1] = b + spread(noise);
    y[i] = label;
  }
  return { x, y };
}
