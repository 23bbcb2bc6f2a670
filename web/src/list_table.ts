// A list as a table: a row for each entry, with the amounts at the right.  SPDX-License-Identifier: MIT
import { make } from "./dom";

// A heading that ends with "#" is of amounts. On a narrow screen, a row is a paragraph whose cells have their headings.
export function listTable(headings: string[], rows: (Node | string)[][]): HTMLElement {
  const textOf = (heading: string) => heading.replace(/#$/, "");
  const classOf = (heading: string) => (heading.endsWith("#") ? "amount" : "");
  const head = make("tr", {}, ...headings.map((text) => make("th", { scope: "col", class: classOf(text) }, textOf(text))));
  const body = rows.map((cells) => make("tr", {}, ...cells.map((cell, i) => make("td", { class: classOf(headings[i]), "data-heading": textOf(headings[i]) }, cell))));
  return make("div", { class: "scroll", tabindex: "0" }, make("table", { class: "list rows" }, make("thead", {}, head), make("tbody", {}, ...body)));
}

export function hint(text: string): HTMLElement {
  return make("p", { class: "hint" }, text);
}
