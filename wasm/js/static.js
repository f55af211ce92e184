// Static models: modules that slabgrad_static::export! makes, with a memory of their own that never grows.

const FAULTS = {
  1: ({ input, element, value }) => `input ${input}, element ${element} is ${value}, which is not finite`,
  2: ({ input, element, value, classes }) =>
    `input ${input}, element ${element} is ${value}, not a class index: there are ${classes} classes`,
  3: ({ value }) => `the loss is ${value}; nothing was updated`,
  4: ({ value }) => `a gradient or their norm is ${value}; nothing was updated`,
  5: ({ value }) => `the learning rate is a finite number from 0, found ${value}`,
  7: () => "this is no slab image",
  8: () => "the checksum of the image is wrong: bits have changed since it was written",
  9: () => "the image was made for another network",
  10: () => "the image has not all that training needs",
};

export class StaticModel {
  #module;

  constructor(instance) {
    this.#module = instance.exports;
    const { memory, inputs, image, image_len: imageLength } = this.#module;
    this.inputs = [];
    this.inferenceInputs = [];
    for (const [training, all] of [[1, this.inputs], [0, this.inferenceInputs]]) {
      let start = inputs();
      for (let i = 0, length; (length = this.#module.input_len(training, i)); i++) {
        all.push(new Float32Array(memory.buffer, start, length));
        start += 4 * length;
      }
    }
    this.image = new Uint8Array(memory.buffer, image(), imageLength());
  }

  static async load(source) {
    const response = await (typeof source === "string" || source instanceof URL ? fetch(source) : source);
    if (response instanceof WebAssembly.Module) return new StaticModel(await WebAssembly.instantiate(response, {}));
    const bytes = response instanceof Response ? await response.arrayBuffer() : response;
    return new StaticModel((await WebAssembly.instantiate(bytes, {})).instance);
  }

  init(seed = 0) {
    if (!Number.isSafeInteger(seed) || seed < 0) throw new Error(`the seed is a whole number from 0 to 2^53 - 1, found ${seed}`);
    this.#check(this.#module.init(seed % 2 ** 32, Math.floor(seed / 2 ** 32)));
  }

  trainStep(learningRate, ...data) {
    fill(this.inputs, data);
    this.#check(this.#module.step(learningRate));
    return this.#module.loss();
  }

  predict(...data) {
    fill(this.inferenceInputs, data);
    this.#check(this.#module.infer());
    return new Float32Array(this.#module.memory.buffer, this.#module.inputs(), this.#module.output_len());
  }

  save() {
    this.#check(this.#module.save());
    return this.image.slice();
  }

  load(image) {
    if (image.length !== this.image.length) throw new Error(`the image has ${image.length} bytes, this model's have ${this.image.length}`);
    this.image.set(image);
    this.#check(this.#module.load());
  }

  #check(kind) {
    if (kind === 0) return;
    const [input, element, classes] = [0, 1, 2].map((i) => this.#module.fault_place(i));
    const text = FAULTS[kind]?.({ input, element, classes, value: this.#module.fault_value() });
    throw new Error(text ?? "the module is broken");
  }
}

/** Copies what is handed over; without anything, what lies in the inputs is used. */
function fill(inputs, data) {
  data.forEach((values, i) => {
    const expected = inputs[i]?.length ?? 0;
    if (values.length !== expected) throw new Error(`input ${i} has ${values.length} elements, the program reads ${expected}`);
  });
  data.forEach((values, i) => inputs[i].set(values));
}
