// The flame graph: from callers to callees, or inverted.  SPDX-License-Identifier: MIT
import { App, appOfBase, ViewOfApp } from "./app";
import { Box, BoxView } from "./box_view";
import { make } from "./dom";
import type { TreeName } from "./protocol";

export class FlameView implements ViewOfApp {
  readonly element: HTMLElement;
  private readonly boxes: BoxView;
  private readonly base: BoxView;
  private readonly sides: HTMLElement[];
  private shownBase = "";
  private shown = "";
  private version = 0; // of the selection that is shown
  private timer = 0;

  constructor(private readonly app: App) {
    this.boxes = new BoxView(app, "Flame graph", {
      select: (box, zooms) => void this.remember(box.id, zooms),
      viewport: (from, to) => this.rememberZoom(from, to),
      open: (func) => app.update({ view: "sandwich", func }),
    });
    this.base = new BoxView(appOfBase(app), "Flame graph of the base", {
      select: (box, zooms) => void this.selectSame(box, zooms),
      viewport: () => {},
      open: (func) => app.update({ view: "sandwich", func }),
    });
    const heading = (text: string) => make("h3", {}, text);
    this.sides = [make("div", { class: "side" }, heading("Shown"), this.boxes.element), make("div", { class: "side" }, heading("Base"), this.base.element)];
    this.element = make("section", { class: "view flame" }, ...this.sides);
  }

  private get tree(): TreeName {
    return { kind: this.app.state.inverted ? "inverted" : "flame", func: -1, order: this.app.state.order };
  }

  private get hasSides(): boolean {
    return this.app.state.sides && this.app.sums.base !== null;
  }

  private get treeOfBase(): TreeName {
    return { ...this.tree, isBase: true };
  }

  private showBase(): void {
    const { client, sums, selection } = this.app, tree = this.treeOfBase, total = sums.base!.total || 1;
    const key = JSON.stringify([tree, selection, this.app.state.up]);
    if (key === this.shownBase) {
      this.base.refresh();
      return;
    }
    this.shownBase = key;
    this.base.selected = null;
    this.base.show({ fetch: (from, to, narrowest) => client.ask("boxes", { tree, from, to, narrowest }), low: 0, high: total, isTime: false, growsUp: this.app.state.up }, 0, total);
  }

  // What is chosen on one side is chosen on the other one, where it is there.
  private async selectSame(box: Box, zooms: boolean): Promise<void> {
    if (box.id < 0) return;
    const path = await this.app.client.ask("pathOf", { tree: this.treeOfBase, box: box.id });
    await this.select(path, zooms);
    this.app.update({ path }, true);
  }

  private async selectInBase(path: number[], zooms: boolean): Promise<void> {
    const found = await this.app.client.ask("path", { tree: this.treeOfBase, path });
    if (found.depth < path.length) return; // it is not in the base
    this.base.mark({ id: found.box, func: found.depth > 0 ? path[found.depth - 1] : -1, depth: found.depth, start: found.start, width: found.width, self: 0, merged: 0 }, zooms);
  }

  private async remember(id: number, zooms: boolean): Promise<void> {
    if (id < 0) return;
    const path = await this.app.client.ask("pathOf", { tree: this.tree, box: id });
    this.app.update({ path }, true);
    if (this.hasSides) await this.selectInBase(path, zooms);
  }

  private rememberZoom(from: number, to: number): void {
    const total = this.app.sums.total, isAll = from <= 0 && to >= total;
    this.shown = this.key_(isAll ? null : [from / total, to / total]);
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.app.update({ zoom: isAll ? null : [from / total, to / total] }), 250);
  }

  private key_(zoom: [number, number] | null): string {
    return JSON.stringify([this.tree, this.app.selection, this.app.state.up, zoom]);
  }

  show(): void {
    const { state, sums, client } = this.app, tree = this.tree, zoom = state.zoom || [0, 1];
    this.element.classList.toggle("sides", this.hasSides);
    this.sides[1].hidden = !this.hasSides;
    if (this.hasSides) this.showBase();
    if (this.shown === this.key_(state.zoom)) {
      this.boxes.refresh();
      return;
    }
    this.shown = this.key_(state.zoom);
    this.boxes.show({ fetch: (from, to, narrowest) => client.ask("boxes", { tree, from, to, narrowest }), low: 0, high: sums.total || 1,
                      isTime: false, growsUp: state.up }, zoom[0] * sums.total, zoom[1] * sums.total || 1);
    if (state.path.length > 0) void this.select(state.path, this.version !== this.app.selection.version && state.zoom ? "follows" : false);
    this.version = this.app.selection.version;
  }

  // Selects the box of a path of functions. "follows": of a newer profile, where the box that is zoomed to has another place.
  async select(path: number[], zooms: boolean | "follows"): Promise<void> {
    const found = await this.app.client.ask("path", { tree: this.tree, path });
    const func = found.depth > 0 ? path[found.depth - 1] : -1;
    const box = { id: found.box, func, depth: found.depth, start: found.start, width: found.width, self: 0, merged: 0 };
    if (zooms === "follows") this.boxes.mark(box, true);
    else if (zooms) this.boxes.choose(box, true);
    else this.boxes.selected = box;
    this.boxes.refresh();
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
    if (this.base.element.contains(document.activeElement)) return this.base.key(event);
    return this.boxes.key(event);
  }
}
