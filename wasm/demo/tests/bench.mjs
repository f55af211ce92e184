// Times training steps of the standard workloads in Chromium: node tests/bench.mjs FOLDER STEPS, where the package and
// bench.html lie in the folder, and ONNX Runtime in its folder `peer`, if it is to run beside.
// Prints a line of JSON for each: name, milliseconds per step, the peer's, and a hash of our parameters after STEPS steps.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { launch } from "./browser.mjs";
import { serve } from "../serve.mjs";

const [, , folder, steps] = process.argv;
const server = await serve(folder);
const browser = await launch();
try {
  const page = await browser.newPage();
  page.on("pageerror", (error) => console.error(error.message));
  await page.goto(`${server.address}bench.html`);
  const withPeer = existsSync(join(folder, "peer"));
  if (withPeer) await page.addScriptTag({ url: "./peer/ort.training.wasm.min.js" });
  for (const name of ["W1", "W2", "W3"]) {
    console.log(JSON.stringify(await page.evaluate((given) => globalThis.bench(...given), [name, Number(steps), withPeer])));
  }
} finally {
  await browser.close();
  await server.close();
}
