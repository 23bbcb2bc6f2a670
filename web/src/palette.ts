// Colours of boxes, by what the reader wants to distinguish.  SPDX-License-Identifier: MIT
import type { Profile } from "./protocol";
import type { Colours } from "./state";

export interface Theme {
  isDark: boolean;
  background: string;
  text: string;
  faint: string;
  line: string;
  bar: string;
  accent: string;
}

const HUES = [30, 205, 150, 255, 345]; // few, so that packages are easy to see, not single boxes

function hash(text: string): number {
  let sum = 2166136261;
  for (let i = 0; i < text.length && i < 200; i++) sum = Math.imul(sum ^ text.charCodeAt(i), 16777619);
  return (sum ^ (sum >>> 15)) >>> 0;
}

function tone(hue: number, shade: number, isDark: boolean): string {
  return isDark ? `hsl(${hue} 26% ${33 + shade * 4}%)` : `hsl(${hue} 52% ${80 + shade * 3}%)`;
}

// The package of a function; without one, the first part of its name.
function packageOf(profile: Profile, func: number): string {
  const name = profile.names[func], file = profile.packages[profile.packageOf[func]];
  const part = /^[\w$./-]{1,200}?(?=::|\.[A-Za-z_$<(])/.exec(name);
  return (file || "") + " " + (part ? part[0] : "");
}

// A hue for each key: the same one in each profile, but the keys with the most functions have different ones.
function huesOf(keys: string[]): Map<string, number> {
  const counts = new Map<string, number>(), hues = new Map<string, number>(), taken = new Set<number>();
  for (const key of keys) counts.set(key, (counts.get(key) || 0) + 1);
  for (const [key] of Array.from(counts).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))) {
    let hue = hash(key) % HUES.length;
    while (taken.size < HUES.length && taken.has(hue)) hue = (hue + 1) % HUES.length;
    taken.add(hue);
    hues.set(key, HUES[hue]);
  }
  return hues;
}

export class Palette {
  private colours: string[] = [];

  constructor(profile: Profile, mode: Colours, theme: Theme) {
    const neutral = theme.isDark ? "hsl(220 6% 38%)" : "hsl(220 12% 86%)";
    const strong = tone(HUES[0], 0, theme.isDark), cool = tone(HUES[1], 1, theme.isDark);
    const keys = mode === "package" ? profile.names.map((_, func) => packageOf(profile, func)) : [], hues = huesOf(keys);
    this.colours = profile.names.map((name, func) => {
      if (mode === "system") return [neutral, cool, strong][profile.inApp[func]];
      if (mode === "recursion") return neutral;
      return tone(mode === "name" ? HUES[hash(name) % HUES.length] : hues.get(keys[func])!, hash(name) % 3, theme.isDark);
    });
    this.isDark = theme.isDark;
    this.recursive = strong;
    this.root = neutral;
  }

  readonly recursive: string; // in the mode "recursion": a function that one of its callers is, too
  readonly root: string;
  private readonly isDark: boolean;

  // Of a change of the share: red grew, blue shrank; the strongest for functions that are new.
  ofChange(change: number): string {
    const strength = Math.min(1, Math.abs(change)), hue = change > 0 ? 8 : 215;
    if (strength < 0.02) return this.root;
    return this.isDark ? `hsl(${hue} ${20 + 40 * strength}% ${30 + 8 * strength}%)` : `hsl(${hue} ${40 + 45 * strength}% ${90 - 22 * strength}%)`;
  }

  of(func: number): string {
    return func < 0 ? this.root : this.colours[func];
  }
}

export function readTheme(): Theme {
  const style = getComputedStyle(document.documentElement), value = (name: string) => style.getPropertyValue(name).trim();
  return {
    isDark: value("--dark") === "1", background: value("--background"), text: value("--text"), faint: value("--faint"),
    line: value("--line"), bar: value("--chart"), accent: value("--accent"),
  };
}
