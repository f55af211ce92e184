// The playground in Chromium.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { launch } from "./browser.mjs";
import { serve } from "../serve.mjs";

const built = fileURLToPath(new URL("../../../target/demo", import.meta.url));
const shots = fileURLToPath(new URL("../../../target/screenshots", import.meta.url));

let browser;
let server;

before(async () => {
  [server, browser] = await Promise.all([serve(built), launch()]);
});
after(async () => {
  await browser?.close();
  await server?.close();
});

test("a network learns a circle, and its address is all there is to it", async () => {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  const complaints = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(error.message));
  const text = (id, on = page) => on.locator(`#${id}`).textContent();
  const loss = async (on) => {
    await on.getByText("Ready to train.").waitFor();
    for (let step = 1; step <= 3; step++) {
      await on.getByRole("button", { name: "Step" }).click();
      await on.locator("#steps").getByText(String(step), { exact: true }).waitFor();
    }
    return text("loss", on);
  };

  await page.goto(`${server.address}playground.html#data=circle&activation=tanh&layers=6-4&rate=0.02&noise=0.1&seed=3`);
  const first = await loss(page);
  assert.equal(await page.locator("#neurons canvas").count(), 10);
  const other = await browser.newPage();
  await other.goto(page.url());
  assert.equal(await loss(other), first, "the same address has the same bits");
  await other.close();

  await page.getByRole("button", { name: "Train" }).click();
  const end = Date.now() + 60_000;
  while (parseFloat(await text("accuracy")) < 95) {
    assert.ok(Date.now() < end, `accuracy ${await text("accuracy")} after a minute`);
    await page.waitForTimeout(100);
  }
  await page.screenshot({ path: `${shots}/playground.png`, fullPage: true });

  await page.getByLabel("Spiral").check();
  await page.getByLabel("Hidden layers").selectOption("8,8");
  assert.match(page.url(), /data=spiral.*layers=8-8/);
  await page.getByText("Ready to train.").waitFor();
  assert.equal(await page.locator("#neurons canvas").count(), 16);
  await page.close();
  assert.deepEqual(complaints, []);
});
