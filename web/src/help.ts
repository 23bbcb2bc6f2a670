// All keys, in an overlay.  SPDX-License-Identifier: MIT
import { make } from "./dom";

const KEYS: [heading: string, keys: [string, string][]][] = [
  ["Views", [["1", "flame graph"], ["2", "hottest functions"], ["3", "callers and callees of the selected function"], ["4", "call tree"],
             ["5", "time"], ["6", "source lines, with offbeat view"], ["i", "invert: callers inside"], ["u", "the root above or below"], ["b", "of a comparison: the base beside it"], ["o", "order: largest first, or by name"], ["c", "next colours"],
             ["t", "light or dark"], ["e", "export: files for other programs, pictures"]]],
  ["Boxes", [["two fingers", "zoom and move"], ["arrows, Home, End", "select a neighbour, the first, the last"], ["Enter, click", "zoom to the box"], ["+ − or w s, Ctrl-wheel", "zoom"],
             ["a d, drag, Shift-wheel", "move"], ["0, Escape", "show all"], ["g, double-click", "callers and callees of the function"],
             ["r, Shift-drag", "in time: the flame graph of what is shown, of a range"]]],
  ["Tables and tree", [["↑ ↓ Page Home End", "move"], ["→ ←", "open and close a call"], ["Enter", "callers and callees; in the tree, open and close"],
                       ["g", "callers and callees of the function"]]],
  ["Selected function", [["y", "copy its name"], ["p", "copy its file and line"], ["Y", "copy its stack"],
                          ["m k x f", "with a server: merge, collapse, drop, focus; back undoes it"]]],
  ["Time", [["[ ]", "previous, next thread"], ["↑ ↓ in the list of threads", "the same"], ["arrows in the spans", "previous, next span; Enter: its time"]]],
  ["Search", [["/ or Ctrl-F", "search; /…/ is a regular expression"], ["n N", "next, previous match, the largest first"],
              ["Escape", "leave the field"]]],
  ["Page", [["Alt-← Alt-→", "back and forward"], ["l", "of a command that runs: pause the page, or continue"], ["?", "this help"]]],
];

export function makeHelp(): HTMLDialogElement {
  const dialog = make("dialog", { class: "help", "aria-label": "Keys" });
  const close = make("button", { type: "button", class: "close", "aria-label": "Close" }, "✕");
  close.addEventListener("click", () => dialog.close());
  dialog.append(close, make("h2", {}, "Keys"));
  const columns = make("div", { class: "columns" });
  for (const [heading, keys] of KEYS) {
    const list = make("dl");
    for (const [key, text] of keys) list.append(make("dt", {}, key), make("dd", {}, text));
    columns.append(make("div", {}, make("h3", {}, heading), list));
  }
  dialog.append(columns);
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  return dialog;
}
