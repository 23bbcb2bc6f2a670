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

const HUES = [30, 205, 150, 255, 345]; // few, so that names are easy to see, not single boxes
const WARM = [30, 52, 6, 342, 18, 70], COOL = [205, 165, 240, 185, 268, 222];

function hash(text: string): number {
  let sum = 2166136261;
  for (let i = 0; i < text.length && i < 200; i++) sum = Math.imul(sum ^ text.charCodeAt(i), 16777619);
  return (sum ^ (sum >>> 15)) >>> 0;
}

function tone(hue: number, shade: number, isDark: boolean): string {
  return isDark ? `hsl(${hue} 34% ${32 + shade * 4}%)` : `hsl(${hue} 62% ${79 + shade * 3}%)`;
}

const SCRIPT = /\.(?:[cm]?[jt]sx?|py|rb|php|lua|pl)$/;
const LIBRARY = /(?:^|\/)(?:node_modules|site-packages|dist-packages|vendor|gems|registry\/src\/[^/]+)\/((?:@[^/]+\/)?[^/]+)/;
const SYSTEM = new RegExp("^node:|^<frozen|^\\[|^/(?:usr/)?lib|(?:^|/)(?:lib[^/]*\\.so[.\\d]*|ld-linux[^/]*|vmlinux)|^kernel|/lib/python\\d" +
                          "|/local/go/src/|/pkg/mod/|@v\\d[^/]*/|^[a-z]\\w*(?:/\\w+)*/\\w+\\.go$|^/rustc/"); // the last ones: Go with -trimpath, Rust
const RUNTIME = /^(?:javax?|jdk|sun|com\.sun|kotlinx?|scala|System|Microsoft)\./; // of Java's and .NET's names, which have no paths

// The package of a function; of a script its library, or else its file; without one, the first part of its name: of Go with
// its path, of Java with the domain.
function packageOf(profile: Profile, func: number): string {
  const name = profile.names[func], own = profile.packages[profile.packageOf[func]] || "", file = profile.files[profile.fileOf[func]] || "";
  const library = LIBRARY.exec(file) || LIBRARY.exec(own);
  if (library) return library[1];
  if (SCRIPT.test(file) && !SYSTEM.test(file)) return file;
  const part = /^(?:[\w.-]{1,100}\/)+[\w-]{1,100}|^(?:com|org|net|io)\.\w{1,100}(?:\.[a-z]\w{0,100}(?=\.))?|^[\w$./-]{1,200}?(?=::|\.[A-Za-z_$<(])/.exec(name);
  return own + " " + (part ? part[0] : "");
}

function isLibrary(profile: Profile, func: number): boolean {
  if (profile.inApp[func] > 0) return profile.inApp[func] === 1;
  const own = profile.packages[profile.packageOf[func]] || "", file = profile.files[profile.fileOf[func]] || "";
  return LIBRARY.test(file) || LIBRARY.test(own) || SYSTEM.test(file) || SYSTEM.test(own) || (RUNTIME.test(profile.names[func]) && !SCRIPT.test(file));
}

// Hues for each key, of HUES: those with the largest shares have different ones, the others what their names say.
function huesOf(shares: Map<string, number>, hues: number[]): Map<string, number> {
  const keys = Array.from(shares).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  return new Map(keys.map(([key], place) => [key, hues[place < hues.length ? place : hash(key) % hues.length]] as [string, number]));
}

// Warm for the program's own packages, cool for libraries and the kernel. WEIGHTS: the self values of the functions.
function packageHues(profile: Profile, weights: ArrayLike<number>): number[] {
  const shares = [new Map<string, number>(), new Map<string, number>()];
  const places = profile.names.map((_, func) => [packageOf(profile, func), isLibrary(profile, func) ? 1 : 0] as [string, number]);
  places.forEach(([key, side], func) => shares[side].set(key, (shares[side].get(key) || 0) + Math.abs(weights[func] || 0)));
  const hues = [huesOf(shares[0], WARM), huesOf(shares[1], COOL)];
  return places.map(([key, side]) => hues[side].get(key)!);
}

export class Palette {
  private colours: string[] = [];

  constructor(profile: Profile, mode: Colours, theme: Theme, weights: ArrayLike<number>) {
    const neutral = theme.isDark ? "hsl(220 6% 38%)" : "hsl(220 12% 86%)";
    const strong = tone(HUES[0], 0, theme.isDark), cool = tone(HUES[1], 1, theme.isDark);
    const hues = mode === "package" ? packageHues(profile, weights) : [];
    this.colours = profile.names.map((name, func) => {
      if (mode === "system") return [neutral, cool, strong][profile.inApp[func]];
      if (mode === "recursion") return neutral;
      return tone(mode === "name" ? HUES[hash(name) % HUES.length] : hues[func], hash(name) % 3, theme.isDark);
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
