// What the page and its worker send to each other. All numbers of samples are in the profile's unit.
// SPDX-License-Identifier: MIT

export interface ValueType {
  type: string;
  unit: string;
}

export interface Thread {
  name: string;
  id: string;
  samples: number;
}

export interface Measurement {
  name: string;
  unit: string;
  times: Float64Array; // nanoseconds since time 0, ascending
  values: Float64Array;
}

// What does not change while a profile is shown. A function is its place in NAMES.
export interface Profile {
  title: string;
  release: string;
  environment: string;
  types: ValueType[];
  type: number; // to show first
  threads: Thread[];
  thread: number; // to show first in the time view
  hasTimes: boolean;
  startMs: number; // since 1970, of time 0; 0: not known
  durationNs: number;
  samples: number;
  isDiff: boolean; // compared with a base
  measurements: Measurement[];
  names: string[];
  files: string[];
  packages: string[];
  fileOf: Int32Array;
  packageOf: Int32Array;
  lineOf: Int32Array;
  inApp: Uint8Array; // 0: not known, 1: of the system, 2: of the application
}

// What a program says that it did, on the axis of the samples.
export interface Span {
  name: string;
  op: string;
  thread: string; // id; "": not known
  start: number; // nanoseconds since time 0
  end: number;
}

// Which samples count, and by which of their values.
export interface Selection {
  type: number;
  thread: number; // -1: all
  from: number; // nanoseconds since time 0
  to: number; // Infinity: no end
  version: number; // counts the profiles that a page has shown; a new one has other numbers for functions
}

export interface Sums {
  total: number;
  samples: number;
  self: Float64Array; // by function
  inclusive: Float64Array;
  base: Base | null; // the same of what it is compared with
}

export interface Base {
  total: number;
  self: Float64Array;
  inclusive: Float64Array;
}

export type TreeKind = "flame" | "inverted" | "callers" | "callees";
export type Order = "heavy" | "name";

export interface TreeName {
  kind: TreeKind;
  func: number; // of "callers" and "callees"
  isBase?: boolean; // of what the profile is compared with
  order: Order;
}

// Boxes that are visible, depth first. Parent and self of a merged box are of no meaning.
export interface Boxes {
  total: number; // of the root
  id: Int32Array; // -1: merged
  func: Int32Array; // -1: the root
  depth: Int32Array;
  start: Float64Array;
  width: Float64Array;
  self: Float64Array;
  base: Float64Array; // totals in the base
  merged: Int32Array; // how many boxes this one stands for; 0: it is one itself
  depthMax: number;
}

export interface Row {
  id: number;
  func: number;
  total: number;
  self: number;
  hasChildren: boolean;
}

export interface Found {
  matches: Uint8Array; // by function
  functions: number;
  share: number; // of the total, each sample once
  calls: number; // calls that match, outermost ones only
}

export interface Lanes {
  bins: number;
  threads: Int32Array; // the busiest first
  more: number; // threads with samples that are left out
  activity: Float32Array; // by place in THREADS, then bin: 0 … 1
}

export interface Requests {
  // The questions that follow are about this profile; with WAITS, those after "show".
  open: { ask: { bytes: ArrayBuffer; base?: ArrayBuffer; waits?: boolean }; answer: Profile };
  show: { ask: {}; answer: void };
  select: { ask: Selection; answer: Sums };
  boxes: { ask: { tree: TreeName; from: number; to: number; narrowest: number }; answer: Boxes };
  chart: { ask: { thread: number; from: number; to: number; narrowest: number }; answer: Boxes };
  lanes: { ask: { bins: number; most: number; thread: number }; answer: Lanes }; // THREAD is never left out
  gaps: { ask: {}; answer: Float64Array }; // start and end of each time without a sample of any thread
  rows: { ask: { tree: TreeName; box: number }; answer: Row[] };
  find: { ask: { text: string }; answer: Found };
  // The box of a path of functions from the root, or its nearest ancestor that there is.
  path: { ask: { tree: TreeName; path: number[] }; answer: { box: number; start: number; width: number; total: number; depth: number } };
  pathOf: { ask: { tree: TreeName; box: number }; answer: number[] };
  // The selected samples as a file for other programs.
  export: { ask: { format: "collapsed" | "speedscope"; type: number; title: string }; answer: string };
  // The N-th call that matches the last search, the largest first.
  match: { ask: { place: number }; answer: number[] };
}

export type RequestName = keyof Requests;
