// The hottest functions.  SPDX-License-Identifier: MIT
import type { App, ViewOfApp } from "./app";
import { make } from "./dom";
import { FunctionTable } from "./function_table";

export class TopView implements ViewOfApp {
  readonly element: HTMLElement;
  private readonly table: FunctionTable;

  constructor(app: App) {
    this.table = new FunctionTable(app, "sandwich", false);
    this.element = make("section", { class: "view top" }, this.table.element);
  }

  show(): void {
    this.table.show();
  }

  get path(): number[] {
    return this.table.path;
  }

  focus(): void {
    this.table.focus();
  }

  key(event: KeyboardEvent): boolean {
    return this.table.key(event);
  }
}
