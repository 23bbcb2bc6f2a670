// Decodes the data of a page: an object, then streams of varints (doc/decisions/page.md).  SPDX-License-Identifier: MIT
import type { Measurement, Profile } from "./protocol";

const NODES_MAX = 8 << 20;
const SAMPLES_MAX = 32 << 20;
const FUNCTIONS_MAX = 8 << 20;
const INTEGER_MAX = 0x7fffffff;

// A tree of calls, depth first: a node is after its parent and before its next sibling.
export interface Calls {
  count: number;
  parent: Int32Array;
  func: Int32Array; // of the root, number 0: -1
  firstChild: Int32Array; // 0: none
  nextSibling: Int32Array;
}

// Sorted by thread, then by time.
export interface Samples {
  count: number;
  node: Int32Array;
  thread: Int32Array;
  time: Float64Array; // nanoseconds since time 0; empty without times
  values: (Int32Array | Float64Array)[]; // by value type; integers take half of the memory where they are large enough
  baseFrom: number; // from here on, samples are of the base
}

export interface Data {
  profile: Profile;
  calls: Calls;
  samples: Samples;
}

class Varints {
  private at = 0;
  constructor(private readonly bytes: Uint8Array) {}

  next(): number {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      if (this.at >= this.bytes.length) throw new Error("the data of the page ends too early");
      const byte = this.bytes[this.at++];
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
  }

  nextSigned(): number {
    const value = this.next();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }
}

// Numbers that mostly are 0: how many zeros, a number, how many zeros, …
class ZeroRuns {
  private zeros: number;
  constructor(private readonly varints: Varints) {
    this.zeros = varints.next();
  }

  next(): number {
    if (this.zeros > 0) {
      this.zeros--;
      return 0;
    }
    const value = this.varints.next();
    this.zeros = this.varints.next();
    return value;
  }
}

function split(bytes: Uint8Array): Uint8Array[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (new TextDecoder().decode(bytes.subarray(0, 4)) !== "OBP1") throw new Error("the data is not of this page");
  const streams: Uint8Array[] = [];
  let at = 4;
  while (at + 4 <= bytes.length) {
    const size = view.getUint32(at, true);
    at += 4;
    if (size > bytes.length - at) throw new Error("the data of the page is cut short");
    streams.push(bytes.subarray(at, at + size));
    at += size;
  }
  if (streams.length !== 7) throw new Error("the data of the page has a part too many or too few");
  return streams;
}

function checkCount(count: unknown, maximum: number): number {
  if (typeof count !== "number" || !(count >= 0 && count <= maximum)) throw new Error("the data of the page is too large");
  return count;
}

// A call is the callee's place in the list of what its caller calls.
function readCalls(count: number, functions: number, pops: ZeroRuns, places: ZeroRuns, lists: Varints): Calls {
  const parent = new Int32Array(count), func = new Int32Array(count);
  const firstChild = new Int32Array(count), nextSibling = new Int32Array(count);
  const { first, callees } = readCallees(count, functions, lists);
  func[0] = -1;
  let last = 0;
  for (let node = 1; node < count; node++) {
    let before = 0, caller = last;
    for (let pop = pops.next(); pop > 0; pop--) {
      before = caller;
      caller = parent[caller];
    }
    const owner = caller === 0 ? functions : func[caller], at = first[owner] + places.next();
    if (!(at < first[owner + 1])) throw new Error("a call of the page's data is not known");
    parent[node] = caller;
    func[node] = callees[at];
    if (before === 0) firstChild[caller] = node;
    else nextSibling[before] = node;
    last = node;
  }
  return { count, parent, func, firstChild, nextSibling };
}

// By caller, the root after the functions: its callees are from FIRST to before FIRST of the next one.
function readCallees(count: number, functions: number, lists: Varints): { first: Int32Array; callees: Int32Array } {
  const first = new Int32Array(functions + 2), callees = new Int32Array(count);
  let end = 0;
  for (let caller = 0; caller <= functions; caller++) {
    first[caller] = end;
    for (let left = lists.next(); left > 0; left--) {
      const callee = lists.next();
      if (end >= count || callee >= functions) throw new Error("a function of the page's data is not known");
      callees[end++] = callee;
    }
  }
  first[functions + 1] = end;
  return { first, callees };
}

interface Header {
  title: string;
  release: string;
  environment: string;
  types: { type: string; unit: string; divisor: number }[];
  type: number;
  threads: [string, string][];
  thread: number;
  has_times: boolean;
  start: number;
  nodes: number;
  samples: number;
  measurements: { name: string; unit: string; points: number[] }[];
  files: string[];
  packages: string[];
  functions: [string, number, number, number, number][];
}

function readSamples(header: Header, places: Varints, times: Varints, values: Varints): Samples {
  const count = checkCount(header.samples, SAMPLES_MAX);
  const samples: Samples = {
    count,
    node: new Int32Array(count),
    thread: new Int32Array(count),
    time: new Float64Array(header.has_times ? count : 0),
    values: header.types.map(() => new Int32Array(count)),
    baseFrom: count,
  };
  let thread = 0, node = 0, time = 0;
  for (let i = 0; i < count; i++) {
    thread += places.next();
    node += places.nextSigned();
    if (thread >= header.threads.length || node < 0 || node >= header.nodes) throw new Error("a sample is out of range");
    samples.thread[i] = thread;
    samples.node[i] = node;
    if (header.has_times) samples.time[i] = time += times.nextSigned();
    for (let type = 0; type < header.types.length; type++) {
      const value = values.next() * header.types[type].divisor, column = samples.values[type];
      if (value > INTEGER_MAX && column instanceof Int32Array) samples.values[type] = Float64Array.from(column);
      samples.values[type][i] = value;
    }
  }
  return samples;
}

function readMeasurement({ name, unit, points }: Header["measurements"][0]): Measurement {
  const order = Array.from({ length: points.length >> 1 }, (_, point) => point).sort((a, b) => points[2 * a] - points[2 * b]);
  return { name, unit, times: Float64Array.from(order, (point) => points[2 * point]), values: Float64Array.from(order, (point) => points[2 * point + 1]) };
}

function describe(header: Header, samples: Samples): Profile {
  const functions = header.functions;
  const threads = header.threads.map(([id, name]) => ({ id, name, samples: 0 }));
  let durationNs = 0;
  for (let i = 0; i < samples.count; i++) {
    threads[samples.thread[i]].samples++;
    if (header.has_times && samples.time[i] > durationNs) durationNs = samples.time[i];
  }
  return {
    title: header.title, release: header.release, environment: header.environment,
    types: header.types.map(({ type, unit }) => ({ type, unit })), type: header.type,
    threads, thread: header.thread, hasTimes: header.has_times, startMs: header.start, durationNs,
    samples: samples.count, isDiff: false, measurements: header.measurements.map(readMeasurement),
    names: functions.map((entry) => entry[0]), files: header.files, packages: header.packages,
    fileOf: Int32Array.from(functions, (entry) => entry[1]), packageOf: Int32Array.from(functions, (entry) => entry[2]),
    lineOf: Int32Array.from(functions, (entry) => entry[3]), inApp: Uint8Array.from(functions, (entry) => entry[4]),
  };
}

async function decompress(bytes: ArrayBuffer): Promise<Uint8Array> {
  const stream = new Response(bytes).body!.pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

export async function decode(bytes: ArrayBuffer): Promise<Data> {
  const [object, pops, places, lists, samplePlaces, times, values] = split(await decompress(bytes));
  const header = JSON.parse(new TextDecoder().decode(object)) as Header;
  const functions = checkCount(header.functions.length, FUNCTIONS_MAX);
  const calls = readCalls(checkCount(header.nodes, NODES_MAX), functions, new ZeroRuns(new Varints(pops)),
                          new ZeroRuns(new Varints(places)), new Varints(lists));
  const samples = readSamples(header, new Varints(samplePlaces), new Varints(times), new Varints(values));
  return { profile: describe(header, samples), calls, samples };
}
