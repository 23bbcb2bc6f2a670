// A table of which only the visible rows exist. All rows are equally high.  SPDX-License-Identifier: MIT
import { make } from "./dom";
import { percent } from "./text";

const ROW = 24, MARGIN = 8;
let tables = 0;

// A number and its share of WHOLE. A 0 is faint, so that the others are easy to see.
export function amountCells(key: string, value: number, text: string, whole: number): HTMLElement[] {
  const cell = make("div", { class: value === 0 ? "number zero" : "number", role: "gridcell", [`data-${key}`]: value }, value === 0 ? "0" : text);
  const part = make("div", { class: "number part", role: "gridcell" }, value === 0 ? "" : percent(value, whole));
  part.style.setProperty("--part", `${whole > 0 ? (100 * value) / whole : 0}%`);
  return [cell, part];
}

export function shareHeading(): HTMLElement {
  return make("div", { class: "number share", role: "columnheader", "aria-label": "share of the total" });
}

export class Table {
  readonly element: HTMLElement;
  private readonly body = make("div", { class: "rows", role: "rowgroup" });
  private readonly spacer = make("div", { class: "spacer" });
  private count = 0;
  private frame = 0;
  private readonly prefix = `table${++tables}`;
  current = 0;

  // WRITE makes the cells of a row. CHOOSE: Enter or a click.
  constructor(label: string, role: "table" | "treegrid" | "grid", private readonly header: HTMLElement,
              private readonly write: (index: number) => HTMLElement, private readonly choose: (index: number) => void) {
    this.element = make("div", { class: "table", role, tabindex: "0", "aria-label": label }, header, this.body, this.spacer);
    this.element.addEventListener("scroll", () => this.redraw());
    this.body.addEventListener("click", (event) => {
      const row = (event.target as HTMLElement).closest("[data-index]");
      if (!row) return;
      this.move(Number(row.getAttribute("data-index")));
      this.choose(this.current);
    });
    new ResizeObserver(() => this.redraw()).observe(this.element);
  }

  show(count: number): void {
    this.count = count;
    this.current = Math.max(0, Math.min(this.current, count - 1));
    this.element.setAttribute("aria-rowcount", String(count + 1));
    this.redraw();
  }

  private redraw(): void {
    if (this.frame === 0) this.frame = requestAnimationFrame(() => this.draw());
  }

  private draw(): void {
    this.frame = 0;
    const height = this.element.clientHeight;
    const first = Math.max(0, Math.floor(this.element.scrollTop / ROW) - MARGIN);
    const end = Math.min(this.count, first + Math.ceil(height / ROW) + 2 * MARGIN);
    const rows: HTMLElement[] = [];
    for (let i = first; i < end; i++) {
      const row = this.write(i);
      row.setAttribute("role", "row");
      row.setAttribute("data-index", String(i));
      row.setAttribute("aria-rowindex", String(i + 2));
      row.id = `${this.prefix}-${i}`;
      row.classList.toggle("current", i === this.current);
      rows.push(row);
    }
    this.body.replaceChildren(...rows);
    this.body.style.transform = `translateY(${first * ROW}px)`;
    this.spacer.style.height = `${this.count * ROW + this.header.offsetHeight}px`;
    const current = rows[this.current - first];
    if (current) this.element.setAttribute("aria-activedescendant", current.id);
  }

  move(index: number): void {
    this.current = Math.max(0, Math.min(index, this.count - 1));
    const top = this.current * ROW, height = this.element.clientHeight - this.header.offsetHeight;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    if (top + ROW > this.element.scrollTop + height) this.element.scrollTop = top + ROW - height;
    this.redraw();
  }

  key(event: KeyboardEvent): boolean {
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW) - 2);
    const steps: { [key: string]: number } = { ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page, Home: -this.count, End: this.count };
    if (event.key === "Enter" && this.count > 0) this.choose(this.current);
    else if (steps[event.key] !== undefined) this.move(this.current + steps[event.key]);
    else return false;
    return true;
  }
}
