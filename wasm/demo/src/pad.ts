// A pad to draw a digit on, which comes out as the data does: a bitmap of 32 x 32, counted in blocks of 4 x 4.

const SIZE = 32;
const BLOCK = 4;
const CELLS = SIZE / BLOCK;
/** The radius of the pen, in pixels of the bitmap. */
const PEN = 1.7;

export class Pad {
  private readonly bitmap = new Uint8Array(SIZE * SIZE);
  private readonly context: CanvasRenderingContext2D;
  private last: [number, number] | undefined;
  private cursor: [number, number] = [SIZE / 2, SIZE / 2];

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly changed: (pixels: Float32Array) => void,
  ) {
    this.context = canvas.getContext("2d")!;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.last = this.place(event);
      this.strokeTo(this.last);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (this.last) this.strokeTo(this.place(event));
    });
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => (this.last = undefined));
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("focus", () => this.draw());
    canvas.addEventListener("blur", () => this.draw());
    this.draw();
  }

  clear() {
    this.bitmap.fill(0);
    this.report();
  }

  /** Shows a digit of the data: each cell gets as many pixels as it counted, from its middle on. */
  show(pixels: ArrayLike<number>) {
    const middleFirst = [5, 6, 9, 10, 1, 2, 4, 7, 8, 11, 13, 14, 0, 3, 12, 15];
    this.bitmap.fill(0);
    for (let cell = 0; cell < CELLS * CELLS; cell++) {
      for (const pixel of middleFirst.slice(0, Math.round(pixels[cell] * BLOCK * BLOCK))) {
        const y = Math.floor(cell / CELLS) * BLOCK + Math.floor(pixel / BLOCK);
        this.bitmap[y * SIZE + (cell % CELLS) * BLOCK + (pixel % BLOCK)] = 1;
      }
    }
    this.report();
  }

  get isEmpty() {
    return !this.bitmap.includes(1);
  }

  pixels(): Float32Array {
    const pixels = new Float32Array(CELLS * CELLS);
    this.bitmap.forEach((ink, i) => {
      const cell = Math.floor(i / SIZE / BLOCK) * CELLS + Math.floor((i % SIZE) / BLOCK);
      pixels[cell] += ink / (BLOCK * BLOCK);
    });
    return pixels;
  }

  private place(event: PointerEvent): [number, number] {
    const box = this.canvas.getBoundingClientRect();
    return [((event.clientX - box.left) / box.width) * SIZE, ((event.clientY - box.top) / box.height) * SIZE];
  }

  private key(event: KeyboardEvent) {
    const moves: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const move = moves[event.key];
    if (!move && event.key !== " ") return;
    event.preventDefault();
    if (move) this.cursor = this.cursor.map((at, i) => Math.min(Math.max(at + move[i] * 2, 1), SIZE - 1)) as [number, number];
    if (event.key === " ") {
      this.dot(...this.cursor);
      this.report();
    } else {
      this.draw();
    }
  }

  private strokeTo(to: [number, number]) {
    const from = this.last ?? to;
    const steps = Math.ceil(Math.hypot(to[0] - from[0], to[1] - from[1])) + 1;
    for (let i = 1; i <= steps; i++) {
      const at = i / steps;
      this.dot(from[0] + (to[0] - from[0]) * at, from[1] + (to[1] - from[1]) * at);
    }
    this.last = to;
    this.report();
  }

  private dot(x: number, y: number) {
    for (let i = 0; i < this.bitmap.length; i++) {
      if (Math.hypot((i % SIZE) + 0.5 - x, Math.floor(i / SIZE) + 0.5 - y) <= PEN) this.bitmap[i] = 1;
    }
  }

  private report() {
    this.draw();
    this.changed(this.pixels());
  }

  private draw() {
    const scale = this.canvas.width / SIZE;
    this.context.fillStyle = "#0d1220";
    this.context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    this.context.fillStyle = "#e9eefc";
    this.bitmap.forEach((ink, i) => {
      if (ink) this.context.fillRect((i % SIZE) * scale, Math.floor(i / SIZE) * scale, scale, scale);
    });
    if (document.activeElement === this.canvas) {
      this.context.strokeStyle = "#ffb27a";
      this.context.lineWidth = 2;
      this.context.strokeRect((this.cursor[0] - PEN) * scale, (this.cursor[1] - PEN) * scale, 2 * PEN * scale, 2 * PEN * scale);
    }
  }
}
