// What the views share.  SPDX-License-Identifier: MIT
import type { BoxView } from "./box_view";
import type { Client } from "./client";
import type { Host } from "./host";
import type { Palette, Theme } from "./palette";
import type { Found, Profile, Selection, Span, Sums } from "./protocol";
import type { State } from "./state";
import { percent, quantity, safe } from "./text";

export interface App {
  client: Client;
  profile: Profile;
  spans: Span[];
  host: Host | null; // of one profile; null: a server has it
  state: State;
  selection: Selection;
  sums: Sums;
  isBase?: boolean; // SUMS are the sums of the base, compared with the shown profile
  found: Found | null; // null: nothing is searched for
  theme: Theme;
  palette: Palette;
  // Shows the changed state. REPLACE: without an entry for the button "back", as small steps are.
  update(changes: Partial<State>, replace?: boolean): void;
  announce(text: string): void;
  // The same for what is selected, which programs that read the page aloud know already.
  describe(text: string): void;
}

export interface ViewOfApp {
  readonly element: HTMLElement;
  show(): void;
  focus(): void;
  // True if the key was for this view.
  key(event: KeyboardEvent): boolean;
  readonly picture?: BoxView; // of which a picture can be kept
  readonly path: number[]; // functions from the outermost one to the selected one; []: none is selected
}

export function nameOf(app: App, func: number): string {
  return func < 0 ? "all" : safe(app.profile.names[func]) || "(no name)";
}

export function unitOf(app: App): string {
  return app.profile.types[app.selection.type].unit;
}

// "src/a.c:12", or "".
export function placeOf(app: App, func: number): string {
  if (func < 0) return "";
  const file = safe(app.profile.files[app.profile.fileOf[func]] || ""), line = app.profile.lineOf[func];
  return file && line > 0 ? `${file}:${line}` : file;
}

export function packageOf(app: App, func: number): string {
  return func < 0 ? "" : safe(app.profile.packages[app.profile.packageOf[func]] || "");
}

export function amount(app: App, value: number): string {
  return `${quantity(value, unitOf(app))} (${percent(value, app.sums.total)})`;
}

// The same for what draws the base beside the shown profile.
export function appOfBase(app: App): App {
  const sums = () => {
    const { total, self, inclusive, samples, base } = app.sums;
    return base ? { ...base, samples, base: { total, self, inclusive } } : app.sums;
  };
  return Object.create(app, { sums: { get: sums }, isBase: { value: true } }) as App;
}

// How the share of the total changed against the base: -1 (only in the base) … 1 (only in what is shown).
export function shareChange(app: App, value: number, base: number): number {
  const { total, base: other } = app.sums;
  const now = total > 0 ? value / total : 0, before = other && other.total > 0 ? base / other.total : 0;
  const change = now + before > 0 ? (now - before) / (now + before) : 0;
  return app.isBase ? -change : change;
}

// The change of the share, in percent of the total.
export function pointsOf(app: App, value: number, base: number): number {
  const { total, base: other } = app.sums;
  const points = 100 * ((total > 0 ? value / total : 0) - (other && other.total > 0 ? base / other.total : 0));
  return app.isBase ? -points : points;
}

// "base 1.2 s (3.10%), +0.42 points", of shares.
export function changeText(app: App, value: number, base: number): string {
  const points = pointsOf(app, value, base), whole = app.sums.base ? app.sums.base.total : 0;
  return `${app.isBase ? "now" : "base"} ${quantity(base, unitOf(app))} (${percent(base, whole)}), ${points >= 0 ? "+" : "−"}${Math.abs(points).toFixed(2)} points`;
}
