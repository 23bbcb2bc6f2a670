// What the views share.  SPDX-License-Identifier: MIT
import type { Client } from "./client";
import type { Palette, Theme } from "./palette";
import type { Found, Profile, Selection, Sums } from "./protocol";
import type { State } from "./state";
import { percent, quantity, safe } from "./text";

export interface App {
  client: Client;
  profile: Profile;
  state: State;
  selection: Selection;
  sums: Sums;
  found: Found | null; // null: nothing is searched for
  theme: Theme;
  palette: Palette;
  // Shows the changed state. REPLACE: without an entry for the button "back", as small steps are.
  update(changes: Partial<State>, replace?: boolean): void;
  announce(text: string): void;
}

export interface ViewOfApp {
  readonly element: HTMLElement;
  show(): void;
  focus(): void;
  // True if the key was for this view.
  key(event: KeyboardEvent): boolean;
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
