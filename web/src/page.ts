// The page: its controls, its views, and the state that the URL has.  SPDX-License-Identifier: MIT
import { amount, App, nameOf, packageOf, placeOf, ViewOfApp } from "./app";
import type { Client } from "./client";
import { button, choice, fill, make } from "./dom";
import { makeExport, Source } from "./export_dialog";
import { FlameView } from "./flame_view";
import { makeHelp } from "./help";
import type { Host } from "./host";
import { carryOver } from "./live";
import { Palette, readTheme } from "./palette";
import type { Found, Profile, Selection, Span, Sums } from "./protocol";
import { SandwichView } from "./sandwich_view";
import { SourceView } from "./source_view";
import { COLOURS, parseState, State, stateText, View, VIEWS } from "./state";
import { percent, quantity, safe, Unit } from "./text";
import { rangeText, threadName, TimeView } from "./time_view";
import { TopView } from "./top_view";
import { TreeView } from "./tree_view";

const TITLES: { [view in View]: string } = { flame: "Flame graph", top: "Functions", sandwich: "Callers & callees", tree: "Call tree", time: "Time", source: "Source" };
const COLOUR_TITLES = { package: "by package", system: "application or system", name: "by name", recursion: "recursion" };

const THREADS_MAX = 5000; // in the list

// Changes of all stacks with a function, by the server's parameter that makes them.
export type Transform = "hide" | "prune_from" | "ignore" | "show_from";
const TRANSFORMS: [transform: Transform, key: string, text: string][] =
  [["hide", "m", "merge into its callers (m)"], ["prune_from", "k", "collapse what it calls (k)"], ["ignore", "x", "drop its samples (x)"], ["show_from", "f", "focus: it is the root (f)"]];

// What else the page may show.
export interface More {
  spans?: Span[]; // above the flamechart
  source?: Source; // where a server computes files
  host?: Host; // of one profile
  transform?: (transform: Transform, name: string) => void; // where a server computes that
}

export class Page implements App {
  state: State;
  selection!: Selection;
  sums!: Sums;
  found: Found | null = null;
  theme = readTheme();
  palette!: Palette;
  private readonly views: { [view in View]: ViewOfApp };
  private readonly main = make("main");
  private readonly status = make("output", { class: "status", role: "status", "aria-live": "polite" });
  private readonly search = make("input", { type: "search", placeholder: "Search", "aria-label": "Search functions", spellcheck: "false" });
  private readonly searchResult = make("span", { class: "result", role: "status" });
  private readonly matchButtons = [button("‹", "previous match (N)", () => void this.goToMatch(-1)), button("›", "next match (n)", () => void this.goToMatch(1))];
  private readonly chips = make("span", { class: "chips" });
  private readonly selected = make("span", { class: "selected" });
  private readonly total = make("span", { class: "total" });
  private readonly tabs: HTMLButtonElement[];
  private readonly controls: { [name: string]: HTMLSelectElement | HTMLButtonElement };
  private readonly help = makeHelp();
  private shownSelection = "";
  private shownSearch = "";
  private shownColours = "";
  private matchPlace = -1;
  private applying: Promise<void> = Promise.resolve();
  private searchTimer = 0;
  private readonly ending = new AbortController();
  private next: Profile | null = null; // that the worker has and the page does not show yet
  private version = 0; // counts the profiles that were shown
  isPaused = false;
  private readonly live = button("live", "the command runs: pause the page, or continue (l)", () => this.pause());

  // PLACE gets the page's elements.
  constructor(readonly client: Client, public profile: Profile, private readonly place: HTMLElement, private readonly more: More = {}) {
    this.live.className = "live";
    this.live.hidden = true;
    this.state = parseState(location.hash);
    this.tabs = VIEWS.map((view, i) => {
      const tab = button(TITLES[view], `${TITLES[view]} (${i + 1})`, () => this.update({ view }));
      tab.setAttribute("role", "tab");
      return tab;
    });
    this.controls = this.makeControls();
    this.fillControls();
    this.views = { flame: new FlameView(this), top: new TopView(this), sandwich: new SandwichView(this), tree: new TreeView(this), time: new TimeView(this), source: new SourceView(this) };
    for (const view of VIEWS) this.main.append(this.views[view].element);
    document.title = `${safe(profile.title) || "profile"} – offbeat`;
    place.append(this.makeHeader(), this.main, make("footer", {}, this.status, this.selected, this.total), this.help);
    this.listen();
    this.apply();
  }

  get spans(): Span[] {
    return this.more.spans || [];
  }

  get host(): Host | null {
    return this.more.host || null;
  }

  // --- A command that runs --------------------------------------------------------------------------------------------

  // Shows PROFILE, which the worker has opened, with the same view of it.
  replace(profile: Profile): void {
    this.next = profile;
    this.apply();
  }

  showLive(isLive: boolean): void {
    this.live.hidden = !isLive;
    this.live.setAttribute("aria-pressed", String(this.isPaused));
    this.live.textContent = this.isPaused ? "paused" : "live";
  }

  private pause(): void {
    this.isPaused = !this.isPaused;
    this.showLive(true);
    this.announce(this.isPaused ? "The page is paused; the command runs on." : "The page follows the command.");
  }

  private takeNext(next: Profile): void {
    this.state = carryOver(this.state, this.profile, next);
    this.profile = next;
    this.version++;
    this.shownColours = "";
    this.fillControls();
    const url = location.pathname + location.search + stateText(this.state);
    history.replaceState(null, "", url);
  }

  // Removes the page, so that another one can take its place.
  end(): void {
    this.ending.abort();
    this.place.replaceChildren();
  }

  // --- Controls -------------------------------------------------------------------------------------------------------

  private fillControls(): void {
    const { types, threads } = this.profile;
    const active = threads.map((_, i) => i).filter((i) => threads[i].samples > 0);
    const shown = active.slice(0, THREADS_MAX).map((i) => [String(i), threadName(threads[i].name, threads[i].id)] as [string, string]);
    const left = active.length - shown.length;
    fill(this.controls.type as HTMLSelectElement, types.map(({ type }, i) => [String(i), safe(type, 60)]));
    fill(this.controls.thread as HTMLSelectElement, [["-1", `all ${active.length} threads`], ...shown, ...(left > 0 ? [["-1", `… ${left} more`] as [string, string]] : [])]);
  }

  private makeControls(): { [name: string]: HTMLSelectElement | HTMLButtonElement } {
    return {
      type: choice("Value", [], (value) => this.update({ type: Number(value), zoom: null, path: [] })),
      thread: choice("Thread", [], (value) => this.update({ thread: Number(value), zoom: null, path: [] })),
      colours: choice("Colours", COLOURS.map((mode) => [mode, COLOUR_TITLES[mode]]), (value) => this.update({ colours: value as State["colours"] })),
      order: choice("Order", [["heavy", "largest first"], ["name", "by name"]], (value) => this.update({ order: value as State["order"], zoom: null })),
      inverted: button("Inverted", "callers inside (i)", () => this.update({ inverted: !this.state.inverted, zoom: null, path: [] })),
      transform: choice("Selected function", [["", "Selected function …"], ...TRANSFORMS.map(([transform, , text]) => [transform, text] as [string, string])], (value) => this.transform(value as Transform)),
      up: button("Upwards", "the root below, as flames rise (u)", () => this.update({ up: !this.state.up })),
      sides: button("Side by side", "the base beside it (b)", () => this.update({ sides: !this.state.sides })),
    };
  }

  private makeHeader(): HTMLElement {
    const { profile, controls } = this;
    const facts = [profile.release, profile.environment].filter((text) => text !== "").map((text) => safe(text, 80)).join(" · ");
    const tabs = make("div", { role: "tablist", class: "tabs" }, ...this.tabs);
    const icons = make("div", { class: "icons" }, button("⤓", "export (e)", () => this.showExport()), button("◐", "light or dark (t)", () => this.switchTheme()), button("?", "keys (?)", () => this.help.showModal()));
    return make("header", {}, make("div", { class: "bar" }, make("h1", { title: safe(profile.title) }, safe(profile.title, 80) || "profile"),
                                   this.live, make("span", { class: "facts" }, facts), tabs, make("span", { class: "search" }, this.searchResult, ...this.matchButtons, this.search), icons),
                make("div", { class: "bar options" }, controls.type, controls.thread, controls.inverted, controls.up, controls.sides, controls.order, controls.colours, controls.transform, this.chips));
  }

  private showControls(): void {
    const { state, controls, selection, profile } = this;
    VIEWS.forEach((view, i) => this.tabs[i].setAttribute("aria-selected", String(view === state.view)));
    for (const view of VIEWS) this.views[view].element.hidden = view !== state.view;
    const isTree = state.view === "flame" || state.view === "tree", hasBoxes = isTree || state.view === "sandwich";
    this.tabs[VIEWS.indexOf("source")].hidden = !this.host?.isServed;
    controls.inverted.hidden = !isTree;
    controls.transform.hidden = !this.more.transform || state.view === "time";
    (controls.transform as HTMLSelectElement).value = "";
    controls.up.hidden = state.view !== "flame";
    controls.up.setAttribute("aria-pressed", String(state.up));
    controls.sides.hidden = !profile.isDiff || state.view !== "flame";
    controls.sides.setAttribute("aria-pressed", String(state.sides));
    controls.order.hidden = !hasBoxes;
    controls.colours.hidden = profile.isDiff || !(hasBoxes || state.view === "time") || state.view === "tree";
    controls.type.hidden = profile.types.length < 2 || state.view === "time" || this.more.source !== undefined; // the bar of the server has the types
    controls.thread.hidden = profile.threads.filter(({ samples }) => samples > 0).length < 2 || state.view === "time";
    controls.inverted.setAttribute("aria-pressed", String(state.inverted));
    (controls.type as HTMLSelectElement).value = String(selection.type);
    (controls.thread as HTMLSelectElement).value = String(selection.thread);
    (controls.order as HTMLSelectElement).value = state.order;
    (controls.colours as HTMLSelectElement).value = state.colours;
    if (this.search.value !== state.search) this.search.value = state.search;
    this.chips.replaceChildren();
    if (state.range) this.chips.append(button(`${rangeText(state.range)} ✕`, "show all of the time", () => this.update({ range: null, zoom: null, path: [] })));
    if (profile.isDiff) this.chips.append(make("span", { class: "legend" }, make("span", { class: "more" }, "larger share"), make("span", { class: "less" }, "smaller share"), "than the base"));
    this.searchResult.textContent = this.found ? `${percent(this.found.share, 1)} · ${this.found.functions}` : "";
    for (const press of this.matchButtons) press.hidden = this.found === null;
    this.searchResult.title = this.found ? `functions that match: ${this.found.functions}, with ${percent(this.found.share, 1)} of the total` : "";
    const unit = profile.types[selection.type].unit;
    const samples = profile.hasTimes ? ` · ${new Unit("count", 0).number(this.sums.samples)} samples` : "";
    this.total.textContent = quantity(this.sums.total, unit) + samples;
    this.total.setAttribute("data-total", String(this.sums.total));
  }

  private showExport(): void {
    const dialog = makeExport(this, this.views[this.state.view].picture, this.more.source || null);
    this.place.append(dialog);
    dialog.addEventListener("close", () => dialog.remove());
    dialog.showModal();
  }

  private switchTheme(): void {
    this.update({ theme: this.theme.isDark ? "light" : "dark" });
  }

  announce(text: string): void {
    this.status.textContent = text;
    this.selected.textContent = "";
  }

  describe(text: string): void {
    this.status.textContent = "";
    this.selected.textContent = text;
  }

  // --- State ----------------------------------------------------------------------------------------------------------

  update(changes: Partial<State>, replace = false): void {
    this.state = { ...this.state, ...changes };
    const hash = stateText(this.state), url = location.pathname + location.search + hash;
    if (replace) history.replaceState(null, "", url);
    else if (hash !== location.hash) history.pushState(null, "", url);
    this.apply();
  }

  // One after the other, so that a slow answer does not replace a later one.
  private apply(): void {
    this.applying = this.applying.then(() => this.applyNow()).catch((error: Error) => this.announce(error.message));
  }

  private async applyNow(): Promise<void> {
    const { next } = this, profile = next || this.profile, wanted = next ? carryOver(this.state, this.profile, next) : this.state;
    await this.select(next, this.selectionOf(wanted, profile));
    const { state } = this;
    if (state.search !== this.shownSearch) {
      this.found = state.search === "" ? null : await this.client.ask("find", { text: state.search });
      this.shownSearch = state.search;
      this.matchPlace = -1;
    }
    this.showTheme();
    this.showControls();
    this.views[state.view].show();
  }

  private selectionOf(state: State, profile: Profile): Selection {
    return {
      type: state.type >= 0 && state.type < profile.types.length && !this.more.source ? state.type : profile.type,
      thread: state.thread < profile.threads.length ? state.thread : -1,
      from: state.range ? state.range[0] : 0, to: state.range ? state.range[1] : Infinity,
      version: this.version + (profile === this.profile ? 0 : 1),
    };
  }

  private async select(next: Profile | null, selection: Selection): Promise<void> {
    const key = JSON.stringify(selection);
    if (key !== this.shownSelection) {
      if (next) void this.client.ask("show", {});
      const sums = await this.client.ask("select", selection);
      if (next) this.takeNext(next);
      if (next === this.next) this.next = null;
      this.sums = sums;
      this.shownSelection = key;
      this.shownSearch = "";
      this.found = null;
    }
    this.selection = selection;
  }

  private showTheme(): void {
    const root = document.documentElement;
    if (this.state.theme) root.setAttribute("data-theme", this.state.theme);
    else root.removeAttribute("data-theme");
    this.theme = readTheme();
    const key = `${this.state.colours} ${this.theme.isDark}`;
    if (key === this.shownColours) return;
    this.shownColours = key;
    this.palette = new Palette(this.profile, this.state.colours, this.theme, this.sums.self);
  }

  private async goToMatch(step: number): Promise<void> {
    if (!this.found || this.found.calls === 0) return;
    this.matchPlace = this.matchPlace < 0 ? (step > 0 ? 0 : this.found.calls - 1) : (this.matchPlace + step + this.found.calls) % this.found.calls;
    const path = await this.client.ask("match", { place: this.matchPlace });
    if (path.length === 0) return;
    const func = path[path.length - 1];
    if (this.state.view !== "flame" || this.state.inverted) this.update({ view: "flame", inverted: false });
    await this.applying;
    await (this.views.flame as FlameView).select(path, true);
    this.announce(`match ${this.matchPlace + 1} of ${this.found.calls}: ${nameOf(this, func)}, ${amount(this, this.sums.inclusive[func])}`);
  }

  // --- Events ---------------------------------------------------------------------------------------------------------

  private listen(): void {
    window.addEventListener("popstate", () => {
      this.state = parseState(location.hash);
      this.apply();
    }, this.ending);
    window.addEventListener("keydown", (event) => this.key(event), this.ending);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.apply(), this.ending);
    this.search.addEventListener("input", () => {
      clearTimeout(this.searchTimer);
      this.searchTimer = window.setTimeout(() => this.update({ search: this.search.value }, true), 80);
    });
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") void this.goToMatch(event.shiftKey ? -1 : 1);
      if (event.key === "Escape") this.views[this.state.view].focus();
      if (event.key === "Enter" || event.key === "Escape") event.preventDefault();
      event.stopPropagation();
    });
  }

  private key(event: KeyboardEvent): void {
    const isFind = (event.ctrlKey || event.metaKey) && event.key === "f";
    if (isFind || (event.key === "/" && !event.ctrlKey && !event.altKey)) {
      event.preventDefault();
      this.search.focus();
      this.search.select();
      return;
    }
    const target = event.target as HTMLElement;
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]") || target instanceof HTMLSelectElement || target instanceof HTMLInputElement) return;
    if (target instanceof HTMLButtonElement && (event.key === "Enter" || event.key === " ")) return;
    if (this.ownKey(event.key) || this.views[this.state.view].key(event)) event.preventDefault();
  }

  private ownKey(key: string): boolean {
    const { state } = this, view = VIEWS[Number(key) - 1];
    if (view) {
      const path = this.views[state.view].path, isOfFunction = view === "sandwich" || view === "source";
      this.update(isOfFunction && path.length > 0 ? { view, func: path[path.length - 1] } : { view });
      void this.applying.then(() => this.views[view].focus());
    } else if (key === "?") this.help.showModal();
    else if (key === "i") this.controls.inverted.click();
    else if (key === "u") this.update({ view: "flame", up: !state.up });
    else if (key === "b" && this.profile.isDiff) this.update({ view: "flame", sides: this.state.view !== "flame" || !state.sides });
    else if (key === "o") this.update({ order: state.order === "heavy" ? "name" : "heavy", zoom: null });
    else if (key === "c") this.update({ colours: COLOURS[(COLOURS.indexOf(state.colours) + 1) % COLOURS.length] });
    else if (key === "t") this.switchTheme();
    else if (key === "n") void this.goToMatch(1);
    else if (key === "N") void this.goToMatch(-1);
    else if (key === "e") this.showExport();
    else if (key === "l" && !this.live.hidden) this.pause();
    else if (this.more.transform && TRANSFORMS.some(([, own]) => own === key)) this.transform(TRANSFORMS.find(([, own]) => own === key)![0]);
    else if (key === "y" || key === "Y" || key === "p") void this.copy(key);
    else return false;
    return true;
  }

  // A step that the button "back" undoes.
  private transform(transform: Transform): void {
    const path = this.views[this.state.view].path, func = path[path.length - 1], name = func === undefined ? undefined : this.profile.names[func];
    (this.controls.transform as HTMLSelectElement).value = "";
    if (name === undefined) {
      this.announce("select a function first: arrows, or a click");
      return;
    }
    this.update({ path: [], zoom: null, func: -1 }, true); // numbers of functions are those of this profile
    this.more.transform!(transform, name);
  }

  // y: the name of the selected function, p: its file and line, Y: the stack, the outermost function first.
  private async copy(key: "y" | "Y" | "p"): Promise<void> {
    const path = this.views[this.state.view].path, func = path[path.length - 1];
    if (func === undefined) {
      this.announce("select a function first: arrows, or a click");
      return;
    }
    const text = key === "y" ? this.profile.names[func] : key === "p" ? placeOf(this, func) || packageOf(this, func) : this.stackOf(path);
    if (text === "") this.announce(`the profile does not say where ${nameOf(this, func)} is`);
    else if (!navigator.clipboard) this.announce("this page may not use the clipboard");
    else {
      await navigator.clipboard.writeText(text);
      this.announce(key === "Y" ? `copied: a stack of ${path.length}` : `copied: ${safe(text)}`);
    }
  }

  private stackOf(path: number[]): string {
    const isInverted = this.state.inverted && (this.state.view === "flame" || this.state.view === "tree");
    return (isInverted ? path.slice().reverse() : path).map((func) => this.profile.names[func]).join("\n");
  }
}
