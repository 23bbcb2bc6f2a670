// The boxes of a flame graph, of an inverted one, and of the callers and callees of a function.
//
// A box stands for calls: for one in a flame graph, for all calls with the same callees above them in an inverted one. The
// boxes inside a box are found when they are looked at for the first time; so a large profile costs what is visible of it.
// SPDX-License-Identifier: MIT
import type { Calls } from "./data";
import type { Boxes, Order, Row, TreeKind } from "./protocol";
import { CallSums, eachCall } from "./sums";

interface Box {
  func: number; // -1: the root
  parent: number;
  depth: number;
  start: number;
  total: number;
  self: number; // what no box inside it has
  base: number; // total in the base
  nodes: ArrayLike<number>;
  weights: ArrayLike<number> | null; // of NODES; null: their totals
  baseWeights: ArrayLike<number> | null; // the same of the base
  children: number[] | null; // null: not yet found
}

// Grows by doubling: an array of numbers would be copied twice, and has twice the size.
class BoxList {
  private count = 0;
  private id = new Int32Array(256);
  private func = new Int32Array(256);
  private depth = new Int32Array(256);
  private merged = new Int32Array(256);
  private start = new Float64Array(256);
  private width = new Float64Array(256);
  private self = new Float64Array(256);
  private base = new Float64Array(256);
  private depthMax = 0;

  private grow(): void {
    const integers = (old: Int32Array) => {
      const grown = new Int32Array(2 * old.length);
      grown.set(old);
      return grown;
    };
    const numbers = (old: Float64Array) => {
      const grown = new Float64Array(2 * old.length);
      grown.set(old);
      return grown;
    };
    [this.id, this.func, this.depth, this.merged] = [this.id, this.func, this.depth, this.merged].map(integers);
    [this.start, this.width, this.self, this.base] = [this.start, this.width, this.self, this.base].map(numbers);
  }

  add(id: number, func: number, depth: number, start: number, width: number, self: number, merged: number, base = 0): void {
    if (this.count === this.id.length) this.grow();
    const at = this.count++;
    this.id[at] = id;
    this.func[at] = func;
    this.depth[at] = depth;
    this.start[at] = start;
    this.width[at] = width;
    this.self[at] = self;
    this.base[at] = base;
    this.merged[at] = merged;
    if (depth > this.depthMax) this.depthMax = depth;
  }

  finish(total: number): Boxes {
    const { count } = this;
    return {
      total, id: this.id.slice(0, count), func: this.func.slice(0, count), depth: this.depth.slice(0, count), start: this.start.slice(0, count),
      width: this.width.slice(0, count), self: this.self.slice(0, count), base: this.base.slice(0, count), merged: this.merged.slice(0, count), depthMax: this.depthMax,
    };
  }
}

interface Group {
  nodes: number[];
  weights: number[];
  baseWeights: number[];
  total: number;
  base: number;
}

export { BoxList };

export class BoxTree {
  private readonly boxes: Box[] = [];
  private readonly goesUp: boolean;

  constructor(private readonly calls: Calls, private readonly sums: CallSums, private readonly names: string[],
              kind: TreeKind, func: number, private readonly order: Order) {
    this.goesUp = kind === "inverted" || kind === "callers";
    const nodes: number[] = [], weights: number[] = [], baseWeights: number[] = [];
    const baseSelf = sums.base?.self, baseTotal = sums.base?.total;
    if (kind === "flame") nodes.push(0);
    if (kind === "inverted") {
      for (let node = 0; node < calls.count; node++) {
        const base = baseSelf ? baseSelf[node] : 0;
        if (sums.self[node] === 0 && base === 0) continue;
        nodes.push(node);
        weights.push(sums.self[node]);
        baseWeights.push(base);
      }
    } else if (kind !== "flame") {
      eachCall(calls, names.length, (node, of, isInner) => {
        const base = baseTotal ? baseTotal[node] : 0;
        if (of !== func || isInner || (sums.total[node] === 0 && base === 0)) return;
        nodes.push(node);
        weights.push(sums.total[node]);
        baseWeights.push(base);
      });
    }
    const total = kind === "flame" ? sums.total[0] : weights.reduce((sum, weight) => sum + weight, 0);
    const base = kind === "flame" ? (baseTotal ? baseTotal[0] : 0) : baseWeights.reduce((sum, weight) => sum + weight, 0);
    const isOfFunction = kind === "callers" || kind === "callees";
    this.boxes.push({ func: isOfFunction ? func : -1, parent: -1, depth: 0, start: 0, total, self: 0, base, nodes,
                      weights: this.goesUp ? weights : null, baseWeights: this.goesUp ? baseWeights : null, children: null });
    if (kind === "inverted") this.splitByFunction(this.boxes[0], nodes, weights, baseWeights);
    this.expand(0);
  }

  private get root(): Box {
    return this.boxes[0];
  }

  // An inverted graph begins with the calls themselves, the others with what is next to them.
  private splitByFunction(box: Box, nodes: number[], weights: number[], baseWeights: number[]): void {
    const groups = new Map<number, Group>();
    for (let i = 0; i < nodes.length; i++) this.addTo(groups, nodes[i], weights[i], baseWeights[i]);
    this.addChildren(0, box, groups);
  }

  private addTo(groups: Map<number, Group>, node: number, weight: number, base: number): void {
    const func = this.calls.func[node];
    if (func < 0) return; // samples without frames
    let group = groups.get(func);
    if (!group) groups.set(func, (group = { nodes: [], weights: [], baseWeights: [], total: 0, base: 0 }));
    group.nodes.push(node);
    if (this.goesUp) {
      group.weights.push(weight);
      group.baseWeights.push(base);
    }
    group.total += weight;
    group.base += base;
  }

  private addChildren(id: number, box: Box, groups: Map<number, Group>): void {
    const sorted = Array.from(groups).filter(([, group]) => group.total > 0).sort(this.order === "name"
      ? (a, b) => compareNames(this.names[a[0]], this.names[b[0]])
      : (a, b) => b[1].total - a[1].total || compareNames(this.names[a[0]], this.names[b[0]]));
    let start = box.start;
    box.children = [];
    box.self = box.total;
    for (const [func, group] of sorted) {
      box.children.push(this.boxes.length);
      this.boxes.push({ func, parent: id, depth: box.depth + 1, start, total: group.total, self: 0, base: group.base,
                        nodes: group.nodes, weights: this.goesUp ? group.weights : null,
                        baseWeights: this.goesUp ? group.baseWeights : null, children: null });
      start += group.total;
      box.self -= group.total;
    }
  }

  private expand(id: number): number[] {
    const box = this.boxes[id];
    if (box.children) return box.children;
    const { parent, firstChild, nextSibling } = this.calls;
    const groups = new Map<number, Group>(), total = this.sums.total, base = this.sums.base?.total;
    for (let i = 0; i < box.nodes.length; i++) {
      const node = box.nodes[i];
      if (this.goesUp) {
        this.addTo(groups, parent[node], box.weights![i], box.baseWeights![i]);
      } else {
        for (let child = firstChild[node]; child !== 0; child = nextSibling[child]) {
          const inBase = base ? base[child] : 0;
          if (total[child] > 0 || inBase > 0) this.addTo(groups, child, total[child], inBase);
        }
      }
    }
    this.addChildren(id, box, groups);
    return box.children!;
  }

  // What of it is between FROM and TO; boxes below NARROWEST are merged with their neighbours.
  visible(from: number, to: number, narrowest: number): Boxes {
    const list = new BoxList(), stack: number[] = [0];
    while (stack.length > 0) {
      const id = stack.pop()!, box = this.boxes[id];
      const children = this.expand(id);
      list.add(id, box.func, box.depth, box.start, box.total, box.self, 0, box.base);
      let mergedStart = 0, mergedWidth = 0, merged = 0;
      const next: number[] = [];
      const flush = () => {
        if (mergedWidth >= narrowest) list.add(-1, -1, box.depth + 1, mergedStart, mergedWidth, 0, merged);
        mergedWidth = merged = 0;
      };
      for (let i = 0; i < children.length; i++) {
        const child = this.boxes[children[i]];
        if (child.start >= to) break;
        if (child.start + child.total <= from) continue;
        if (child.total >= narrowest) {
          flush();
          next.push(children[i]);
          continue;
        }
        if (merged === 0) mergedStart = child.start;
        if (this.order === "heavy") { // all that follow are as narrow
          merged = children.length - i;
          mergedWidth = box.start + box.total - box.self - child.start;
          break;
        }
        merged++;
        mergedWidth += child.total;
      }
      flush();
      for (let i = next.length; i-- > 0;) stack.push(next[i]);
    }
    return list.finish(this.root.total);
  }

  rows(id: number): Row[] {
    return this.expand(id).map((child) => {
      const box = this.boxes[child], hasChildren = this.expand(child).length > 0;
      return { id: child, func: box.func, total: box.total, self: box.self, hasChildren };
    });
  }

  // The box at PATH, functions from the root, or the last one of it that there is.
  at(path: number[]): { box: number; start: number; width: number; total: number; depth: number } {
    let id = 0;
    for (const func of path) {
      const child = this.expand(id).find((each) => this.boxes[each].func === func);
      if (child === undefined) break;
      id = child;
    }
    const box = this.boxes[id];
    return { box: id, start: box.start, width: box.total, total: this.root.total, depth: box.depth };
  }

  pathOf(id: number): number[] {
    const path: number[] = [];
    for (let box = this.boxes[id]; box && box.parent >= 0; box = this.boxes[box.parent]) path.push(box.func);
    return path.reverse();
  }
}

// By code units: the same everywhere, and fast.
function compareNames(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
