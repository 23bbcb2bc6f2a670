// The call tree: each function below its callers, or inverted.  SPDX-License-Identifier: MIT
import { App, nameOf, placeOf, unitOf, ViewOfApp } from "./app";
import { make } from "./dom";
import type { Row, TreeName } from "./protocol";
import { amountCells, shareHeading, Table } from "./table";
import { Unit } from "./text";

const DEPTH_MAX = 500, HOT_SHARE = 0.5;

interface Line extends Row {
  depth: number;
  isOpen: boolean;
}

export class TreeView implements ViewOfApp {
  readonly element: HTMLElement;
  private readonly table: Table;
  private readonly header = make("div", { class: "header", role: "row" });
  private lines: Line[] = [];
  private unit = new Unit("count", 0);
  private shown = "";
  private version = -1; // of the profile that is shown
  private open_: Set<string> | null = null; // paths of names that are open

  constructor(private readonly app: App) {
    this.table = new Table("Call tree", "treegrid", this.header, (index) => this.row(index), (index) => void this.toggle(index));
    this.element = make("section", { class: "view tree" }, this.table.element);
  }

  private get tree(): TreeName {
    return { kind: this.app.state.inverted ? "inverted" : "flame", func: -1, order: this.app.state.order };
  }

  private row(index: number): HTMLElement {
    const line = this.lines[index], { sums, found } = this.app, isMatch = found !== null && found.matches[line.func] === 1;
    const name = make("div", { class: "name", role: "gridcell", title: nameOf(this.app, line.func) },
                      make("span", { class: "toggle", "aria-hidden": "true" }, line.hasChildren ? (line.isOpen ? "▾" : "▸") : ""),
                      make("span", {}, nameOf(this.app, line.func)), make("span", { class: "place" }, placeOf(this.app, line.func)));
    name.style.paddingLeft = `${Math.min(line.depth, 60) * 14}px`;
    const row = make("div", { class: isMatch ? "row match" : "row", "aria-level": line.depth + 1, "data-function": line.func },
                     ...amountCells("total", line.total, this.unit.number(line.total), sums.total), amountCells("self", line.self, this.unit.number(line.self), sums.total)[0], name);
    if (line.hasChildren) row.setAttribute("aria-expanded", line.isOpen ? "true" : "false");
    return row;
  }

  private async rowsOf(box: number, depth: number): Promise<Line[]> {
    const rows = await this.app.client.ask("rows", { tree: this.tree, box });
    return rows.map((row) => ({ ...row, depth, isOpen: false }));
  }

  private async open(index: number): Promise<void> {
    const line = this.lines[index];
    if (!line || line.isOpen || !line.hasChildren || line.depth >= DEPTH_MAX) return;
    const rows = await this.rowsOf(line.id, line.depth + 1), place = this.lines.indexOf(line);
    if (place < 0 || line.isOpen) return;
    line.isOpen = true;
    this.lines = [...this.lines.slice(0, place + 1), ...rows, ...this.lines.slice(place + 1)];
  }

  private close(index: number): void {
    const line = this.lines[index];
    let end = index + 1;
    while (end < this.lines.length && this.lines[end].depth > line.depth) end++;
    this.lines.splice(index + 1, end - index - 1);
    line.isOpen = false;
  }

  private async toggle(index: number): Promise<void> {
    if (!this.lines[index]) return;
    if (this.lines[index].isOpen) this.close(index);
    else await this.open(index);
    this.table.show(this.lines.length);
    this.remember();
  }

  show(): void {
    const key = JSON.stringify([this.tree, this.app.selection]);
    if (key !== this.shown) void this.load(key);
    else this.table.show(this.lines.length);
  }

  private namesOf(index: number): string {
    return this.pathTo(index).map((func) => this.app.profile.names[func]).join("\n");
  }

  // Of a newer profile, the calls that were open are opened; else the path on which most has been spent.
  private async load(key: string): Promise<void> {
    const { version } = this.app.selection, known = version !== this.version ? this.open_ : null;
    this.version = version;
    this.shown = key;
    this.unit = new Unit(unitOf(this.app), this.app.sums.total);
    const suffix = this.unit.name ? `, ${this.unit.name}` : "", head = (text: string, kind: string) => make("div", { class: kind, role: "columnheader" }, text);
    this.header.replaceChildren(head(`Total${suffix}`, "number"), shareHeading(), head(`Self${suffix}`, "number"), head(this.app.state.inverted ? "Function, and its callers" : "Function, and what it calls", "name"));
    const rows = await this.rowsOf(0, 0);
    if (key !== this.shown) return;
    this.lines = rows;
    this.table.show(rows.length); // it may be drawn before all of them are open
    let least = HOT_SHARE * HOT_SHARE * this.app.sums.total; // the first call is opened if it is not one of many
    for (let at = 0; this.lines[at]; at++) {
      const line = this.lines[at], isOpen = known ? known.has(this.namesOf(at)) : line.total >= least && at === line.depth;
      if (isOpen) await this.open(at);
      if (key !== this.shown) return;
      if (!known && !line.isOpen) break;
      least = HOT_SHARE * line.total;
    }
    this.table.show(this.lines.length);
    this.remember();
  }

  private remember(): void {
    this.open_ = new Set(this.lines.map((line, index) => (line.isOpen ? this.namesOf(index) : "")));
  }

  get path(): number[] {
    return this.pathTo(this.table.current);
  }

  private pathTo(index: number): number[] {
    const path: number[] = [];
    for (let at = index; this.lines[at]; at = this.parentOf(at)) {
      path.push(this.lines[at].func);
      if (this.lines[at].depth === 0) break;
    }
    return path.reverse();
  }

  focus(): void {
    this.table.element.focus();
  }

  key(event: KeyboardEvent): boolean {
    const line = this.lines[this.table.current];
    if (event.key === "ArrowRight" && line) {
      if (line.isOpen) this.table.move(this.table.current + 1);
      else void this.toggle(this.table.current);
    } else if (event.key === "ArrowLeft" && line) {
      if (line.isOpen) void this.toggle(this.table.current);
      else this.table.move(this.parentOf(this.table.current));
    } else if (event.key === "g" && line) this.app.update({ view: "sandwich", func: line.func });
    else return this.table.key(event);
    return true;
  }

  private parentOf(index: number): number {
    let at = index;
    while (at > 0 && this.lines[at].depth >= this.lines[index].depth) at--;
    return at;
  }
}
