// The callers of a function above it, its callees below.  SPDX-License-Identifier: MIT
import { amount, App, nameOf, ViewOfApp } from "./app";
import { BoxView } from "./box_view";
import { make } from "./dom";
import { FunctionTable } from "./function_table";
import type { TreeKind } from "./protocol";

export class SandwichView implements ViewOfApp {
  readonly element: HTMLElement;
  private readonly table: FunctionTable;
  private readonly title = make("h2", { class: "function" });
  private readonly graphs = make("div", { class: "graphs" });
  private readonly callers: BoxView;
  private readonly callees: BoxView;
  private shown = "";

  constructor(private readonly app: App) {
    const events = { select: () => {}, viewport: () => {}, open: (func: number) => app.update({ func }) };
    this.table = new FunctionTable(app, "sandwich");
    this.callers = new BoxView(app, "Callers", events);
    this.callees = new BoxView(app, "Callees", events);
    this.graphs.append(make("h3", {}, "Callers"), this.callers.element, this.title, this.callees.element, make("h3", {}, "Callees"));
    this.element = make("section", { class: "view sandwich" }, this.table.element, this.graphs);
  }

  private graph(view: BoxView, kind: TreeKind): void {
    const { client, state, sums } = this.app, tree = { kind, func: state.func, order: state.order };
    const total = sums.inclusive[state.func] || 1;
    view.selected = null;
    view.show({ fetch: (from, to, narrowest) => client.ask("boxes", { tree, from, to, narrowest }), low: 0, high: total, isTime: false,
                growsUp: kind === "callers" }, 0, total);
  }

  show(): void {
    const { state, sums, selection, profile } = this.app;
    this.table.show();
    const isChosen = state.func >= 0 && state.func < profile.names.length;
    this.graphs.classList.toggle("unchosen", !isChosen);
    if (!isChosen) {
      this.title.replaceChildren("Choose a function in the table, or double-click a box of the flame graph.");
      return;
    }
    const key = JSON.stringify([state.func, state.order, selection]);
    if (key === this.shown) {
      this.callers.refresh();
      this.callees.refresh();
      return;
    }
    this.shown = key;
    this.title.replaceChildren(nameOf(this.app, state.func), make("span", { class: "numbers" },
      `total ${amount(this.app, sums.inclusive[state.func])} · self ${amount(this.app, sums.self[state.func])}`));
    this.graph(this.callers, "callers");
    this.graph(this.callees, "callees");
  }

  get path(): number[] {
    if (this.table.element.contains(document.activeElement)) return this.table.path;
    const { func } = this.app.state, from = [this.callers, this.callees].find((view) => view.element.contains(document.activeElement));
    const path = from ? from.path : [];
    return path.length === 0 ? (func < 0 ? [] : [func]) : from === this.callers ? path.reverse() : path;
  }

  get picture(): BoxView {
    return this.callees;
  }

  focus(): void {
    (this.app.state.func < 0 ? this.table.element : this.callees.element).focus();
  }

  key(event: KeyboardEvent): boolean {
    if (this.callers.element.contains(document.activeElement)) return this.callers.key(event);
    if (this.callees.element.contains(document.activeElement)) return this.callees.key(event);
    return this.table.key(event);
  }
}
