// What was measured while the samples were taken: CPU, memory, frames. Below the flamechart, on its axis.  SPDX-License-Identifier: MIT
import type { App } from "./app";
import { make } from "./dom";
import type { Measurement } from "./protocol";
import { measured, safe, seconds } from "./text";

const HEIGHT = 34, SHOWN_MAX = 32, FRAMES = /_frame_renders$/; // the length of a frame, at its end

interface Track {
  measurement: Measurement;
  canvas: HTMLCanvasElement;
  text: HTMLElement;
  largest: number;
}

export class Measurements {
  readonly element = make("div", { class: "measurements" });
  private tracks: Track[] = [];
  private shown: Measurement[] | null = null;
  private from = 0;
  private to = 1;

  constructor(private readonly app: App) {}

  private fill(all: Measurement[]): void {
    this.shown = all;
    this.element.hidden = all.length === 0;
    this.tracks = all.slice(0, SHOWN_MAX).map((measurement) => {
      const { values, name, unit } = measurement, largest = values.reduce((most, value) => Math.max(most, value), 0), least = values.reduce((most, value) => Math.min(most, value), Infinity);
      const canvas = make("canvas", { "aria-hidden": "true" }), text = make("span", { class: "value" });
      const range = FRAMES.test(name) ? `${values.length}, at most ${measured(largest, unit)}` : `${measured(least, unit)} – ${measured(largest, unit)}`;
      const track = { measurement, canvas, text, largest };
      const element = make("div", { class: "track", role: "img", "aria-label": `${safe(name, 60)}: ${range}` }, canvas, make("span", { class: "name" }, safe(name, 60)), text);
      text.textContent = range;
      element.addEventListener("pointermove", (event) => this.point(track, event, element));
      element.addEventListener("pointerleave", () => (text.textContent = range));
      this.element.append(element);
      return track;
    });
    this.element.replaceChildren(...Array.from(this.element.children).slice(-this.tracks.length || undefined));
  }

  // The value that is nearest to the pointer.
  private point({ measurement: { times, values, unit }, text }: Track, event: PointerEvent, element: HTMLElement): void {
    const place = element.getBoundingClientRect(), time = this.from + ((event.clientX - place.left) / place.width) * (this.to - this.from);
    const next = firstAfter(times, time), nearest = next > 0 && (next === times.length || time - times[next - 1] < times[next] - time) ? next - 1 : next;
    if (nearest < times.length) text.textContent = `${measured(values[nearest], unit)} at ${seconds(times[nearest])}`;
  }

  draw(from: number, to: number, width: number): void {
    const { measurements } = this.app.profile;
    if (this.shown !== measurements) this.fill(measurements);
    Object.assign(this, { from, to });
    for (const track of this.tracks) this.drawTrack(track, width);
  }

  private drawTrack({ measurement: { name, times, values }, canvas, largest }: Track, width: number): void {
    const ratio = window.devicePixelRatio || 1, context = canvas.getContext("2d")!, scale = width / (this.to - this.from), { theme } = this.app;
    canvas.width = width * ratio;
    canvas.height = HEIGHT * ratio;
    context.scale(ratio, ratio);
    const xOf = (time: number) => (time - this.from) * scale, yOf = (value: number) => HEIGHT - 1 - (largest > 0 ? value / largest : 0) * (HEIGHT - 16);
    const first = Math.max(0, firstAfter(times, this.from) - 1), end = Math.min(times.length, firstAfter(times, this.to) + 1);
    if (FRAMES.test(name)) {
      context.fillStyle = name.startsWith("frozen") ? theme.accent : theme.bar;
      for (let i = first; i < times.length && times[i] - values[i] < this.to; i++) context.fillRect(xOf(times[i] - values[i]), 15, Math.max(2, values[i] * scale), HEIGHT - 16);
      return;
    }
    context.beginPath();
    for (let i = first; i < end; i++) context.lineTo(xOf(times[i]), yOf(values[i]));
    context.strokeStyle = theme.bar;
    context.lineWidth = 1.5;
    context.stroke();
    if (end <= first) return;
    context.lineTo(xOf(times[end - 1]), HEIGHT);
    context.lineTo(xOf(times[first]), HEIGHT);
    context.globalAlpha = 0.25;
    context.fillStyle = theme.bar;
    context.fill();
  }
}

function firstAfter(times: Float64Array, time: number): number {
  let low = 0, high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}
