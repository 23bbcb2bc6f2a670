// All that a link reproduces, as the part of the URL after "#".  SPDX-License-Identifier: MIT
import type { Order } from "./protocol";

export type View = "flame" | "top" | "sandwich" | "tree" | "time" | "source";
export type Colours = "package" | "system" | "name" | "recursion";
export type SortBy = "self" | "total" | "change" | "name";

export const VIEWS: View[] = ["flame", "top", "sandwich", "tree", "time", "source"];
export const COLOURS: Colours[] = ["package", "system", "name", "recursion"];

export interface State {
  view: View;
  type: number; // value type; -1: the profile's default
  thread: number; // -1: all
  range: [number, number] | null; // nanoseconds: only samples of this time
  inverted: boolean;
  up: boolean; // the root is below
  sides: boolean; // a comparison shows its base beside it
  order: Order;
  colours: Colours;
  zoom: [number, number] | null; // of the flame graph, parts of the total
  path: number[]; // the selected box
  func: number; // of the sandwich; -1: none
  search: string;
  sort: SortBy;
  lane: number; // thread of the time view; -1: the default
  window: [number, number] | null; // of the time view, nanoseconds
  theme: "" | "light" | "dark"; // "": the system's
}

export const START: State = {
  view: "flame", type: -1, thread: -1, range: null, inverted: false, up: false, sides: false, order: "heavy", colours: "package", zoom: null,
  path: [], func: -1, search: "", sort: "self", lane: -1, window: null, theme: "",
};

const VERSION = "1";
const PATH_MAX = 1000;

function pair(text: string | null): [number, number] | null {
  const [from, to] = (text || "").split("~").map(Number);
  return Number.isFinite(from) && Number.isFinite(to) && from < to ? [from, to] : null;
}

function integer(text: string | null): number {
  return text !== null && /^\d{1,9}$/.test(text) ? Number(text) : -1;
}

function one<Word extends string>(text: string | null, words: readonly Word[], otherwise: Word): Word {
  return words.includes(text as Word) ? (text as Word) : otherwise;
}

export function parseState(hash: string): State {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  if ((given.get("v") || VERSION) !== VERSION) return { ...START };
  const path = (given.get("at") || "").split(".", PATH_MAX).filter((word) => /^[0-9a-z]{1,6}$/.test(word));
  return {
    view: one(given.get("view"), VIEWS, "flame"),
    type: integer(given.get("type")),
    thread: integer(given.get("thread")),
    range: pair(given.get("range")),
    inverted: given.get("inverted") === "1",
    up: given.get("up") === "1",
    sides: given.get("sides") === "1",
    order: one(given.get("order"), ["heavy", "name"] as const, "heavy"),
    colours: one(given.get("colors"), COLOURS, "package"),
    zoom: pair(given.get("zoom")),
    path: path.map((word) => parseInt(word, 36)),
    func: integer(given.get("function")),
    search: given.get("search") || "",
    sort: one(given.get("sort"), ["self", "total", "change", "name"] as const, "self"),
    lane: integer(given.get("lane")),
    window: pair(given.get("window")),
    theme: one(given.get("theme"), ["", "light", "dark"] as const, ""),
  };
}

export function stateText(state: State): string {
  const words: string[] = [];
  const add = (key: string, value: string, otherwise: string) => {
    if (value !== otherwise) words.push(`${key}=${encodeURIComponent(value)}`);
  };
  const range = (value: [number, number] | null) => (value ? `${value[0]}~${value[1]}` : "");
  add("view", state.view, "flame");
  add("type", String(state.type), "-1");
  add("thread", String(state.thread), "-1");
  add("range", range(state.range), "");
  add("inverted", state.inverted ? "1" : "", "");
  add("up", state.up ? "1" : "", "");
  add("sides", state.sides ? "1" : "", "");
  add("order", state.order, "heavy");
  add("colors", state.colours, "package");
  add("zoom", range(state.zoom && [Number(state.zoom[0].toPrecision(9)), Number(state.zoom[1].toPrecision(9))]), "");
  add("at", state.path.slice(0, PATH_MAX).map((func) => func.toString(36)).join("."), "");
  add("function", String(state.func), "-1");
  add("search", state.search, "");
  add("sort", state.sort, "self");
  add("lane", String(state.lane), "-1");
  add("window", range(state.window && [Math.floor(state.window[0]), Math.ceil(state.window[1])]), "");
  add("theme", state.theme, "");
  return words.length > 0 ? `#v=${VERSION}&${words.join("&")}` : "";
}
