// Times training steps of the standard workloads in Chromium: node tests/bench.mjs FOLDER, where the package and bench.html lie.
// Prints a line of JSON for each: name, milliseconds per step, and a hash of the parameters after STEPS steps.

import { launch } from "./browser.mjs";
import { serve } from "../serve.mjs";

const [, , folder, steps] = process.argv;
const server = await serve(folder);
const browser = await launch();
try {
  const page = await browser.newPage();
  page.on("pageerror", (error) => console.error(error.message));
  await page.goto(`${server.address}bench.html`);
  for (const name of ["W1", "W2", "W3"]) {
    console.log(JSON.stringify(await page.evaluate(([name, steps]) => globalThis.bench(name, steps), [name, Number(steps)])));
  }
} finally {
  await browser.close();
  await server.close();
}
