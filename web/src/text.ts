// Names and numbers as people read them.  SPDX-License-Identifier: MIT

const NAME_MAX = 300;

// Characters that control a terminal, turn the direction of the text around them, or break a line.
// eslint-disable-next-line no-control-regex
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]/g;

export function safe(text: string, maximum = NAME_MAX): string {
  const end = Math.floor(maximum / 3); // names often differ there
  const cut = text.length > maximum ? text.slice(0, maximum - 1 - end) + "…" + text.slice(text.length - end) : text;
  return cut.replace(UNSAFE, "\ufffd");
}

const ENDS_MIN = 16; // below, the start says more than both ends

// TEXT in so many letters: its start, and its end, where names often differ.
export function shorten(text: string, letters: number): string {
  const end = letters < ENDS_MIN ? 0 : Math.floor(letters / 2);
  return text.length <= letters ? text : text.slice(0, Math.max(letters - 1 - end, 1)) + "…" + text.slice(text.length - end);
}

type Scale = [factor: number, unit: string][];

const TIME: Scale = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
const SIZE: Scale = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]];
export const NANOSECONDS: { [unit: string]: number } = {
  nanoseconds: 1, nanosecond: 1, ns: 1, microseconds: 1e3, microsecond: 1e3, us: 1e3, milliseconds: 1e6, millisecond: 1e6, ms: 1e6, seconds: 1e9, second: 1e9, s: 1e9,
};

function grouped(value: number): string {
  return Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

// The unit in which all numbers of a column are shown, so that they can be compared at a glance.
export class Unit {
  readonly name: string;
  private readonly factor: number;
  private readonly digits: number;

  constructor(unit: string, largest: number) {
    const scale = NANOSECONDS[unit] ? TIME : unit === "bytes" || unit === "byte" ? SIZE : null;
    const base = NANOSECONDS[unit] || 1;
    const chosen = scale && (scale.find(([factor]) => largest * base >= factor) || scale[scale.length - 1]);
    this.factor = chosen ? base / chosen[0] : 1;
    this.name = chosen ? chosen[1] : unit === "count" ? "" : safe(unit, 20);
    this.digits = this.factor === 1 ? 0 : largest * this.factor >= 1000 ? 1 : largest * this.factor >= 10 ? 2 : 3;
  }

  number(value: number): string {
    const scaled = value * this.factor;
    if (this.digits === 0) return grouped(scaled);
    const [whole, part] = scaled.toFixed(this.digits).split(".");
    return whole.replace(/\B(?=(\d{3})+$)/g, "\u202f") + "." + part;
  }

  text(value: number): string {
    return this.name ? `${this.number(value)}\u202f${this.name}` : this.number(value);
  }
}

// VALUE in a unit that suits it alone.
export function quantity(value: number, unit: string): string {
  return new Unit(unit, Math.abs(value)).text(value);
}

// A measured value, which need not be a whole number.
export function measured(value: number, unit: string): string {
  if (NANOSECONDS[unit] || unit === "bytes" || unit === "byte") return quantity(value, unit);
  const number = Math.abs(value) >= 10000 ? grouped(value) : String(Number(value.toPrecision(4)));
  return unit === "percent" ? `${number}\u202f%` : unit === "hertz" || unit === "hz" ? `${number}\u202fHz` : `${number} ${safe(unit, 20)}`.trim();
}

export function percent(part: number, whole: number): string {
  return whole > 0 ? `${((100 * part) / whole).toFixed(2)}%` : "–";
}

export function seconds(ns: number): string {
  return quantity(ns, "nanoseconds");
}
