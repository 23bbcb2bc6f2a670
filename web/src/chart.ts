// The boxes of a flamechart: what one thread did, in the order of time.  SPDX-License-Identifier: MIT
import { BoxList } from "./box_tree";
import type { Data } from "./data";
import type { Boxes, Lanes } from "./protocol";
import { NANOSECONDS } from "./text";

// One depth of a thread: boxes from left to right.
interface RowOfBoxes {
  start: Float64Array;
  end: Float64Array;
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

const GAP_MIN = 0.1; // of the usual interval: what is shorter is the jitter of a clock

// The column whose value says how long a sample lasts, and its unit in nanoseconds; -1: none.
function columnOfTime(data: Data): { column: number; factor: number } {
  const types = data.profile.types;
  let column = types.findIndex(({ type, unit }) => type === "wall" && NANOSECONDS[unit]);
  if (column < 0) column = types.findIndex(({ unit }) => NANOSECONDS[unit]);
  return { column, factor: column < 0 ? 0 : NANOSECONDS[types[column].unit] };
}

// When each sample of SPAN ends: at its value's end, at the next sample, or after the usual interval.
export function endsOf(data: Data, span: Span): Float64Array {
  const { time, values } = data.samples, count = span.end - span.first, ends = new Float64Array(count);
  const { column, factor } = columnOfTime(data);
  const gaps = new Float64Array(Math.max(0, count - 1));
  for (let i = 0; i + 1 < count; i++) gaps[i] = time[span.first + i + 1] - time[span.first + i];
  const usual = gaps.length > 0 ? gaps.sort()[gaps.length >> 1] : 0;
  for (let i = 0; i < count; i++) {
    const sample = span.first + i, next = i + 1 < count ? time[sample + 1] : Infinity;
    const lasts = column >= 0 ? values[column][sample] * factor : next - time[sample] > 4 * usual ? usual : next - time[sample];
    const end = Math.min(time[sample] + lasts, next);
    ends[i] = next - end <= usual * GAP_MIN ? next : end;
  }
  return ends;
}

// Calls BEGIN for each box, row by row from left to right, and END when the last one of a row ends. Lists that grow would need several times
// the memory of the boxes, so they are counted first.
function eachBox(data: Data, span: Span, ends: Float64Array, begin: (depth: number, func: number, start: number) => void, end: (depth: number, at: number) => void): void {
  const { node, time } = data.samples, { parent, func } = data.calls;
  let path: number[] = [], last = 0, lastEnd = -1;
  const endFrom = (depth: number) => {
    for (let open = depth; open < path.length; open++) end(open, lastEnd);
  };
  for (let i = 0; i < ends.length; i++) {
    const sample = span.first + i, start = time[sample];
    if (ends[i] <= start) continue;
    if (node[sample] !== last || start > lastEnd) {
      const next: number[] = [];
      for (let at = node[sample]; at !== 0; at = parent[at]) next.push(at);
      next.reverse();
      let common = 0; // boxes that continue
      if (start <= lastEnd) while (common < next.length && common < path.length && next[common] === path[common]) common++;
      endFrom(common);
      for (let depth = common; depth < next.length; depth++) begin(depth, func[next[depth]], start);
      path = next;
      last = node[sample];
    }
    lastEnd = ends[i];
  }
  endFrom(0);
}

export class Chart {
  private readonly rows: RowOfBoxes[] = [];
  readonly begin: number;
  readonly end: number;

  constructor(data: Data, thread: number) {
    const span = spanOf(data, thread), ends = endsOf(data, span), { time } = data.samples;
    const counts: number[] = [];
    eachBox(data, span, ends, (depth) => (counts[depth] = (counts[depth] || 0) + 1), () => {});
    for (const count of counts) this.rows.push({ start: new Float64Array(count), end: new Float64Array(count), func: new Int32Array(count) });
    const used = new Int32Array(counts.length);
    eachBox(data, span, ends, (depth, func, start) => {
      this.rows[depth].start[used[depth]] = start;
      this.rows[depth].func[used[depth]++] = func;
    }, (depth, end) => (this.rows[depth].end[used[depth] - 1] = end));
    this.begin = ends.length > 0 ? time[span.first] : 0;
    this.end = ends.length > 0 ? ends[ends.length - 1] : 0;
  }

  visible(from: number, to: number, narrowest: number): Boxes {
    const list = new BoxList();
    this.rows.forEach((row, depth) => {
      for (let i = firstEndAfter(row.end, from); i < row.start.length && row.start[i] < to;) {
        const start = row.start[i], width = row.end[i] - start;
        if (width >= narrowest) {
          list.add(i, row.func[i], depth, start, width, 0, 0);
          i++;
          continue;
        }
        // Neighbours that begin within the same half pixel are one; so is one box that is too narrow.
        let next = i + 1;
        while (next < row.start.length && row.start[next] < start + narrowest && row.end[next] - row.start[next] < narrowest) next++;
        const end = Math.max(row.end[next - 1], start + narrowest);
        list.add(next - i === 1 ? i : -1, next - i === 1 ? row.func[i] : -1, depth, start, end - start, 0, next - i === 1 ? 0 : next - i);
        i = next;
      }
    });
    return list.finish(this.end - this.begin);
  }
}

function firstEndAfter(ends: Float64Array, time: number): number {
  let low = 0, high = ends.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ends[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return low;
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
