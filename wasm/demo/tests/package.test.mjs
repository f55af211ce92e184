// The package in Chromium, as a page without a bundler has it: under a strict policy, in both builds, and its static model.

import assert from "node:assert/strict";
import { cp, mkdir, writeFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { launch } from "./browser.mjs";
import { serve } from "../serve.mjs";

const npm = fileURLToPath(new URL("../../../target/npm", import.meta.url));
const folder = fileURLToPath(new URL("../../../target/package-test", import.meta.url));

let browser;
let server;

before(async () => {
  await mkdir(folder, { recursive: true });
  await cp(`${npm}/slabgrad`, `${folder}/slabgrad`, { recursive: true });
  await writeFile(`${folder}/page.html`, `<!doctype html><meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'"><script type="module" src="page.js"></script>`);
  await writeFile(`${folder}/page.js`, `globalThis.slabgrad = { ...(await import("./slabgrad/index.js")), ...(await import("./slabgrad/static.js")) };`);
  [server, browser] = await Promise.all([serve(folder), launch()]);
});
after(async () => {
  await browser?.close();
  await server?.close();
});

async function open() {
  const page = await browser.newPage();
  await page.goto(`${server.address}page.html`);
  await page.waitForFunction(() => globalThis.slabgrad);
  return page;
}

test("both builds have the same bits, and fit pauses, reports and ends", async () => {
  const runs = [];
  for (const simd of [true, false]) {
    const page = await open();
    runs.push(
      await page.evaluate(async (simd) => {
        const { load, Model } = globalThis.slabgrad;
        await load({ simd });
        const model = new Model([{ type: "input", shape: [2] }, { type: "linear", outputs: 8, activation: "tanh" }, { type: "linear", outputs: 2 }]);
        model.compile({ optimizer: { type: "adam", learningRate: 0.05 }, loss: "crossEntropy" });
        const [x, y] = [[0, 0, 0, 1, 1, 0, 1, 1], [0, 1, 1, 0]];
        const reports = [];
        for await (const report of model.fit(x, y, { epochs: 200, batchSize: 3, validation: { x, y } })) {
          if (report.epochEnd) reports.push(report.validation);
        }
        const early = model.fit(x, y, { epochs: 1e6 });
        await early.next();
        await early.return();
        const result = { reports: reports.length, last: reports.at(-1), image: [...model.save()], evaluation: model.evaluate(x, y) };
        model[Symbol.dispose]();
        return result;
      }, simd),
    );
    await page.close();
  }
  assert.equal(runs[0].reports, 200);
  assert.equal(runs[0].last.accuracy, 1);
  assert.equal(runs[0].evaluation.accuracy, 1);
  assert.deepEqual(runs[0], runs[1]);
});

test("a static model learns, is saved and goes on, and says what is wrong", async () => {
  const page = await open();
  for (const name of ["digits.wasm", "digits_simd.wasm"]) {
    const result = await page.evaluate(async (name) => {
      const { StaticModel } = globalThis.slabgrad;
      const model = await StaticModel.load(`./slabgrad/${name}`);
      const images = Float32Array.from({ length: 16 * 64 }, (_, i) => ((i * 389) % 97) / 96);
      const labels = Float32Array.from({ length: 16 }, (_, i) => (i * 7) % 10);
      const text = (action) => {
        try {
          action();
        } catch (error) {
          return error.message;
        }
      };
      model.init(5);
      const first = model.trainStep(0.01, images, labels);
      for (let i = 0; i < 200; i++) model.trainStep(0.01, images, labels);
      const saved = model.save();
      const next = model.trainStep(0.01, images, labels);
      model.init(6);
      model.load(saved);
      const again = model.trainStep(0.01);
      const logits = [...model.predict(images.subarray(0, 64))];
      const wrong = labels.slice();
      wrong[3] = 12;
      const damaged = saved.slice();
      damaged[80] ^= 1;
      return { first, next, again, logits, texts: [text(() => model.trainStep(0.01, images, wrong)), text(() => model.load(damaged)), text(() => model.trainStep(0.01, images.subarray(1), labels))] };
    }, name);
    assert.ok(result.next < result.first / 10, `${name}: ${result.first} ${result.next}`);
    assert.equal(result.again, result.next, "what was saved goes on with the same bits");
    assert.equal(result.logits.indexOf(Math.max(...result.logits)), 0);
    assert.deepEqual(result.texts, [
      "input 1, element 3 is 12, not a class index: there are 10 classes",
      "the checksum of the image is wrong: bits have changed since it was written",
      "input 0 has 1023 elements, the program reads 1024",
    ]);
  }
  await page.close();
});
