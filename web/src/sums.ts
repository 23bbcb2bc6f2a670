// What the selected samples add up to: for each call, and for each function.  SPDX-License-Identifier: MIT
import type { Calls, Data } from "./data";
import type { Selection, Sums } from "./protocol";

export interface CallSums {
  self: Float64Array; // by call
  total: Float64Array; // with everything below it
  base: { self: Float64Array; total: Float64Array } | null;
  samples: number;
}

export function sumCalls(data: Data, selection: Selection): CallSums {
  const { calls, samples } = data, self = new Float64Array(calls.count);
  const baseSelf = data.profile.isDiff ? new Float64Array(calls.count) : null;
  const values = samples.values[selection.type], { types } = data.profile;
  // One row of a recording is one stack that lasts several ticks.
  const ticks = types[0].type === "samples" && types[0].unit === "count" ? samples.values[0] : null;
  const hasRange = data.profile.hasTimes && (selection.from > 0 || selection.to !== Infinity);
  let count = 0;
  for (let i = 0; i < samples.count; i++) {
    if (selection.thread >= 0 && samples.thread[i] !== selection.thread) continue;
    if (hasRange && !(samples.time[i] >= selection.from && samples.time[i] < selection.to)) continue;
    if (i >= samples.baseFrom) {
      baseSelf![samples.node[i]] += values[i];
      continue;
    }
    self[samples.node[i]] += values[i];
    count += ticks ? ticks[i] : 1;
  }
  const base = baseSelf && { self: baseSelf, total: totalsOf(calls, baseSelf) };
  return { self, total: totalsOf(calls, self), base, samples: count };
}

// The base, compared with what it is the base of.
export function exchanged(sums: CallSums): CallSums {
  return sums.base ? { ...sums.base, base: { self: sums.self, total: sums.total }, samples: sums.samples } : sums;
}

function totalsOf(calls: Calls, self: Float64Array): Float64Array {
  const total = self.slice();
  for (let node = calls.count - 1; node > 0; node--) total[calls.parent[node]] += total[node];
  return total;
}

// Calls VISIT for each call; IS_INNER: a caller of it is the same function.
export function eachCall(calls: Calls, functions: number, visit: (node: number, func: number, isInner: boolean) => void): void {
  const open = new Int32Array(functions);
  let top = 0; // the call that is open
  for (let node = 1; node < calls.count; node++) {
    for (; top !== calls.parent[node]; top = calls.parent[top]) open[calls.func[top]]--;
    const func = calls.func[node];
    visit(node, func, open[func] > 0);
    open[func]++;
    top = node;
  }
}

// A recursive function counts once for each sample.
export function sumFunctions(data: Data, sums: CallSums): Sums {
  const functions = data.profile.names.length;
  const self = new Float64Array(functions), inclusive = new Float64Array(functions);
  const base = sums.base && { total: sums.base.total[0], self: new Float64Array(functions), inclusive: new Float64Array(functions) };
  eachCall(data.calls, functions, (node, func, isInner) => {
    self[func] += sums.self[node];
    if (!isInner) inclusive[func] += sums.total[node];
    if (!base) return;
    base.self[func] += sums.base!.self[node];
    if (!isInner) base.inclusive[func] += sums.base!.total[node];
  });
  return { total: sums.total[0], samples: sums.samples, self, inclusive, base };
}
