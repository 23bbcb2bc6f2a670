// Source lines with what each of them cost. The host of the page has the files: `offbeat view`.  SPDX-License-Identifier: MIT
import { amount, App, nameOf, unitOf, ViewOfApp } from "./app";
import { make } from "./dom";
import { FunctionTable } from "./function_table";
import type { SourceLine, SourceOfFunction } from "./host";
import { amountCells, shareHeading, Table } from "./table";
import { safe, Unit } from "./text";

const LINE_MAX = 500;

type Row = { file: string; line: null } | { file: string; line: SourceLine };

export class SourceView implements ViewOfApp {
  readonly element: HTMLElement;
  private readonly functions: FunctionTable;
  private readonly title = make("h2", { class: "function" });
  private readonly lines: Table;
  private rows: Row[] = [];
  private unit = new Unit("count", 0);
  private shown = "";

  constructor(private readonly app: App) {
    this.functions = new FunctionTable(app, "source");
    const head = (text: string, kind: string) => make("div", { class: kind, role: "columnheader" }, text);
    const header = make("div", { class: "header", role: "row" }, head("Line", "number line-number"), head("Self", "number"), head("Total", "number"), shareHeading(), head("Source", "name"));
    this.lines = new Table("Source lines", "grid", header, (index) => this.row(this.rows[index]), () => {});
    this.element = make("section", { class: "view source" }, this.functions.element, make("div", { class: "code" }, this.title, this.lines.element));
  }

  private row({ file, line }: Row): HTMLElement {
    if (!line) return make("div", { class: "row file" }, make("div", { class: "name", role: "gridcell" }, safe(file) || "(file not known)"));
    const cells = (key: string, value: number) => amountCells(key, value, this.unit.number(value), this.app.sums.total);
    return make("div", { class: "row", "data-line": line.line }, make("div", { class: "number line-number", role: "gridcell" }, line.line > 0 ? String(line.line) : "–"), cells("self", line.self)[0],
                ...cells("total", line.total), make("div", { class: "name", role: "gridcell" }, safe((line.source || "").replace(/\t/g, "    "), LINE_MAX)));
  }

  // The chosen function, or else the hottest one.
  private get func(): number {
    const { func } = this.app.state, [hottest] = this.functions.path;
    return func >= 0 && func < this.app.profile.names.length ? func : hottest === undefined ? -1 : hottest;
  }

  show(): void {
    const { selection, host } = this.app;
    this.functions.show();
    const key = JSON.stringify([this.func, selection.type, selection.version, host?.hasSource]);
    if (key === this.shown) return;
    this.shown = key;
    if (!host?.hasSource) this.showNothing(host ? "Source lines are shown when the command has ended." : "A page in one file has no source lines; offbeat view shows them.");
    else if (this.func < 0) this.showNothing("There is no function.");
    else void this.load(key, this.func);
  }

  private showNothing(text: string): void {
    this.title.replaceChildren(make("span", { class: "numbers" }, text));
    this.rows = [];
    this.lines.show(0);
  }

  private async load(key: string, func: number): Promise<void> {
    const { profile, host, selection } = this.app, name = profile.names[func];
    const found = await host!.source(name, selection.type).catch(() => null);
    if (key !== this.shown) return;
    if (found && found.length > 0) this.showLines(found, func);
    else this.showNothing(`The profile has no source lines for ${nameOf(this.app, func)}. Debug information (-g) gives them; offbeat symbolize adds them to a file.`);
  }

  private showLines(found: SourceOfFunction[], func: number): void {
    const { state, sums, selection } = this.app, isPart = selection.thread >= 0 || state.range !== null;
    this.unit = new Unit(unitOf(this.app), sums.total);
    this.title.replaceChildren(nameOf(this.app, func), make("span", { class: "numbers" }, `total ${amount(this.app, sums.inclusive[func])} · self ${amount(this.app, sums.self[func])}` +
      (isPart ? " · lines: of all threads and times" : "")));
    this.rows = found.flatMap(({ file, lines }) => [{ file, line: null } as Row, ...lines.map((line) => ({ file, line }))]);
    if (!found.some(({ lines }) => lines.some(({ source }) => source !== undefined))) this.title.append(make("span", { class: "numbers" }, "the files are not on this machine; --source-path names another folder"));
    this.lines.show(this.rows.length);
    const largest = this.rows.reduce((most, { line }, index) => ((line?.self || 0) > (this.rows[most].line?.self || 0) ? index : most), 0);
    this.lines.move(largest);
  }

  get path(): number[] {
    return this.functions.element.contains(document.activeElement) ? this.functions.path : this.func < 0 ? [] : [this.func];
  }

  focus(): void {
    (this.app.state.func < 0 ? this.functions.element : this.lines.element).focus();
  }

  key(event: KeyboardEvent): boolean {
    return (this.lines.element.contains(document.activeElement) ? this.lines : this.functions).key(event);
  }
}
