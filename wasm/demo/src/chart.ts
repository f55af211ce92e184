// A chart that keeps a bounded number of points: when it is full, every second one goes.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

const MOST_POINTS = 400;
const HEIGHT = 190;

export class Chart {
  private points: [number[], number[]] = [[], []];
  private stride = 1;
  private skipped = 0;
  private isDrawn = true;
  private readonly plot: uPlot;

  constructor(
    element: HTMLElement,
    label: string,
    range?: [number, number],
  ) {
    const style = getComputedStyle(document.documentElement);
    const color = (name: string) => style.getPropertyValue(name).trim();
    const axis = { stroke: color("--soft"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false } };
    this.plot = new uPlot(
      {
        width: element.clientWidth || 300,
        height: HEIGHT,
        legend: { show: false },
        cursor: { drag: { x: false, y: false } },
        scales: { x: { time: false }, y: range ? { range: () => range } : {} },
        axes: [
          { ...axis, size: 30 },
          { ...axis, size: 44 },
        ],
        series: [{}, { label, stroke: color("--accent"), width: 2, points: { show: false } }],
      },
      this.points,
      element,
    );
    new ResizeObserver(() => this.plot.setSize({ width: element.clientWidth, height: HEIGHT })).observe(element);
  }

  clear() {
    this.points = [[], []];
    this.stride = 1;
    this.draw();
  }

  add(x: number, y: number) {
    if (++this.skipped < this.stride) return;
    this.skipped = 0;
    if (this.points[0].length === MOST_POINTS) {
      this.points = this.points.map((all) => all.filter((_, i) => i % 2 === 1)) as [number[], number[]];
      this.stride *= 2;
    }
    this.points[0].push(x);
    this.points[1].push(y);
    this.draw();
  }

  /** A few times a second: the page has other things to do. */
  private draw() {
    if (!this.isDrawn) return;
    this.isDrawn = false;
    setTimeout(() => {
      this.isDrawn = true;
      this.plot.setData(this.points);
    }, 200);
  }
}
