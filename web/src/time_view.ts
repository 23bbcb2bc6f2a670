// What one thread did, in the order of time, below the activity of all threads.  SPDX-License-Identifier: MIT
import { App, ViewOfApp } from "./app";
import { BoxView } from "./box_view";
import { make } from "./dom";
import { Measurements } from "./measurements";
import type { Lanes, Span } from "./protocol";
import { safe, seconds } from "./text";

const LANES_MAX = 2000, BINS = 600, LANE_HEIGHT = 16, SPAN_ROW = 18, SPAN_ROWS_MAX = 12, SPANS_MAX = 500, TICKS = [1, 2, 5];

export class TimeView implements ViewOfApp {
  readonly element: HTMLElement;
  private readonly list = make("div", { class: "lanes", role: "listbox", "aria-label": "Threads", tabindex: "0" });
  private readonly more = make("p", { class: "hint", hidden: true });
  private readonly axis = make("canvas", { class: "axis", "aria-hidden": "true" });
  private readonly window = make("div", { class: "window", "aria-hidden": "true" });
  private readonly map = make("div", { class: "map", title: "drag to move what is shown" });
  private readonly overview = make("canvas", { "aria-hidden": "true" });
  private readonly spans = make("div", { class: "spans", role: "list", "aria-label": "Spans", "data-arrows": true });
  private readonly rows: Span[][];
  private span: Span | null = null; // that had the focus last
  private readonly boxes: BoxView;
  private readonly measurements: Measurements;
  private readonly hint = make("div", { class: "hint" });
  private lanes: Lanes | null = null;
  private version = -1; // of the profile that LANES are of
  private askedVersion = -1;
  private gaps = new Float64Array(0);
  private readonly gapHint = make("span");
  private shown = "";
  private drawnLanes = "";
  private timer = 0;

  constructor(private readonly app: App) {
    this.boxes = new BoxView(app, "Flamechart", {
      select: () => {},
      viewport: (from, to) => this.remember(from, to),
      open: (func) => app.update({ view: "sandwich", func }),
      range: (from, to) => app.update({ range: [Math.floor(from), Math.ceil(to)], thread: this.thread, view: "flame", zoom: null, path: [] }),
    });
    this.measurements = new Measurements(app);
    this.rows = rowsOf(app.spans);
    this.spans.hidden = this.rows.length === 0;
    this.spans.style.height = `${this.rows.length * SPAN_ROW + 1}px`;
    this.map.append(this.overview, this.window);
    this.element = make("section", { class: "view time" }, this.list, this.more, this.map, this.axis, this.spans, this.boxes.element, this.measurements.element, this.hint);
    new ResizeObserver(() => this.drawAround()).observe(this.boxes.element);
    this.map.addEventListener("pointerdown", (event) => {
      this.map.setPointerCapture(event.pointerId);
      this.jump(event);
    });
    this.map.addEventListener("pointermove", (event) => event.buttons === 1 && this.jump(event));
  }

  private get thread(): number {
    const { state, profile } = this.app;
    return state.lane >= 0 && state.lane < profile.threads.length ? state.lane : profile.thread;
  }

  private get end(): number {
    return Math.max(this.app.profile.durationNs, 1) * 1.0001;
  }

  private jump(event: PointerEvent): void {
    const place = this.map.getBoundingClientRect(), [from, to] = this.boxes.viewport;
    const middle = ((event.clientX - place.left) / place.width) * this.end;
    this.boxes.setViewport(middle - (to - from) / 2, middle + (to - from) / 2);
    this.remember(...this.boxes.viewport);
  }

  private remember(from: number, to: number): void {
    this.drawAround();
    clearTimeout(this.timer);
    const isAll = from <= 0 && to >= this.end, window_: [number, number] | null = isAll ? null : [from, to];
    this.timer = setTimeout(() => {
      this.shown = this.keyOf(window_);
      this.app.update({ window: window_ });
    }, 250) as unknown as number;
  }

  private keyOf(range: [number, number] | null): string {
    return JSON.stringify([this.app.selection.version, this.thread, range && [Math.floor(range[0]), Math.ceil(range[1])]]);
  }

  show(): void {
    const { profile, client, state } = this.app;
    this.element.classList.toggle("timeless", !profile.hasTimes);
    if (!profile.hasTimes) {
      if (!this.app.host) {
        const search = new URLSearchParams(location.search), address = new URLSearchParams({ place: "sessions" });
        for (const name of ["project", "service", "from", "to"]) if (search.get(name)) address.set(name, search.get(name)!);
        this.hint.replaceChildren(make("div", { class: "empty" }, make("h2", {}, "What is shown is a sum"), make("p", {}, "The samples of all chunks of the range are added up. Sessions and transactions are shown in the order of time."),
                                       make("p", {}, make("a", { href: `?${address}` }, "Sessions and transactions of this service"))));
        return;
      }
      const code = (text: string) => make("p", {}, make("code", {}, text));
      this.hint.replaceChildren(make("div", { class: "empty" }, make("h2", {}, "This profile has no times"), make("p", {}, "Its samples are sums, as in pprof files. These have times:"),
                                     code("offbeat record -o x.envelope -- ./program"), code("offbeat view -- ./program"), make("p", {}, "and files of perf, Sentry profiles, recordings, and the formats of Chrome and Firefox.")));
      return;
    }
    this.hint.replaceChildren("Shift and drag, or r: the flame graph of a range. Ctrl and wheel, or w and s: zoom. ", this.gapHint);
    const { version } = this.app.selection;
    if (this.askedVersion !== version) {
      this.askedVersion = version;
      void client.ask("lanes", { bins: BINS, most: LANES_MAX, thread: this.thread }).then((lanes) => {
        if (version !== this.app.selection.version) return;
        this.lanes = lanes;
        void client.ask("gaps", {}).then((gaps) => this.takeGaps(gaps, version));
        this.version = version;
        this.writeLanes();
        this.drawAround();
      });
    }
    if (!this.lanes || this.version === version) this.writeLanes();
    if (this.shown !== this.keyOf(state.window)) {
      const thread = this.thread, [from, to] = state.window || [0, this.end];
      this.shown = this.keyOf(state.window);
      this.boxes.show({ fetch: (low, high, narrowest) => client.ask("chart", { thread, from: low, to: high, narrowest }), low: 0,
                        high: this.end, isTime: true, growsUp: false }, from, to);
    } else this.boxes.refresh();
    this.drawAround();
  }

  private takeGaps(gaps: Float64Array, version: number): void {
    if (version !== this.app.selection.version) return;
    this.gaps = gaps;
    const count = gaps.length / 2, sum = gaps.reduce((all, time, i) => all + (i % 2 ? time : -time), 0);
    this.gapHint.textContent = count === 0 ? "" : `Hatched: ${seconds(sum)} without a sample of any thread, in ${count} ${count === 1 ? "part" : "parts"}.`;
    this.drawAround();
  }

  // Thin lines from the top right to the bottom left.
  private hatch(context: CanvasRenderingContext2D, left: number, width: number, height: number, colour: string): void {
    context.save();
    context.beginPath();
    context.rect(left, 0, Math.max(width, 1), height);
    context.clip();
    context.strokeStyle = colour;
    context.lineWidth = 1;
    context.beginPath();
    for (let x = left - height; x < left + width; x += 5) {
      context.moveTo(x, height);
      context.lineTo(x + height, 0);
    }
    context.stroke();
    context.restore();
  }

  private hatchGaps(context: CanvasRenderingContext2D, from: number, to: number, width: number, height: number, colour: string): void {
    for (let i = 0; i < this.gaps.length; i += 2) {
      if (this.gaps[i + 1] <= from || this.gaps[i] >= to) continue;
      const left = Math.max(0, ((this.gaps[i] - from) / (to - from)) * width), right = Math.min(width, ((this.gaps[i + 1] - from) / (to - from)) * width);
      this.hatch(context, left, right - left, height, colour);
    }
  }

  // --- Threads --------------------------------------------------------------------------------------------------------

  // Before the worker has answered, in the order of the profile.
  private get order(): number[] {
    if (this.lanes) return Array.from(this.lanes.threads);
    const { threads } = this.app.profile, shown: number[] = [];
    for (let thread = 0; thread < threads.length && shown.length < LANES_MAX; thread++) if (threads[thread].samples > 0) shown.push(thread);
    return shown;
  }

  private writeLanes(): void {
    const key = JSON.stringify([this.version, this.app.theme.isDark]);
    if (key !== this.drawnLanes) {
      this.drawnLanes = key;
      this.list.replaceChildren(...this.order.map((thread) => this.lane(thread)));
      this.more.hidden = !this.lanes || this.lanes.more === 0;
      this.more.textContent = this.lanes ? `${this.lanes.more} more threads are not in this list` : "";
    }
    for (const lane of Array.from(this.list.children)) {
      const isShown = Number(lane.getAttribute("data-thread")) === this.thread;
      lane.setAttribute("aria-selected", String(isShown));
      if (isShown) this.list.setAttribute("aria-activedescendant", lane.id);
    }
  }

  private lane(thread: number): HTMLElement {
    const { name, id, samples } = this.app.profile.threads[thread], canvas = make("canvas", { "aria-hidden": "true" });
    const lane = make("div", { id: `lane-${thread}`, class: "lane", role: "option", "data-thread": thread, title: `${samples} samples` },
                      make("span", { class: "name" }, threadName(name, id)), canvas);
    lane.addEventListener("click", () => this.app.update({ lane: thread }));
    if (this.lanes) this.drawLane(canvas, thread, LANE_HEIGHT);
    return lane;
  }

  private drawLane(canvas: HTMLCanvasElement, thread: number, height: number): void {
    const { activity, bins, threads } = this.lanes!, context = canvas.getContext("2d")!, place = threads.indexOf(thread);
    canvas.width = bins;
    canvas.height = height;
    context.fillStyle = this.app.theme.bar;
    for (let bin = 0; bin < bins; bin++) {
      const value = place < 0 ? 0 : activity[place * bins + bin];
      if (value > 0) context.fillRect(bin, height - Math.max(1, value * height), 1, height);
    }
  }

  // --- Minimap and axis -----------------------------------------------------------------------------------------------

  private drawAround(): void {
    if (this.lanes) {
      this.drawLane(this.overview, this.thread, 32);
      this.hatchGaps(this.overview.getContext("2d")!, 0, this.end, this.overview.width, 32, this.app.theme.faint);
    }
    const [from, to] = this.boxes.viewport;
    this.window.hidden = from <= 0 && to >= this.end;
    this.window.style.left = `${(100 * from) / this.end}%`;
    this.window.style.width = `${(100 * (to - from)) / this.end}%`;
    const width = this.boxes.element.clientWidth, ratio = window.devicePixelRatio || 1, context = this.axis.getContext("2d")!;
    if (width === 0) return;
    this.drawSpans(from, to, width);
    this.measurements.draw(from, to, width);
    this.axis.width = width * ratio;
    this.axis.height = 20 * ratio;
    context.scale(ratio, ratio);
    context.font = getComputedStyle(this.element).font;
    context.textBaseline = "middle";
    this.hatchGaps(context, from, to, width, 20, this.app.theme.line);
    const step = stepOf((to - from) / Math.max(1, width / 110));
    for (let time = Math.ceil(from / step) * step; time < to; time += step) {
      const x = ((time - from) / (to - from)) * width;
      context.fillStyle = this.app.theme.line;
      context.fillRect(Math.round(x), 0, 1, 20);
      context.fillStyle = this.app.theme.faint;
      context.fillText(tick(time, step), x + 4, 10);
    }
  }

  // Only spans that are visible; a click shows the time of one.
  private drawSpans(from: number, to: number, width: number): void {
    const shown: HTMLElement[] = [], scale = width / (to - from), hadFocus = this.spans.contains(document.activeElement);
    this.rows.forEach((row, place) => row.forEach((span) => {
      if (span.end <= from || span.start >= to || shown.length >= SPANS_MAX) return;
      const left = Math.max(0, (span.start - from) * scale), right = Math.min(width, (span.end - from) * scale);
      const text = `${safe(span.op, 40)} ${safe(span.name, 200)}`.trim() || "span";
      const press = make("button", { type: "button", class: "span", tabindex: span === this.span ? "0" : "-1", title: `${text}: ${seconds(span.end - span.start)}, from ${seconds(span.start)}` }, text);
      press.style.left = `${left}px`;
      press.style.top = `${place * SPAN_ROW}px`;
      press.style.width = `${Math.max(2, right - left - 1)}px`;
      press.addEventListener("focus", () => (this.span = span));
      press.addEventListener("click", () => this.app.update({ window: [Math.max(0, span.start), Math.min(this.end, span.end)] }));
      shown.push(make("div", { role: "listitem" }, press));
    }));
    this.spans.replaceChildren(...shown);
    const chosen = this.spans.querySelector<HTMLElement>("[tabindex='0']") || this.spans.querySelector("button");
    chosen?.setAttribute("tabindex", "0"); // one of them is reached by Tab, the others by arrows
    if (hadFocus) chosen?.focus();
  }

  get path(): number[] {
    return this.boxes.path;
  }

  get picture(): BoxView {
    return this.boxes;
  }

  focus(): void {
    this.boxes.element.focus();
  }

  key(event: KeyboardEvent): boolean {
    const isLane = document.activeElement === this.list;
    if (event.key === "[" || event.key === "]" || (isLane && (event.key === "ArrowUp" || event.key === "ArrowDown"))) {
      const order = this.order, place = order.indexOf(this.thread) + (event.key === "]" || event.key === "ArrowDown" ? 1 : -1);
      if (order[place] !== undefined) this.app.update({ lane: order[place] });
      this.list.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
      return true;
    }
    if (this.spans.contains(document.activeElement) && event.key.startsWith("Arrow")) {
      const all = Array.from(this.spans.querySelectorAll("button")), step = event.key === "ArrowRight" || event.key === "ArrowDown" ? 1 : -1;
      const next = all[all.indexOf(document.activeElement as HTMLButtonElement) + step];
      document.activeElement!.setAttribute("tabindex", "-1");
      (next || document.activeElement as HTMLElement).setAttribute("tabindex", "0");
      (next || document.activeElement as HTMLElement).focus();
      return true;
    }
    return this.boxes.key(event);
  }
}

// A span is below those that it begins in.
function rowsOf(spans: Span[]): Span[][] {
  const rows: Span[][] = [];
  for (const span of spans.slice().sort((a, b) => a.start - b.start || b.end - a.end)) {
    const row = rows.find((each) => each[each.length - 1].end <= span.start);
    if (row) row.push(span);
    else if (rows.length < SPAN_ROWS_MAX) rows.push([span]);
  }
  return rows;
}

// The same number of digits at each mark, enough that neighbours differ.
function tick(time: number, step: number): string {
  const [factor, unit] = step >= 1e8 ? [1e9, "s"] : step >= 1e5 ? [1e6, "ms"] : [1e3, "µs"];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / factor) - 1e-9));
  return `${(time / factor).toFixed(digits)} ${unit}`;
}

function stepOf(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return (TICKS.find((factor) => factor * power >= least) || 10) * power;
}

export function threadName(name: string, id: string): string {
  if (name && id && name !== id) return `${safe(name, 100)} (${safe(id, 40)})`;
  return safe(name || id, 100) || "(none)";
}

export function rangeText(range: [number, number]): string {
  return `${seconds(range[0])} – ${seconds(range[1])}`;
}
