// The flame graph: from callers to callees, or inverted.  SPDX-License-Identifier: MIT
import type { App, ViewOfApp } from "./app";
import { BoxView } from "./box_view";
import { make } from "./dom";
import type { TreeName } from "./protocol";

export class FlameView implements ViewOfApp {
  readonly element: HTMLElement;
  private readonly boxes: BoxView;
  private shown = "";
  private timer = 0;

  constructor(private readonly app: App) {
    this.boxes = new BoxView(app, "Flame graph", {
      select: (box) => void this.remember(box.id),
      viewport: (from, to) => this.rememberZoom(from, to),
      open: (func) => app.update({ view: "sandwich", func }),
    });
    this.element = make("section", { class: "view flame" }, this.boxes.element);
  }

  private get tree(): TreeName {
    return { kind: this.app.state.inverted ? "inverted" : "flame", func: -1, order: this.app.state.order };
  }

  private async remember(id: number): Promise<void> {
    if (id < 0) return;
    const path = await this.app.client.ask("pathOf", { tree: this.tree, box: id });
    this.app.update({ path }, true);
  }

  private rememberZoom(from: number, to: number): void {
    const total = this.app.sums.total, isAll = from <= 0 && to >= total;
    this.shown = this.key_(isAll ? null : [from / total, to / total]);
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.app.update({ zoom: isAll ? null : [from / total, to / total] }), 250);
  }

  private key_(zoom: [number, number] | null): string {
    return JSON.stringify([this.tree, this.app.selection, zoom]);
  }

  show(): void {
    const { state, sums, client } = this.app, tree = this.tree, zoom = state.zoom || [0, 1];
    if (this.shown === this.key_(state.zoom)) {
      this.boxes.refresh();
      return;
    }
    this.shown = this.key_(state.zoom);
    this.boxes.show({ fetch: (from, to, narrowest) => client.ask("boxes", { tree, from, to, narrowest }), low: 0, high: sums.total || 1,
                      isTime: false, growsUp: false }, zoom[0] * sums.total, zoom[1] * sums.total || 1);
    if (state.path.length > 0) void this.select(state.path, false);
  }

  // Selects the box of a path of functions.
  async select(path: number[], zooms: boolean): Promise<void> {
    const found = await this.app.client.ask("path", { tree: this.tree, path });
    const func = found.depth > 0 ? path[found.depth - 1] : -1;
    const box = { id: found.box, func, depth: found.depth, start: found.start, width: found.width, self: 0, merged: 0 };
    if (zooms) this.boxes.choose(box, true);
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
    return this.boxes.key(event);
  }
}
