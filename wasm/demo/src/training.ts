// A training that can be paused at any step and goes on with the same bits, for workers.

import type { FitOptions, FitProgress, Model, Numbers } from "slabgrad";

export interface Position {
  epoch: number;
  batch: number;
}

export class Training {
  position: Position = { epoch: 0, batch: 0 };
  private running: Promise<void> | undefined;
  private wanted = false;

  constructor(
    readonly model: Model,
    private readonly data: () => { x: Numbers; y: Numbers },
    private readonly options: FitOptions,
    /** Training goes on when the promise that it returns, if it does, is kept. */
    private readonly report: (progress: FitProgress) => void | Promise<void>,
  ) {}

  get isRunning(): boolean {
    return this.wanted;
  }

  /** Trains until it is paused. */
  run(): void {
    this.wanted = true;
    this.running ??= this.loop(() => this.wanted).finally(() => (this.running = undefined));
  }

  /** Stops before the next step. */
  async pause(): Promise<void> {
    this.wanted = false;
    await this.running;
  }

  /** One step. */
  async step(): Promise<void> {
    await this.pause();
    // With no time for a second step, the first report comes after one.
    await this.loop(() => false, 0);
  }

  private async loop(goesOn: () => boolean, interval?: number): Promise<void> {
    const { x, y } = this.data();
    const { epoch, batch } = this.position;
    const options = { ...this.options, epochs: 2 ** 31, firstEpoch: epoch, firstBatch: batch };
    if (interval !== undefined) options.interval = interval;
    for await (const progress of this.model.fit(x, y, options)) {
      const { epochEnd } = progress;
      this.position = epochEnd ? { epoch: progress.epoch + 1, batch: 0 } : { epoch: progress.epoch, batch: progress.batch };
      await this.report(progress);
      if (!goesOn()) return;
    }
  }
}
