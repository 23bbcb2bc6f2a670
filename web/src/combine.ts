// Two profiles as one, for comparison: a tree with the calls of both.  SPDX-License-Identifier: MIT
import type { Calls, Data, Samples } from "./data";
import type { Profile } from "./protocol";

// BASE's functions by their places in the combined list.
function combineFunctions(now: Profile, base: Profile): { profile: Profile; funcOf: Int32Array } {
  const placeOf = new Map(now.names.map((name, func) => [name, func]));
  const names = now.names.slice(), added: number[] = [], funcOf = new Int32Array(base.names.length);
  base.names.forEach((name, func) => {
    let place = placeOf.get(name);
    if (place === undefined) {
      placeOf.set(name, (place = names.length));
      names.push(name);
      added.push(func);
    }
    funcOf[func] = place;
  });
  const join = (mine: Int32Array, other: Int32Array, offset: number) =>
    Int32Array.from([...mine, ...added.map((func) => (other[func] < 0 ? -1 : other[func] + offset))]);
  const profile = {
    ...now, names, isDiff: true, hasTimes: false,
    files: [...now.files, ...base.files], packages: [...now.packages, ...base.packages],
    fileOf: join(now.fileOf, base.fileOf, now.files.length), packageOf: join(now.packageOf, base.packageOf, now.packages.length),
    lineOf: join(now.lineOf, base.lineOf, 0), inApp: Uint8Array.from([...now.inApp, ...added.map((func) => base.inApp[func])]),
  };
  return { profile, funcOf };
}

function childrenOf(calls: Calls, node: number): number[] {
  const children: number[] = [];
  if (node >= 0) for (let child = calls.firstChild[node]; child !== 0; child = calls.nextSibling[child]) children.push(child);
  return children;
}

// Depth first, as the trees that it joins.
function combineCalls(now: Calls, base: Calls, funcOf: Int32Array): { calls: Calls; nowNode: Int32Array; baseNode: Int32Array } {
  const most = now.count + base.count, nowNode = new Int32Array(now.count), baseNode = new Int32Array(base.count);
  const parent = new Int32Array(most), func = new Int32Array(most), firstChild = new Int32Array(most), nextSibling = new Int32Array(most);
  const last = new Int32Array(most); // child that was added last
  const stack: [now: number, base: number, parent: number, func: number][] = [[0, 0, -1, -1]];
  let count = 0;
  while (stack.length > 0) {
    const [inNow, inBase, caller, callee] = stack.pop()!, node = count++;
    func[node] = callee;
    if (caller >= 0) {
      parent[node] = caller;
      if (last[caller] === 0) firstChild[caller] = node;
      else nextSibling[last[caller]] = node;
      last[caller] = node;
    }
    if (inNow >= 0) nowNode[inNow] = node;
    if (inBase >= 0) baseNode[inBase] = node;
    const others = new Map(childrenOf(base, inBase).map((child) => [funcOf[base.func[child]], child]));
    for (const child of childrenOf(now, inNow)) {
      const same = others.get(now.func[child]);
      others.delete(now.func[child]);
      stack.push([child, same === undefined ? -1 : same, node, now.func[child]]);
    }
    for (const [of, child] of others) stack.push([-1, child, node, of]);
  }
  return { calls: { count, parent, func, firstChild, nextSibling }, nowNode, baseNode };
}

export function combine(now: Data, base: Data): Data {
  const { profile, funcOf } = combineFunctions(now.profile, base.profile);
  const { calls, nowNode, baseNode } = combineCalls(now.calls, base.calls, funcOf);
  const types = now.profile.types.map((mine) => base.profile.types.findIndex(({ type, unit }) => type === mine.type && unit === mine.unit));
  const kept = types.map((_, type) => type).filter((type) => types[type] >= 0);
  if (kept.length === 0) throw new Error("the two profiles have no type of values in common");
  const threads = now.profile.threads.slice(), placeOf = new Map(threads.map(({ id, name }, place) => [`${id} ${name}`, place]));
  const threadOf = base.profile.threads.map((thread) => {
    const key = `${thread.id} ${thread.name}`;
    if (!placeOf.has(key)) placeOf.set(key, threads.push(thread) - 1);
    return placeOf.get(key)!;
  });
  const count = now.samples.count + base.samples.count, first = now.samples.count;
  const samples: Samples = { count, node: new Int32Array(count), thread: new Int32Array(count), time: new Float64Array(0), values: [], baseFrom: first };
  for (let i = 0; i < first; i++) samples.node[i] = nowNode[now.samples.node[i]];
  samples.thread.set(now.samples.thread);
  for (let i = 0; i < base.samples.count; i++) {
    samples.node[first + i] = baseNode[base.samples.node[i]];
    samples.thread[first + i] = threadOf[base.samples.thread[i]];
  }
  for (const type of kept) {
    const values = new Float64Array(count);
    values.set(now.samples.values[type]);
    values.set(base.samples.values[types[type]], first);
    samples.values.push(values);
  }
  return { profile: { ...profile, threads, types: kept.map((type) => profile.types[type]), type: Math.max(0, kept.indexOf(profile.type)) }, calls, samples };
}
