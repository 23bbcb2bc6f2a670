// Samples by time, as bars.  SPDX-License-Identifier: MIT
import { make } from "./dom";
import { readTheme } from "./palette";
import { timeText } from "./times";

const TICKS = 6, MONTH = 31 * 86400; // seconds

export function drawBars(canvas: HTMLCanvasElement, values: number[], width: number, height: number): void {
  const ratio = window.devicePixelRatio || 1, context = canvas.getContext("2d")!, largest = Math.max(1, ...values);
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.round(height * ratio);
  context.scale(ratio, ratio);
  context.fillStyle = readTheme().bar;
  const step = width / values.length;
  values.forEach((value, i) => {
    const bar = value > 0 ? Math.max(1, (value / largest) * height) : 0;
    context.fillRect(i * step, height - bar, Math.max(step - (step > 3 ? 1 : 0), 0.5), bar);
  });
}

export function sparkline(values: number[], width: number, height: number): HTMLCanvasElement {
  const canvas = make("canvas", { class: "sparkline", "aria-hidden": "true", width, height });
  drawBars(canvas, values, width, height);
  return canvas;
}

// A bar chart of a range of time, in which a drag chooses a part.
export class TimeChart {
  readonly element = make("div", { class: "time-chart" });
  private readonly canvas = make("canvas", { "aria-hidden": "true" });
  private readonly mark = make("div", { class: "window", hidden: true });
  private readonly axis = make("div", { class: "time-axis", "aria-hidden": "true" });
  private values: number[] = [];
  private from = 0;
  private to = 1;

  constructor(choose: (from: number, to: number) => void) {
    this.element.append(this.canvas, this.mark, this.axis);
    this.element.title = "drag to choose a range of time";
    let start = -1;
    const timeAt = (event: PointerEvent) => {
      const place = this.element.getBoundingClientRect();
      return this.from + Math.max(0, Math.min(1, (event.clientX - place.left) / place.width)) * (this.to - this.from);
    };
    this.element.addEventListener("pointerdown", (event) => {
      this.element.setPointerCapture(event.pointerId);
      start = timeAt(event);
    });
    this.element.addEventListener("pointermove", (event) => {
      const time = timeAt(event), value = this.values[Math.floor(((time - this.from) / (this.to - this.from)) * this.values.length)];
      this.element.title = `${timeText(time)}${value === undefined ? "" : `: ${Math.round(value)} samples`}; drag to choose a range of time`;
      if (start >= 0) this.showMark(Math.min(start, timeAt(event)), Math.max(start, timeAt(event)));
    });
    this.element.addEventListener("pointerup", (event) => {
      const end = timeAt(event), [low, high] = [Math.min(start, end), Math.max(start, end)];
      start = -1;
      if (high - low > (this.to - this.from) / 200) choose(low, high);
    });
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  show(values: number[], from: number, to: number): void {
    Object.assign(this, { values, from, to });
    this.writeAxis();
    this.draw();
  }

  // Times of the day; days or months if the range is longer.
  private writeAxis(): void {
    const step = (this.to - this.from) / TICKS, isLong = this.to - this.from > 2 * 86400;
    const text = (time: number) => (isLong ? timeText(time).slice(step > MONTH ? 0 : 5, step > MONTH ? 7 : 10) : timeText(time).slice(11, step < 120 ? 19 : 16));
    const texts = Array.from({ length: this.values.length > 0 ? TICKS : 0 }, (_, i) => text(this.from + i * step));
    this.axis.replaceChildren(...texts.map((each, i) => make("span", {}, i > 0 && each === texts[i - 1] ? "" : each)));
  }

  showMark(from: number, to: number): void {
    const part = (time: number) => 100 * Math.max(0, Math.min(1, (time - this.from) / (this.to - this.from)));
    this.mark.hidden = part(from) >= part(to) || part(to) - part(from) > 99; // all of it needs no mark
    this.mark.style.left = `${part(from)}%`;
    this.mark.style.width = `${part(to) - part(from)}%`;
  }

  private draw(): void {
    drawBars(this.canvas, this.values, this.element.clientWidth, this.canvas.clientHeight);
  }
}
