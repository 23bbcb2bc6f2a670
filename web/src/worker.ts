// Answers the page's questions about the profile, away from the thread that draws.  SPDX-License-Identifier: MIT
import { BoxTree } from "./box_tree";
import { Chart, lanesOf } from "./chart";
import { combine } from "./combine";
import { Data, decode } from "./data";
import { collapsed, speedscope } from "./export";
import { gapsOf } from "./gaps";
import type { Boxes, Found, RequestName, Requests, Selection, TreeName } from "./protocol";
import { CallSums, exchanged, sumCalls, sumFunctions } from "./sums";

const TREES_MAX = 6;
const MATCHES_MAX = 10000;

let data: Data;
let waiting: Data | null = null; // takes the place of DATA
let sums: CallSums;
let trees = new Map<string, BoxTree>();
let charts = new Map<number, Chart>();
let lowerNames: string[] = [];
let matching: number[] = []; // calls that match; the largest first from the first question for one on
let isSorted = false;

function tree(name: TreeName): BoxTree {
  const key = `${name.kind} ${name.func} ${name.order} ${name.isBase === true}`;
  let found = trees.get(key);
  if (!found) {
    if (trees.size >= TREES_MAX) trees.delete(trees.keys().next().value as string);
    found = new BoxTree(data.calls, name.isBase ? exchanged(sums) : sums, data.profile.names, name.kind, name.func, name.order);
    trees.set(key, found);
  }
  return found;
}

function chart(thread: number): Chart {
  let found = charts.get(thread);
  if (!found) {
    if (charts.size >= TREES_MAX) charts.delete(charts.keys().next().value as number);
    charts.set(thread, (found = new Chart(data, thread)));
  }
  return found;
}

// /…/ is a regular expression; anything else is part of a name, in any case.
function matcher(text: string): (func: number) => boolean {
  const expression = /^\/(.+)\/$/.exec(text);
  if (expression) {
    try {
      const pattern = new RegExp(expression[1], "i");
      return (func) => pattern.test(data.profile.names[func]);
    } catch {
      return () => false;
    }
  }
  const lower = text.toLowerCase();
  return (func) => lowerNames[func].includes(lower);
}

function find(text: string): Found {
  const { names } = data.profile, { parent, func, count } = data.calls, matches = new Uint8Array(names.length);
  const isMatch = matcher(text);
  let functions = 0, total = 0;
  matching = [];
  if (text !== "") {
    for (let i = 0; i < names.length; i++) if (isMatch(i)) functions += matches[i] = 1;
  }
  if (functions > 0) {
    const covered = new Uint8Array(count);
    for (let node = 1; node < count; node++) {
      if (covered[parent[node]]) covered[node] = 1;
      else if (matches[func[node]]) {
        covered[node] = 1;
        total += sums.total[node];
        if (sums.total[node] > 0) matching.push(node);
      }
    }
  }
  isSorted = false;
  return { matches, functions, share: sums.total[0] > 0 ? total / sums.total[0] : 0, calls: matching.length };
}

function pathOfMatch(place: number): number[] {
  if (!isSorted) matching = matching.sort((a, b) => sums.total[b] - sums.total[a]).slice(0, MATCHES_MAX);
  isSorted = true;
  return matching.length > 0 ? pathOfCall(matching[place % matching.length]) : [];
}

function pathOfCall(node: number): number[] {
  const path: number[] = [];
  for (; node > 0; node = data.calls.parent[node]) path.push(data.calls.func[node]);
  return path.reverse();
}

function show(opened: Data): void {
  data = opened;
  charts = new Map();
  lowerNames = data.profile.names.map((name) => name.toLowerCase());
}

type Handlers = { [Name in RequestName]: (ask: Requests[Name]["ask"]) => Requests[Name]["answer"] | Promise<Requests[Name]["answer"]> };

const handlers: Handlers = {
  async open({ bytes, base, waits }) {
    const decoded = await decode(bytes), opened = base ? combine(decoded, await decode(base)) : decoded;
    if (waits) waiting = opened;
    else show(opened);
    return opened.profile;
  },
  show() {
    if (waiting) show(waiting);
    waiting = null;
  },
  select(selection: Selection) {
    sums = sumCalls(data, selection);
    trees = new Map();
    return sumFunctions(data, sums);
  },
  boxes: ({ tree: name, from, to, narrowest }): Boxes => tree(name).visible(from, to, narrowest),
  chart: ({ thread, from, to, narrowest }): Boxes => chart(thread).visible(from, to, narrowest),
  lanes: ({ bins, most, thread }) => lanesOf(data, bins, most, thread),
  gaps: () => gapsOf(data),
  rows: ({ tree: name, box }) => tree(name).rows(box),
  find: ({ text }) => find(text),
  path: ({ tree: name, path }) => tree(name).at(path),
  pathOf: ({ tree: name, box }) => tree(name).pathOf(box),
  export: ({ format, type, title }) => (format === "collapsed" ? collapsed(data, sums) : speedscope(data, sums, type, title)),
  match: ({ place }) => pathOfMatch(place),
};

export function startWorker(): void {
  self.onmessage = async (event: MessageEvent<{ number: number; name: RequestName; ask: never }>) => {
    const { number, name, ask } = event.data;
    try {
      const answer = await handlers[name](ask);
      // Boxes are the page's from now on; other answers may be used again.
      const buffers = name === "boxes" || name === "chart" ? Object.values(answer as Boxes).filter(ArrayBuffer.isView).map(({ buffer }) => buffer) : [];
      self.postMessage({ number, answer }, buffers as never);
    } catch (error) {
      self.postMessage({ number, error: error instanceof Error ? error.message : String(error) });
    }
  };
}
