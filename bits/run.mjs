// Runs a module of `bits` and prints what it writes: node run.mjs FILE
import { readFileSync } from "node:fs";

const decoder = new TextDecoder();
let text = "";
const host = {
  write(at, length) {
    text += decoder.decode(new Uint8Array(instance.exports.memory.buffer, at, length));
  },
};
const { instance } = await WebAssembly.instantiate(readFileSync(process.argv[2]), { host });
const failed = instance.exports.run();
process.stdout.write(text);
process.exitCode = failed;
