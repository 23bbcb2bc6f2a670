// Draws boxes on a canvas: flame graphs and flamecharts. Only what is visible is asked for and drawn. Beside the canvas there
// is a tree of the same boxes for programs that read the page aloud.  SPDX-License-Identifier: MIT
import { amount, App, changeText, nameOf, packageOf, placeOf, shareChange } from "./app";
import { make } from "./dom";
import type { Boxes } from "./protocol";
import { blend, Raster } from "./raster";
import { quantity, seconds, shorten } from "./text";

const ROW = 20, LABEL_MIN = 28, NARROWEST_PX = 0.5, ITEMS_MAX = 400, ZOOM_STEP = 1.5, PAN_STEP = 0.15;
const DIMMED = 0.4; // what a search does not find

export interface Source {
  fetch(from: number, to: number, narrowest: number): Promise<Boxes>;
  low: number;
  high: number;
  isTime: boolean; // widths are nanoseconds
  growsUp: boolean;
}

export interface Box {
  id: number;
  func: number;
  depth: number;
  start: number;
  width: number;
  self: number;
  base?: number; // total in the base
  merged: number;
}

export interface Events {
  select(box: Box, zooms: boolean): void;
  viewport(from: number, to: number): void;
  open(func: number): void;
  range?(from: number, to: number): void; // dragged with Shift
}

function markup(text: string): string {
  return text.replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);
}

let views = 0;

export class BoxView {
  readonly element: HTMLElement;
  private readonly canvas = make("canvas", { "aria-hidden": "true" });
  private readonly spacer = make("div", { class: "spacer" });
  private readonly items = make("div", { class: "unseen", role: "group" });
  private readonly tip = make("div", { class: "tip", role: "presentation", hidden: true });
  private readonly prefix = `boxes${++views}`;
  private source: Source | null = null;
  private boxes: Boxes | null = null;
  private from = 0;
  private to = 1;
  private isAsking = false;
  private isStale = false;
  private isTurned = true; // the root is to be scrolled to
  private frame = 0;
  private itemsTimer = 0;
  private drag: { x: number; y: number; from: number; to: number; top: number; moved: boolean; isRange: boolean } | null = null;
  private readonly touches = new Map<number, { x: number; value: number }>(); // by finger
  private marked: [number, number] | null = null;
  private hovered: Box | null = null;
  private version = 0;
  private font = "";
  private letter = 0;
  private readonly labels = new Map<number, string>();
  private raster: Raster | null = null;
  selected: Box | null = null;

  constructor(private readonly app: App, label: string, private readonly events: Events) {
    this.element = make("div", { class: "boxes", role: "tree", tabindex: "0", "aria-label": label }, this.canvas, this.spacer, this.items,
                        this.tip);
    new ResizeObserver(() => this.refresh()).observe(this.element);
    this.element.addEventListener("scroll", () => this.redraw());
    this.element.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.canvas.addEventListener("pointerdown", (event) => this.press(event));
    this.canvas.addEventListener("pointermove", (event) => this.move(event));
    this.canvas.addEventListener("pointerup", (event) => this.release(event));
    this.canvas.addEventListener("pointerup", (event) => this.lift(event));
    this.canvas.addEventListener("pointercancel", (event) => this.lift(event));
    this.canvas.addEventListener("pointerleave", () => this.hover(null, 0, 0));
    this.canvas.addEventListener("dblclick", (event) => {
      const box = this.hit(event);
      if (box && box.func >= 0) this.events.open(box.func);
    });
  }

  // --- What is shown --------------------------------------------------------------------------------------------------

  show(source: Source, from: number, to: number): void {
    this.isTurned = source.growsUp !== this.source?.growsUp;
    this.source = source;
    this.version++;
    this.labels.clear(); // the profile may be a newer one
    this.setViewport(from, to);
  }

  get viewport(): [number, number] {
    return [this.from, this.to];
  }

  setViewport(from: number, to: number): void {
    if (!this.source) return;
    const { low, high } = this.source, width = Math.min(Math.max(to - from, (high - low) * 1e-9), high - low);
    this.from = Math.max(low, Math.min(from, high - width));
    this.to = this.from + width;
    this.refresh();
  }

  refresh(): void {
    this.redraw();
    if (this.isAsking) {
      this.isStale = true;
      return;
    }
    if (!this.source || this.element.clientWidth === 0) return;
    this.isAsking = true;
    this.isStale = false;
    const version = this.version, { from, to } = this;
    const narrowest = ((to - from) / this.element.clientWidth) * NARROWEST_PX;
    this.source.fetch(from, to, narrowest).then((boxes) => {
      this.isAsking = false;
      if (version === this.version) this.take(boxes);
      if (this.isStale || version !== this.version) this.refresh();
    }, (error: Error) => {
      this.isAsking = false;
      this.app.announce(error.message);
    });
  }

  private take(boxes: Boxes): void {
    this.boxes = boxes;
    this.spacer.style.height = `${(boxes.depthMax + 1) * ROW + 4}px`;
    if (this.isTurned && boxes.depthMax > 0) {
      this.element.scrollTop = this.source!.growsUp ? this.element.scrollHeight : 0;
      this.isTurned = false;
    }
    if (this.selected) this.selected = this.find(this.selected);
    this.redraw();
    clearTimeout(this.itemsTimer);
    this.itemsTimer = window.setTimeout(() => this.writeItems(), 120);
  }

  private box(index: number): Box {
    const boxes = this.boxes!;
    return { id: boxes.id[index], func: boxes.func[index], depth: boxes.depth[index], start: boxes.start[index], width: boxes.width[index],
             self: boxes.self[index], base: boxes.base[index], merged: boxes.merged[index] };
  }

  private all(): Box[] {
    return this.boxes ? Array.from(this.boxes.id, (_, index) => this.box(index)) : [];
  }

  private find(wanted: Box): Box | null {
    const boxes = this.boxes!;
    for (let i = 0; i < boxes.id.length; i++) {
      if (boxes.depth[i] === wanted.depth && boxes.func[i] === wanted.func && boxes.start[i] === wanted.start) return this.box(i);
    }
    return wanted;
  }

  // --- Drawing --------------------------------------------------------------------------------------------------------

  redraw(): void {
    if (this.frame === 0) this.frame = requestAnimationFrame(() => this.draw());
  }

  // Of the first depth. Reading it from the element costs a layout, so loops over boxes read it once.
  private firstTop(): number {
    const content = Math.max((this.boxes!.depthMax + 1) * ROW, this.element.clientHeight);
    return (this.source!.growsUp ? content - ROW : 0) - this.element.scrollTop;
  }

  private get rowStep(): number {
    return this.source!.growsUp ? -ROW : ROW;
  }

  private rowTop(depth: number): number {
    return this.firstTop() + depth * this.rowStep;
  }

  private draw(): void {
    this.frame = 0;
    const width = this.element.clientWidth, height = this.element.clientHeight, ratio = window.devicePixelRatio || 1;
    if (!this.boxes || !this.source || width === 0 || height === 0) return;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${height}px`;
    }
    const context = this.canvas.getContext("2d", { alpha: false })!;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const raster = (this.raster ||= new Raster(context));
    raster.begin(ratio, this.app.theme.background);
    context.font = this.font ||= getComputedStyle(this.element).font;
    context.textBaseline = "middle";
    this.drawBoxes(context, raster, width, height);
    this.drawMarks(context, width, height);
  }

  private drawBoxes(context: CanvasRenderingContext2D, raster: Raster, width: number, height: number): void {
    const boxes = this.boxes!, { palette, theme, found, state } = this.app, scale = width / (this.to - this.from);
    const isDiff = this.app.sums.base !== null && !this.source!.isTime;
    const letter = (this.letter ||= context.measureText("eeeeeeeeee").width / 10), path: number[] = [];
    const first = this.firstTop(), step = this.rowStep;
    const background = raster.colour(theme.background), line = raster.colour(theme.line);
    const texts: { text: string; x: number; y: number; isMatch: boolean }[] = [];
    for (let i = 0; i < boxes.id.length; i++) {
      const y = first + boxes.depth[i] * step, left = (boxes.start[i] - this.from) * scale, right = left + boxes.width[i] * scale;
      const func = boxes.func[i];
      path[boxes.depth[i]] = func;
      if (y >= height || y + ROW <= 0 || right <= 0 || left >= width) continue;
      const x = Math.max(left, 0), end = Math.min(right, width), shown = Math.max(end - x - (right - left > 3 ? 1 : 0), 0.5);
      const isMatch = found !== null && func >= 0 && found.matches[func] === 1;
      if (boxes.merged[i] > 0) {
        // Thin stripes, which no function has.
        raster.fill(x, y, shown, ROW - 1, found !== null ? blend(line, background, DIMMED) : line);
        for (let row = 3; row < ROW - 2; row += 4) raster.fill(x, y + row, shown, 1.5, background);
        continue;
      }
      const isRecursive = state.colours === "recursion" && func >= 0 && path.slice(0, boxes.depth[i]).includes(func);
      const colour = raster.colour(isMatch ? theme.accent
        : isDiff ? palette.ofChange(shareChange(this.app, boxes.width[i], boxes.base[i])) : isRecursive ? palette.recursive : palette.of(func));
      raster.fill(x, y, shown, ROW - 1, found !== null && !isMatch ? blend(colour, background, DIMMED) : colour);
      if (shown >= LABEL_MIN) {
        const text = this.label(func), letters = Math.floor((shown - 8) / letter);
        texts.push({ text: shorten(text, letters), x: x + 4, y: y + ROW / 2, isMatch });
      }
    }
    raster.finish(); // replaces all pixels: texts come after it
    for (const { text, x, y, isMatch } of texts) {
      context.globalAlpha = found !== null && !isMatch ? DIMMED : 1;
      context.fillStyle = isMatch ? theme.background : theme.text;
      context.fillText(text, x, y);
    }
    context.globalAlpha = 1;
  }

  private label(func: number): string {
    const known = func < 0 ? undefined : this.labels.get(func);
    if (known !== undefined) return known;
    const text = func < 0 ? `all · ${quantity(this.app.sums.total, this.app.profile.types[this.app.selection.type].unit)}` : nameOf(this.app, func);
    if (func >= 0) this.labels.set(func, text);
    return text;
  }

  // The canvas as it is.
  png(): Promise<Blob | null> {
    return new Promise((resolve) => this.canvas.toBlob(resolve));
  }

  // All depths of what is shown between left and right.
  svg(): string {
    const boxes = this.boxes!, { palette, theme, found, sums } = this.app, width = this.element.clientWidth, scale = width / (this.to - this.from);
    const height = (boxes.depthMax + 1) * ROW, lines: string[] = [];
    this.all().forEach((box) => {
      const x = Math.max(0, (box.start - this.from) * scale), end = Math.min(width, (box.start + box.width - this.from) * scale), y = this.source!.growsUp ? height - (box.depth + 1) * ROW : box.depth * ROW;
      if (end <= x) return;
      const isMatch = found !== null && box.func >= 0 && found.matches[box.func] === 1;
      const fill = box.merged > 0 ? theme.line : isMatch ? theme.accent : sums.base && !this.source!.isTime ? palette.ofChange(shareChange(this.app, box.width, box.base || 0)) : palette.of(box.func);
      const text = box.merged > 0 ? "" : this.label(box.func), letters = Math.floor((end - x - 8) / 7);
      lines.push(`<g${found !== null && !isMatch ? ` opacity="${DIMMED}"` : ""}><title>${markup(this.describe(box).join("\n"))}</title><rect x="${x.toFixed(2)}" y="${y}" width="${Math.max(0.5, end - x - 0.5).toFixed(2)}" height="${ROW - 1}" fill="${fill}"/>` +
        (letters >= 2 && text ? `<text x="${(x + 4).toFixed(2)}" y="${y + 14}">${markup(shorten(text, letters))}</text>` : "") + "</g>");
    });
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12" fill="${theme.text}">` +
      `<rect width="100%" height="100%" fill="${theme.background}"/>${lines.join("\n")}</svg>\n`;
  }

  private drawMarks(context: CanvasRenderingContext2D, width: number, height: number): void {
    const scale = width / (this.to - this.from);
    const frame = (box: Box | null, line: number) => {
      if (!box) return;
      const x = (box.start - this.from) * scale;
      context.lineWidth = line;
      context.strokeStyle = this.app.theme.text;
      const left = Math.max(x, -2), right = Math.min(x + Math.max(box.width * scale, 2), width + 2);
      if (right > left) context.strokeRect(left + line / 2, this.rowTop(box.depth) + line / 2, right - left - line, ROW - 1 - line);
    };
    frame(this.hovered, 1);
    frame(this.selected, 2);
    if (this.marked) {
      context.globalAlpha = 0.18;
      context.fillStyle = this.app.theme.accent;
      context.fillRect((this.marked[0] - this.from) * scale, 0, (this.marked[1] - this.marked[0]) * scale, height);
      context.globalAlpha = 1;
    }
  }

  // --- Mouse ----------------------------------------------------------------------------------------------------------

  private at(event: MouseEvent): { x: number; y: number; value: number } {
    const place = this.canvas.getBoundingClientRect(), x = event.clientX - place.left, y = event.clientY - place.top;
    return { x, y, value: this.from + (x / place.width) * (this.to - this.from) };
  }

  private hit(event: MouseEvent): Box | null {
    const boxes = this.boxes;
    if (!boxes) return null;
    const { y, value } = this.at(event);
    const first = this.firstTop(), step = this.rowStep;
    const slack = ((this.to - this.from) / this.element.clientWidth) * 0.5;
    for (let i = 0; i < boxes.id.length; i++) {
      const top = first + boxes.depth[i] * step;
      if (y >= top && y < top + ROW && value >= boxes.start[i] - slack && value < boxes.start[i] + Math.max(boxes.width[i], slack)) return this.box(i);
    }
    return null;
  }

  private wheel(event: WheelEvent): void {
    const width = this.to - this.from, { value } = this.at(event);
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      const factor = Math.exp(event.deltaY * 0.004);
      this.moveTo(value - (value - this.from) * factor, value + (this.to - value) * factor);
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      const step = ((event.deltaX || event.deltaY) / this.element.clientWidth) * width;
      this.moveTo(this.from + step, this.to + step);
    }
  }

  private moveTo(from: number, to: number): void {
    this.setViewport(from, to);
    this.events.viewport(this.from, this.to);
  }

  // The values that are below two fingers stay below them.
  private pinchTo(): void {
    const [first, second] = Array.from(this.touches.values()), left = this.canvas.getBoundingClientRect().left;
    if (Math.abs(second.x - first.x) < 8) return;
    const scale = (second.value - first.value) / (second.x - first.x), from = first.value - (first.x - left) * scale;
    if (scale > 0) this.moveTo(from, from + scale * this.element.clientWidth);
  }

  private lift(event: PointerEvent): void {
    this.touches.delete(event.pointerId);
  }

  private press(event: PointerEvent): void {
    if (event.button !== 0) return;
    if (event.pointerType === "touch") this.touches.set(event.pointerId, { x: event.clientX, value: this.at(event).value });
    if (this.touches.size === 2) {
      this.canvas.setPointerCapture(event.pointerId);
      this.drag = this.marked = null;
      return;
    }
    this.canvas.setPointerCapture(event.pointerId);
    this.drag = { x: event.clientX, y: event.clientY, from: this.from, to: this.to, top: this.element.scrollTop, moved: false,
                  isRange: event.shiftKey && this.events.range !== undefined };
  }

  private move(event: PointerEvent): void {
    const drag = this.drag, touch = this.touches.get(event.pointerId);
    if (touch) touch.x = event.clientX;
    if (touch && this.touches.size === 2) {
      this.pinchTo();
      return;
    }
    if (!drag) {
      this.hover(this.hit(event), event.clientX, event.clientY);
      return;
    }
    if (Math.abs(event.clientX - drag.x) + Math.abs(event.clientY - drag.y) > 4) drag.moved = true;
    if (!drag.moved) return;
    this.hover(null, 0, 0);
    const scale = (drag.to - drag.from) / this.element.clientWidth, step = (drag.x - event.clientX) * scale;
    if (drag.isRange) {
      const left = this.canvas.getBoundingClientRect().left, ends = [drag.x, event.clientX].map((x) => this.from + (x - left) * scale);
      this.marked = [Math.min(...ends), Math.max(...ends)];
      this.redraw();
      return;
    }
    this.moveTo(drag.from + step, drag.to + step);
    this.element.scrollTop = drag.top + drag.y - event.clientY;
  }

  private release(event: PointerEvent): void {
    const drag = this.drag, marked = this.marked;
    this.drag = this.marked = null;
    if (!drag) return;
    if (marked) this.events.range!(marked[0], marked[1]);
    else if (!drag.moved) {
      const box = this.hit(event);
      if (box) this.choose(box, true);
    }
    this.redraw();
  }

  private hover(box: Box | null, x: number, y: number): void {
    this.hovered = box;
    this.tip.hidden = !box;
    this.redraw();
    if (!box) return;
    this.tip.replaceChildren(...this.describe(box).map((line, i) => make("div", { class: i === 0 ? "name" : "" }, line)));
    const width = this.tip.offsetWidth, height = this.tip.offsetHeight;
    this.tip.style.left = `${Math.max(4, Math.min(x + 14, window.innerWidth - width - 8))}px`;
    this.tip.style.top = `${y + 20 + height > window.innerHeight ? y - height - 10 : y + 18}px`;
  }

  describe(box: Box): string[] {
    if (box.merged > 0) return [`${box.merged} narrow boxes`, this.widthOf(box), "zoom in to see them"];
    const lines = [nameOf(this.app, box.func), this.widthOf(box)];
    if (this.app.sums.base && !this.source!.isTime) lines.push(changeText(this.app, box.width, box.base || 0));
    return [...lines, placeOf(this.app, box.func), packageOf(this.app, box.func)].filter((line) => line !== "");
  }

  private widthOf(box: Box): string {
    if (this.source!.isTime) return `${seconds(box.width)}, from ${seconds(box.start)}`;
    return `total ${amount(this.app, box.width)}` + (box.merged > 0 ? "" : `, self ${amount(this.app, box.self)}`);
  }

  // --- Selection and keyboard -----------------------------------------------------------------------------------------

  choose(box: Box, zooms: boolean): void {
    this.selected = box;
    this.app.describe(this.describe(box).join(" · "));
    this.scrollTo(box);
    if (zooms) this.setViewport(box.start, box.start + box.width);
    this.redraw();
    this.writeItems();
    this.events.select(box, zooms);
    if (zooms) this.events.viewport(this.from, this.to);
  }

  // Selects BOX without a notification, and shows it.
  mark(box: Box, zooms: boolean): void {
    this.selected = box;
    if (zooms || box.start < this.from || box.start + box.width > this.to) this.setViewport(box.start, box.start + box.width);
    this.scrollTo(box);
    this.refresh();
  }

  private scrollTo(box: Box): void {
    if (!this.boxes || box.depth > this.boxes.depthMax) return;
    const top = this.rowTop(box.depth), height = this.element.clientHeight;
    if (top < 0) this.element.scrollTop += top - ROW;
    if (top + ROW > height) this.element.scrollTop += top + 2 * ROW - height;
  }

  private neighbour(key: string): Box | null {
    const boxes = this.all().filter((box) => box.start < this.to && box.start + box.width > this.from), from = this.selected;
    if (!from) return boxes[0] || null;
    const up = this.source!.growsUp ? "ArrowDown" : "ArrowUp", end = from.start + from.width, widest = (a: Box, b: Box) => b.width - a.width;
    if (key === up) return boxes.filter((box) => box.depth === from.depth - 1 && box.start <= from.start && box.start + box.width > from.start)[0] || null;
    if (key === "ArrowUp" || key === "ArrowDown")
      return boxes.filter((box) => box.depth === from.depth + 1 && box.start >= from.start && box.start < end).sort(widest)[0] || null;
    const row = boxes.filter((box) => box.depth === from.depth).sort((a, b) => a.start - b.start);
    return (key === "ArrowLeft" ? row.filter((box) => box.start < from.start).pop() : row.filter((box) => box.start > from.start)[0]) || null;
  }

  key(event: KeyboardEvent): boolean {
    const width = this.to - this.from, middle = (this.from + this.to) / 2, pan = width * PAN_STEP;
    const zoom = (factor: number) => this.moveTo(middle - (width / 2) * factor, middle + (width / 2) * factor);
    if (event.key.startsWith("Arrow")) {
      const box = this.neighbour(event.key);
      if (box) this.choose(box, false);
    } else if (event.key === "Enter" && this.selected) this.choose(this.selected, true);
    else if (event.key === "+" || event.key === "=" || event.key === "w") zoom(1 / ZOOM_STEP);
    else if (event.key === "-" || event.key === "s") zoom(ZOOM_STEP);
    else if (event.key === "a") this.moveTo(this.from - pan, this.to - pan);
    else if (event.key === "d") this.moveTo(this.from + pan, this.to + pan);
    else if (event.key === "0" || event.key === "Escape") this.moveTo(this.source!.low, this.source!.high);
    else if (event.key === "Home" || event.key === "End") {
      const boxes = this.all().filter((box) => box.start < this.to && box.start + box.width > this.from);
      const box = event.key === "Home" ? boxes[0] : boxes[boxes.length - 1];
      if (box) this.choose(box, false);
    } else if (event.key === "r" && this.events.range) this.events.range(Math.max(this.from, this.source!.low), Math.min(this.to, this.source!.high));
    else if (event.key === "g" && this.selected && this.selected.func >= 0) this.events.open(this.selected.func);
    else return false;
    return true;
  }

  // Functions from the outermost visible box to the selected one.
  get path(): number[] {
    const { selected } = this;
    if (!selected || !this.boxes) return [];
    const around = this.all().filter((box) => box.depth <= selected.depth && box.func >= 0 && box.start <= selected.start && box.start + box.width > selected.start);
    return around.sort((a, b) => a.depth - b.depth).map((box) => box.func);
  }

  // The widest boxes that are visible, all of them if they are few. Of many boxes, objects are made for these alone.
  private widest(): Box[] {
    const { start, width } = this.boxes!, shown: number[] = [];
    for (let i = 0; i < start.length; i++) if (start[i] < this.to && start[i] + width[i] > this.from) shown.push(i);
    const places = shown.length <= ITEMS_MAX ? shown : Int32Array.from(shown).sort((a, b) => width[b] - width[a] || a - b).subarray(0, ITEMS_MAX);
    return Array.from(places, (place) => this.box(place));
  }

  private writeItems(): void {
    if (!this.boxes || !this.source) return;
    clearTimeout(this.itemsTimer);
    const shown = this.widest(), selected = this.selected;
    const isSelected = (box: Box) => selected !== null && box.depth === selected.depth && box.start === selected.start && box.func === selected.func;
    if (selected && !shown.some(isSelected)) shown.push(selected);
    this.element.removeAttribute("aria-activedescendant");
    this.items.replaceChildren(...shown.map((box, index) => {
      const id = `${this.prefix}-${index}`;
      if (isSelected(box)) this.element.setAttribute("aria-activedescendant", id);
      return make("div", { id, role: "treeitem", "aria-level": box.depth + 1, "aria-selected": isSelected(box) ? "true" : "false",
                           "data-function": box.func, "data-total": box.width, "data-self": box.self, "data-merged": box.merged },
                  this.describe(box).slice(0, 2).join(": "));
    }));
  }
}
