// The selected samples in formats of other programs.  SPDX-License-Identifier: MIT
import type { Data } from "./data";
import type { CallSums } from "./sums";

// A frame's name in collapsed stacks has neither ";" nor a line break.
function frameOf(name: string): string {
  return name.replace(/[;\r\n]/g, " ") || "(no name)";
}

function pathOf(data: Data, node: number): number[] {
  const path: number[] = [];
  for (; node > 0; node = data.calls.parent[node]) path.push(data.calls.func[node]);
  return path.reverse();
}

export function collapsed(data: Data, sums: CallSums): string {
  const lines: string[] = [];
  for (let node = 1; node < data.calls.count; node++) {
    if (sums.self[node] <= 0) continue;
    lines.push(`${pathOf(data, node).map((func) => frameOf(data.profile.names[func])).join(";")} ${Math.round(sums.self[node])}\n`);
  }
  return lines.join("");
}

const UNITS: { [unit: string]: string } = { ns: "nanoseconds", us: "microseconds", ms: "milliseconds", s: "seconds", byte: "bytes" };
const KNOWN = ["nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"];

// The file format of speedscope: one profile of sums.
export function speedscope(data: Data, sums: CallSums, type: number, title: string): string {
  const { profile, calls } = data, samples: number[][] = [], weights: number[] = [];
  for (let node = 0; node < calls.count; node++) {
    if (sums.self[node] <= 0) continue;
    samples.push(pathOf(data, node));
    weights.push(sums.self[node]);
  }
  const given = profile.types[type].unit, unit = UNITS[given] || given;
  const frames = profile.names.map((name, func) => {
    const file = profile.files[profile.fileOf[func]], line = profile.lineOf[func];
    return { name, ...(file ? { file } : {}), ...(file && line > 0 ? { line } : {}) };
  });
  return JSON.stringify({
    $schema: "https://www.speedscope.app/file-format-schema.json", exporter: "offbeat", name: title, activeProfileIndex: 0, shared: { frames },
    profiles: [{ type: "sampled", name: title || profile.types[type].type, unit: KNOWN.includes(unit) ? unit : "none", startValue: 0, endValue: sums.total[0], samples, weights }],
  });
}
