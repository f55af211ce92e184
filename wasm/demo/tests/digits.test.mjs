// The page of the digits in Chromium: `node --test`, after it has been built.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, afterEach, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { launch } from "./browser.mjs";
import { serve } from "../serve.mjs";

const built = fileURLToPath(new URL("../../../target/demo", import.meta.url));
const shots = fileURLToPath(new URL("../../../target/screenshots", import.meta.url));

let browser;
let server;
let page;
/** What the page's console says that it should not. */
let complaints;

before(async () => {
  [server, browser] = await Promise.all([serve(built), launch()]);
});
afterEach(async () => {
  await page?.close();
});
after(async () => {
  await browser?.close();
  await server?.close();
});

async function open(options = {}) {
  page = await browser.newPage(options);
  complaints = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(error.message));
  await page.addInitScript(() => {
    globalThis.longTasks = [];
    new PerformanceObserver((list) => globalThis.longTasks.push(...list.getEntries().map((task) => task.duration))).observe({ type: "longtask" });
  });
  await page.goto(server.address);
  await page.getByText("Ready to train.").waitFor();
  return page;
}

const text = (id) => page.locator(`#${id}`).textContent();
const steps = async () => Number((await page.locator("#loss").getAttribute("data-step")) ?? 0);
const accuracy = async () => parseFloat(await text("accuracy"));

async function until(what, condition, seconds = 60) {
  const end = Date.now() + seconds * 1000;
  while (!(await condition())) {
    assert.ok(Date.now() < end, `${what}: not after ${seconds} s`);
    await page.waitForTimeout(50);
  }
}

/** The checkpoint that the page hands out. */
async function save() {
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save" }).click()]);
  return readFile(await download.path());
}

async function loadImage(buffer) {
  await page.locator("#load").setInputFiles({ name: "digits.slab", mimeType: "application/octet-stream", buffer });
}

async function step() {
  const before = await steps();
  await page.getByRole("button", { name: "Step" }).click();
  await until("a step", async () => (await steps()) === before + 1);
}

test("it learns while the page stays smooth, and memory stays as it is", async () => {
  await open({ viewport: { width: 1280, height: 900 } });
  await page.getByRole("button", { name: "Train" }).click();
  await until("95 %", async () => (await accuracy()) >= 95);

  // A drawing's probabilities change while training goes on.
  const pad = await page.locator("#pad").boundingBox();
  await page.mouse.move(pad.x + pad.width * 0.5, pad.y + pad.height * 0.1);
  await page.mouse.down();
  await page.mouse.move(pad.x + pad.width * 0.5, pad.y + pad.height * 0.9, { steps: 10 });
  await page.mouse.up();
  await until("an answer", async () => (await page.locator("#bars .best").count()) === 1);
  const drawn = await page.locator("#pad").getAttribute("aria-label");
  assert.match(drawn, /taken for \d, \d+ %/);

  const start = await steps();
  const before = await text("module");
  await page.evaluate(() => (globalThis.longTasks.length = 0));
  await until("5,000 steps", async () => (await steps()) >= start + 5000, 120);
  assert.equal(await text("module"), before, "the module's memory");
  assert.deepEqual(await page.evaluate(() => globalThis.longTasks), [], "tasks of more than 50 ms on the page's thread");
  await page.screenshot({ path: `${shots}/digits.png`, fullPage: true });
  assert.deepEqual(complaints, []);
});

test("a saved training goes on with the same bits, after a reload as well", async () => {
  await open();
  await page.locator("#optimizer").selectOption("momentum");
  await step();
  await step();
  const saved = await save();
  await step();
  const next = await save();

  await page.reload();
  await page.getByText("Ready to train.").waitFor();
  await loadImage(saved);
  await until("the optimizer of the checkpoint", async () => (await page.locator("#optimizer").inputValue()) === "momentum");
  const before = await steps();
  assert.equal(before, 0);
  await page.getByRole("button", { name: "Step" }).click();
  await until("the third step", async () => (await steps()) === 3);
  assert.ok(next.equals(await save()), "the step after loading");

  const damaged = Buffer.from(saved);
  damaged[100] ^= 1;
  await loadImage(damaged);
  await page.getByText("checksum").waitFor();
  assert.deepEqual(complaints, []);
});

test("a seed decides everything, and drawings of one's own are trained with", async () => {
  await open();
  const losses = [];
  for (let run = 0; run < 2; run++) {
    await page.locator("#seed").fill("7");
    await page.getByRole("button", { name: "Reset" }).click();
    await until("a fresh model", async () => (await text("loss")) === "–");
    await page.getByRole("button", { name: "Step" }).click();
    await until("a loss", async () => (await text("loss")) !== "–");
    losses.push(await text("loss"));
  }
  assert.equal(losses[0], losses[1]);

  // By keyboard alone.
  await page.locator("#pad").focus();
  for (const key of [" ", "ArrowDown", " ", "ArrowDown", " "]) await page.keyboard.press(key);
  await page.getByRole("button", { name: "Add the drawing as 1" }).press("Enter");
  await page.getByText("1 of your own drawings is trained with.").waitFor();
  await page.locator("#rate").press("ArrowRight");
  await step();
  assert.deepEqual(complaints, []);
});

test("it fits a phone, and has a name for everything that can be used", async () => {
  await open({ viewport: { width: 390, height: 844 }, colorScheme: "dark", reducedMotion: "reduce" });
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(width <= 390, `${width} pixels wide`);
  const nameless = await page.evaluate(() =>
    [...document.querySelectorAll("button, select, input, canvas")]
      .filter((element) => !element.parentElement.closest("[role=img]"))
      .filter((element) => !(element.labels?.length || element.getAttribute("aria-label") || element.textContent.trim()))
      .map((element) => element.outerHTML),
  );
  assert.deepEqual(nameless, []);
  await page.screenshot({ path: `${shots}/digits-phone.png`, fullPage: true });
});
