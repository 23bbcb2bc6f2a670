// Where no thread has a sample: the profiler was stopped, or lost samples.  SPDX-License-Identifier: MIT
import { endsOf } from "./chart";
import type { Data } from "./data";

const BINS = 4096, GAPS_MAX = 500;

interface Gap {
  from: number;
  to: number;
}

// Calls VISIT for the time of each sample.
function eachInterval(data: Data, visit: (start: number, end: number) => void): void {
  const ends = endsOf(data), { time } = data.samples;
  for (let i = 0; i < ends.length; i++) visit(time[i], ends[i]);
}

// Parts of the time in which nothing is, between the first and the last sample: whole ones only.
function emptyParts(data: Data, part: number): Gap[] {
  const opened = new Int32Array(BINS + 2), gaps: Gap[] = [];
  eachInterval(data, (start, end) => {
    opened[Math.min(BINS, Math.max(0, Math.floor(start / part)))]++;
    opened[Math.min(BINS, Math.max(0, Math.floor(end / part))) + 1]--;
  });
  for (let bin = 0, open = 0; bin < BINS; bin++) {
    open += opened[bin];
    const last = gaps[gaps.length - 1];
    if (open > 0) continue;
    if (last && last.to === bin) last.to = bin + 1;
    else gaps.push({ from: bin, to: bin + 1 });
  }
  return gaps.filter(({ from, to }) => from > 0 && to < BINS).slice(0, GAPS_MAX).map(({ from, to }) => ({ from: from * part, to: to * part }));
}

// Start and end of each gap, from the samples around it. Gaps below a four-thousandth of the profile are not found.
export function gapsOf(data: Data): Float64Array {
  const part = data.profile.durationNs / BINS, gaps = part > 0 ? emptyParts(data, part) : [];
  if (gaps.length === 0) return new Float64Array(0);
  const exact = gaps.map(() => ({ from: 0, to: Infinity }));
  eachInterval(data, (start, end) => {
    let low = 0, high = gaps.length; // the first gap that begins at END or later
    while (low < high) {
      const middle = (low + high) >> 1;
      if (gaps[middle].from < end) low = middle + 1;
      else high = middle;
    }
    if (low < gaps.length) exact[low].from = Math.max(exact[low].from, end);
    if (low > 0 && start >= gaps[low - 1].to) exact[low - 1].to = Math.min(exact[low - 1].to, start);
  });
  return Float64Array.from(exact.flatMap(({ from, to }) => [from, to]));
}
