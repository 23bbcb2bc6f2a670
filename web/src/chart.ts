// The boxes of a flamechart: what one thread did, in the order of time.  SPDX-License-Identifier: MIT
import { BoxList } from "./box_tree";
import type { Data } from "./data";
import type { Boxes, Lanes } from "./protocol";
import { NANOSECONDS } from "./text";

// One depth of a thread: boxes from left to right, each with its first and last sample, which have its times.
interface RowOfBoxes {
  first: Int32Array;
  last: Int32Array;
  func: Int32Array;
}

interface Span {
  first: number; // of the samples, which are sorted by thread
  end: number;
}

export function spanOf(data: Data, thread: number): Span {
  const at = (wanted: number) => {
    let low = 0, high = data.samples.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (data.samples.thread[middle] < wanted) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  return { first: at(thread), end: at(thread + 1) };
}

const INTERVALS = 4096;
const GAP_MIN = 0.1; // of the usual interval: what is shorter is the jitter of a clock

// The column whose value says how long a sample lasts, and its unit in nanoseconds; -1: none.
function columnOfTime(data: Data): { column: number; factor: number } {
  const types = data.profile.types;
  let column = types.findIndex(({ type, unit }) => type === "wall" && NANOSECONDS[unit]);
  if (column < 0) column = types.findIndex(({ unit }) => NANOSECONDS[unit]);
  return { column, factor: column < 0 ? 0 : NANOSECONDS[types[column].unit] };
}

// The interval between two samples of SPAN that is in the middle, of some thousand that are spread over all of it.
function usualInterval(time: Float64Array, span: Span): number {
  const count = span.end - span.first - 1, step = Math.max(1, Math.floor(count / INTERVALS)), intervals: number[] = [];
  for (let i = span.first; i < span.first + count; i += step) intervals.push(time[i + 1] - time[i]);
  return intervals.length > 0 ? intervals.sort((a, b) => a - b)[intervals.length >> 1] : 0;
}

// When each sample of SPAN ends: at its value's end, at the next sample, or after the usual interval.
function findEnds(data: Data, span: Span, ends: Float64Array): void {
  const { time, values } = data.samples, { column, factor } = columnOfTime(data), usual = usualInterval(time, span);
  for (let sample = span.first; sample < span.end; sample++) {
    const next = sample + 1 < span.end ? time[sample + 1] : Infinity;
    const lasts = column >= 0 ? values[column][sample] * factor : next - time[sample] > 4 * usual ? usual : next - time[sample];
    const end = Math.min(time[sample] + lasts, next);
    ends[sample] = next - end <= usual * GAP_MIN ? next : end;
  }
}

let known: { data: Data; ends: Float64Array } | null = null;

// Of all samples; found once for each profile.
export function endsOf(data: Data): Float64Array {
  if (known?.data === data) return known.ends;
  const ends = new Float64Array(data.samples.count);
  for (let first = 0; first < ends.length;) {
    const span = spanOf(data, data.samples.thread[first]);
    findEnds(data, span, ends);
    first = span.end;
  }
  known = { data, ends };
  return ends;
}

// A stack as nodes, the root's child first, in memory that is used again for the next stack.
class Path {
  nodes = new Int32Array(64);
  size = 0;

  read(node: number, parent: Int32Array): void {
    this.size = 0;
    for (let at = node; at !== 0; at = parent[at]) this.size++;
    if (this.size > this.nodes.length) this.nodes = new Int32Array(2 * this.size);
    for (let at = node, place = this.size; at !== 0; at = parent[at]) this.nodes[--place] = at;
  }
}

// Calls BEGIN for each box, row by row from left to right, and END when the last one of a row ends. Lists that grow would need several times
// the memory of the boxes, so they are counted first.
function eachBox(data: Data, span: Span, begin: (depth: number, func: number, sample: number) => void, end: (depth: number, sample: number) => void): void {
  const { node, time } = data.samples, { parent, func } = data.calls, ends = endsOf(data);
  let path = new Path(), next = new Path(), last = 0, lastEnd = -1, lastSample = 0;
  const endFrom = (depth: number) => {
    for (let open = depth; open < path.size; open++) end(open, lastSample);
  };
  for (let sample = span.first; sample < span.end; sample++) {
    const start = time[sample];
    if (ends[sample] <= start) continue;
    if (node[sample] !== last || start > lastEnd) {
      next.read(node[sample], parent);
      let common = 0; // boxes that continue
      if (start <= lastEnd) while (common < next.size && common < path.size && next.nodes[common] === path.nodes[common]) common++;
      endFrom(common);
      for (let depth = common; depth < next.size; depth++) begin(depth, func[next.nodes[depth]], sample);
      [path, next] = [next, path];
      last = node[sample];
    }
    lastEnd = ends[sample];
    lastSample = sample;
  }
  endFrom(0);
}

export class Chart {
  private readonly rows: RowOfBoxes[] = [];
  private readonly time: Float64Array;
  private readonly ends: Float64Array;
  readonly begin: number;
  readonly end: number;

  constructor(data: Data, thread: number) {
    const span = spanOf(data, thread), counts: number[] = [];
    this.time = data.samples.time;
    this.ends = endsOf(data);
    eachBox(data, span, (depth) => (counts[depth] = (counts[depth] || 0) + 1), () => {});
    for (const count of counts) this.rows.push({ first: new Int32Array(count), last: new Int32Array(count), func: new Int32Array(count) });
    const used = new Int32Array(counts.length);
    eachBox(data, span, (depth, func, sample) => {
      this.rows[depth].first[used[depth]] = sample;
      this.rows[depth].func[used[depth]++] = func;
    }, (depth, sample) => (this.rows[depth].last[used[depth] - 1] = sample));
    this.begin = span.end > span.first ? this.time[span.first] : 0;
    this.end = span.end > span.first ? this.ends[span.end - 1] : 0;
  }

  visible(from: number, to: number, narrowest: number): Boxes {
    const list = new BoxList(), { time, ends } = this;
    this.rows.forEach(({ first, last, func }, depth) => {
      for (let i = this.firstEndAfter(last, from); i < first.length && time[first[i]] < to;) {
        const start = time[first[i]], width = ends[last[i]] - start;
        if (width >= narrowest) {
          list.add(i, func[i], depth, start, width, 0, 0);
          i++;
          continue;
        }
        // Neighbours that begin within the same half pixel are one; so is one box that is too narrow.
        let next = i + 1;
        while (next < first.length && time[first[next]] < start + narrowest && ends[last[next]] - time[first[next]] < narrowest) next++;
        const end = Math.max(ends[last[next - 1]], start + narrowest);
        list.add(next - i === 1 ? i : -1, next - i === 1 ? func[i] : -1, depth, start, end - start, 0, next - i === 1 ? 0 : next - i);
        i = next;
      }
    });
    return list.finish(this.end - this.begin);
  }

  private firstEndAfter(last: Int32Array, time: number): number {
    let low = 0, high = last.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.ends[last[middle]] <= time) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

// How busy a thread was when the sample was taken: its CPU time if the profile has it, else whether the stack has changed.
function activityOf(data: Data): (sample: number) => number {
  const { samples, profile } = data, cpu = profile.types.findIndex(({ type, unit }) => type === "cpu" && NANOSECONDS[unit]);
  if (cpu >= 0) {
    const values = samples.values[cpu], factor = NANOSECONDS[profile.types[cpu].unit];
    return (sample) => values[sample] * factor;
  }
  const { thread, node } = samples;
  return (sample) => (sample > 0 && thread[sample - 1] === thread[sample] && node[sample - 1] !== node[sample] ? 1 : 0);
}

// The MOST busiest threads and ALSO, the busiest one first.
function busiestThreads(data: Data, most: number, also: number, activity: (sample: number) => number): { threads: Int32Array; more: number } {
  const { samples, profile } = data, sums = new Float64Array(profile.threads.length);
  for (let i = 0; i < samples.count; i++) sums[samples.thread[i]] += activity(i);
  const active = profile.threads.map((_, thread) => thread).filter((thread) => profile.threads[thread].samples > 0);
  const sorted = active.sort((a, b) => sums[b] - sums[a] || a - b), chosen = sorted.slice(0, most);
  if (also >= 0 && sorted.indexOf(also, most) >= 0) chosen.push(also);
  return { threads: Int32Array.from(chosen), more: sorted.length - chosen.length };
}

// How busy threads were, of equal parts of all time.
export function lanesOf(data: Data, bins: number, most: number, also: number): Lanes {
  const { samples, profile } = data, of = activityOf(data), { threads, more } = busiestThreads(data, most, also, of);
  const isTime = profile.types.some(({ type, unit }) => type === "cpu" && NANOSECONDS[unit]);
  const part = Math.max(profile.durationNs / bins, 1), activity = new Float32Array(bins * threads.length), counts = new Float32Array(activity.length);
  const placeOf = new Int32Array(profile.threads.length).fill(-1);
  threads.forEach((thread, place) => (placeOf[thread] = place));
  for (let i = 0; i < samples.count; i++) {
    const place = placeOf[samples.thread[i]];
    if (place < 0) continue;
    const bin = place * bins + Math.min(bins - 1, Math.floor(samples.time[i] / part));
    counts[bin]++;
    activity[bin] += of(i);
  }
  for (let i = 0; i < activity.length; i++) {
    if (isTime) activity[i] = Math.min(1, activity[i] / part);
    else if (counts[i] > 0) activity[i] = activity[i] / counts[i];
  }
  return { bins, threads, more, activity };
}
