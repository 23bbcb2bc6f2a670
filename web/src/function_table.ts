// Functions with their self and total values, sorted and filtered by the search.  SPDX-License-Identifier: MIT
import { App, changeText, nameOf, placeOf, pointsOf, unitOf } from "./app";
import { make } from "./dom";
import type { SortBy, View } from "./state";
import { amountCells, shareHeading, Table } from "./table";
import { Unit } from "./text";

export class FunctionTable {
  readonly element: HTMLElement;
  private readonly table: Table;
  private readonly header = make("div", { class: "header", role: "row" });
  private rows: number[] = [];
  private unit = new Unit("count", 0);
  private shown = "";

  private readonly isShort: boolean;

  // Enter and a click lead to VIEW. Beside it, in the view itself, there is room for few columns.
  constructor(private readonly app: App, private readonly view: View, isShort = true) {
    this.isShort = isShort;
    this.table = new Table("Functions", "grid", this.header, (index) => this.row(this.rows[index]),
                           (index) => app.update({ view: this.view, func: this.rows[index] }));
    this.element = this.table.element;
    if (isShort) this.element.classList.add("short");
  }

  private heading(text: string, sort: SortBy, title: string): HTMLElement {
    const isChosen = this.app.state.sort === sort;
    const press = make("button", { type: "button", title }, !isChosen ? text : sort === "name" ? `${text} ▴` : `▾ ${text}`);
    press.addEventListener("click", () => this.app.update({ sort }));
    return make("div", { class: sort === "name" ? "name" : "number", role: "columnheader",
                         "aria-sort": isChosen ? (sort === "name" ? "ascending" : "descending") : "none" }, press);
  }

  private row(func: number): HTMLElement {
    const { sums, found } = this.app, isMatch = found !== null && found.matches[func] === 1;
    const number = (value: number, key: string) => amountCells(key, value, this.unit.number(value), sums.total);
    const place = make("span", { class: "place" }, this.isShort ? "" : placeOf(this.app, func));
    const name = make("div", { class: "name", role: "gridcell", title: nameOf(this.app, func) }, make("span", {}, nameOf(this.app, func)), place);
    return make("div", { class: isMatch ? "row match" : "row", "data-function": func }, ...number(sums.self[func], "self"),
                ...(this.isShort ? [] : number(sums.inclusive[func], "total")), ...this.change(func), name);
  }

  // How many points the share of its self value grew.
  private change(func: number): HTMLElement[] {
    const { sums } = this.app;
    if (!sums.base || this.isShort) return [];
    const points = pointsOf(this.app, sums.self[func], sums.base.self[func]);
    return [make("div", { class: points > 0 ? "number grown" : "number", role: "gridcell", "data-change": points, title: changeText(this.app, sums.self[func], sums.base.self[func]) },
                 Math.abs(points) < 0.005 ? "0" : `${points > 0 ? "+" : "−"}${Math.abs(points).toFixed(2)}`)];
  }

  show(): void {
    const { state, sums, found, selection, profile } = this.app;
    const key = JSON.stringify([state.sort, state.search, selection]);
    if (key === this.shown) {
      this.table.show(this.rows.length);
      return;
    }
    this.shown = key;
    this.unit = new Unit(unitOf(this.app), sums.total);
    const suffix = this.unit.name ? `, ${this.unit.name}` : "";
    this.header.replaceChildren(this.heading(`Self${suffix}`, "self", "sort by what the function itself has spent"), shareHeading(),
                                ...(this.isShort ? [] : [this.heading(`Total${suffix}`, "total", "sort by the function with all that it calls"), shareHeading()]),
                                ...(sums.base && !this.isShort ? [this.heading("Self, points", "change", "sort by how much the share of the function itself changed")] : []),
                                this.heading("Function", "name", "sort by name"));
    const rows: number[] = [], { base } = sums;
    for (let func = 0; func < profile.names.length; func++) {
      if ((sums.inclusive[func] > 0 || (base !== null && base.inclusive[func] > 0)) && (found === null || found.matches[func] === 1)) rows.push(func);
    }
    const byName = (a: number, b: number) => (profile.names[a] < profile.names[b] ? -1 : profile.names[a] > profile.names[b] ? 1 : 0);
    const { self, inclusive } = sums;
    const change = (func: number) => (base ? Math.abs(pointsOf(this.app, self[func], base.self[func])) : 0);
    rows.sort(state.sort === "name" ? byName
      : state.sort === "change" && base ? (a, b) => change(b) - change(a) || byName(a, b)
      : state.sort === "total" ? (a, b) => inclusive[b] - inclusive[a] || self[b] - self[a] || byName(a, b)
      : (a, b) => self[b] - self[a] || inclusive[b] - inclusive[a] || byName(a, b));
    this.rows = rows;
    this.table.show(rows.length);
  }

  get path(): number[] {
    return this.rows.slice(this.table.current, this.table.current + 1);
  }

  focus(): void {
    this.element.focus();
  }

  key(event: KeyboardEvent): boolean {
    return this.table.key(event);
  }
}
