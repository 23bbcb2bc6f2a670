// A part of the store as a profile: filters and comparison above the views of page.ts.  SPDX-License-Identifier: MIT
import type { Kind, Parameters } from "./api";
import { Client } from "./client";
import { button, choice, make } from "./dom";
import { Page, Transform } from "./page";
import type { Profile, Span } from "./protocol";
import type { ServerApp, ServerView } from "./server_page";
import { baseOf, hasBase, selectionOf, ServerState } from "./server_state";
import type { Activity } from "./services_view";
import { TimeChart } from "./sparkline";
import { percent, quantity, safe } from "./text";
import { SECONDS, secondsOf, timeField, timeText } from "./times";

type Values = { name: string }[];
interface SpanOfServer {
  name: string;
  op: string;
  thread: string;
  start: string;
  end: string;
}

interface Tag {
  name: string;
  values: string[];
}

type TypeOfServer = Kind & { is_default: boolean };

const FILTERS: [name: "service" | "environment" | "release" | "host" | "transaction", list: string, label: string][] =
  [["service", "services", "Service"], ["environment", "environments", "Environment"], ["release", "releases", "Release"], ["host", "hosts", "Host"],
   ["transaction", "transactions", "Transaction"]];
const STEPS: [name: "hide" | "prune_from" | "show_from", text: string][] = [["hide", "merged"], ["prune_from", "collapsed"], ["show_from", "root"]];
const SPANS_MAX = 2000, AROUND = 0.5, SUGGESTIONS_MAX = 300, LIST_MAX = 10000, LARGE_BYTES = 1 << 20;

export class ProfileView implements ServerView {
  readonly element = make("section", { class: "server-view profile" });
  private readonly bar = make("div", { class: "bar filters" });
  private readonly place = make("div", { class: "page" });
  private readonly chart: TimeChart;
  private client: Client | null = null;
  private page: Page | null = null;
  private types: TypeOfServer[] = [];
  private chosen = ""; // one of TYPES
  private readonly functions = make("datalist", { id: "functions" });
  private readonly tags = make("datalist", { id: "tags" });
  private readonly rule = make("span", { class: "faint rule" });

  constructor(private readonly app: ServerApp) {
    this.chart = new TimeChart((from, to) => app.go({ from: from.toFixed(3), to: to.toFixed(3) }, true));
    this.element.append(this.functions, this.tags, this.bar, this.chart.element, this.place);
  }

  hide(): void {
    this.page?.end();
    this.page = null;
    this.place.replaceChildren(); // also what said that there is nothing
  }

  private get isSession(): boolean {
    const { profiler, chunk, span } = this.app.state;
    return profiler !== "" || chunk !== "" || span !== "";
  }

  async show(): Promise<void> {
    const { api, state } = this.app;
    this.hide();
    this.chart.element.hidden = this.isSession;
    this.types = [];
    this.rule.textContent = "";
    this.showBar(null);
    if (!this.isSession) void this.showChart();
    try {
      const parameters = await this.withType(selectionOf(state)), { type } = parameters;
      const arrived = (bytes: number, all: number) => {
        if (state === this.app.state && all > LARGE_BYTES) this.app.say(`Reading the profile: ${percent(bytes, all)} of ${quantity(all, "bytes")} …`);
      };
      void this.showFilters();
      void this.suggestTags();
      const [{ bytes, kind }, based, spans] = await Promise.all([
        api.page(this.isSession ? { ...parameters, times: "1" } : parameters, arrived),
        hasBase(state) && !this.isSession ? api.page({ ...baseOf(state), type }, arrived) : undefined,
        this.isSession ? this.spans() : [],
      ]);
      const base = based?.bytes;
      this.client ||= new Client(this.app.script);
      const profile = await this.client.ask("open", { bytes, base }, base ? [bytes, base] : [bytes]);
      if (state !== this.app.state) return;
      this.rule.textContent = ruleText(kind);
      Object.assign(profile, { release: state.release, environment: state.environment }); // a sum may have several
      if (this.isSession && !/view=/.test(location.hash)) history.replaceState(null, "", location.pathname + location.search + `#v=1&view=time${windowText(state, profile)}`);
      this.suggest(profile);
      this.page = new Page(this.client, profile, this.place, { spans: spansOnAxis(spans, profile), source: { api, parameters }, transform: (transform, name) => this.transform(transform, name) });
    } catch (error) {
      if (state === this.app.state) this.showNothing(error as Error);
      throw error;
    }
  }

  // PARAMETERS with the chosen type, or with the usual one of what they select: both sides of a comparison have the same.
  private async withType(parameters: Parameters): Promise<Parameters> {
    const { types } = await this.app.api.json<{ types: TypeOfServer[] }>("types", { ...parameters, type: "" });
    const chosen = types.find(({ name }) => name === parameters.type) || types.find(({ is_default }) => is_default);
    this.types = types;
    this.chosen = chosen ? chosen.name : "";
    return { ...parameters, type: this.chosen };
  }

  private async spans(): Promise<SpanOfServer[]> {
    const { from, to, service, profiler, trace } = this.app.state;
    if (!profiler && !trace) return [];
    const { spans } = await this.app.api.json<{ spans: SpanOfServer[] }>("spans", { from, to, service, profiler, trace, limit: String(SPANS_MAX) });
    return spans;
  }

  private showNothing(error: Error): void {
    if (error.name === "AbortError") return;
    const wider = button("Show all of the time", "without a range", () => this.app.go({ from: "", to: "", base_from: "", base_to: "" }, true));
    const unfiltered = button("Without filters", "only the service and the range", () => this.app.go({ environment: "", release: "", host: "", transaction: "", thread: "", tag_focus: "", focus: "", ignore: "", hide: "", prune_from: "", show_from: "" }, true));
    this.place.replaceChildren(make("div", { class: "empty" }, make("h2", {}, "There is no profile to show"), make("p", {}, error.message), make("p", {}, wider, unfiltered)));
  }

  // --- What is chosen -------------------------------------------------------------------------------------------------

  private async showChart(): Promise<void> {
    const { api, state } = this.app, from = secondsOf(state.from), to = state.to ? secondsOf(state.to) : Date.now() / 1000;
    const around = from > 0 ? (to - from) * AROUND : 0; // what is before and after the range
    const activity = await api.json<Activity>("activity", { service: state.service, from: from > 0 ? (from - around).toFixed(3) : "", to: from > 0 ? (to + around).toFixed(3) : "", buckets: "120" })
      .catch(() => null);
    if (!activity) return;
    const values = activity.services.find(({ name }) => name === state.service) || activity.services[0];
    this.chart.element.hidden = !values;
    this.chart.show(values ? values.samples_by_time : [], secondsOf(activity.start), secondsOf(activity.end));
    this.chart.showMark(from || secondsOf(activity.start), to);
  }

  private async showFilters(): Promise<void> {
    const { api, state } = this.app, lists: { [name: string]: string[] } = {};
    await Promise.all(FILTERS.map(async ([name, list]) => {
      const answer = await api.json<{ [list: string]: Values }>(list, { service: name === "service" ? "" : state.service, limit: String(LIST_MAX) }).catch(() => null);
      const names = new Set((answer ? answer[list] : []).map((value) => value.name)); // a transaction is listed each time
      lists[name] = Array.from(names).sort();
    }));
    if (state === this.app.state) this.showBar(lists);
  }

  private showBar(lists: { [name: string]: string[] } | null): void {
    const { state } = this.app, parts: HTMLElement[] = [];
    if (this.isSession) parts.push(this.app.link("‹ Sessions", "all sessions", { place: "sessions", profiler: "", chunk: "", trace: "", span: "", from: "", to: "" }));
    for (const [name, , label] of FILTERS) {
      const values = (lists ? lists[name] : []).filter((value) => value !== "");
      if (state[name] !== "" && !values.includes(state[name])) values.unshift(state[name]);
      if (values.length === 0 || (values.length === 1 && state[name] === "")) continue;
      const select = choice(label, [["", `${label}: all`], ...values.map((value) => [value, safe(value, 60)] as [string, string])], (value) => this.app.go({ [name]: value } as Partial<ServerState>, true));
      select.value = state[name];
      parts.push(select);
    }
    if (this.types.length > 1) parts.push(this.typeChoice());
    parts.push(this.rule, this.filter("tag_focus", "Label", "only samples with this label: key=value, or a regular expression"),
               this.filter("focus", "Focus", "only stacks with a function that this regular expression matches"),
               this.filter("ignore", "Ignore", "no stacks with a function that this regular expression matches"));
    parts.push(...this.transforms());
    if (!this.isSession) parts.push(this.range(), this.comparison(lists));
    this.bar.replaceChildren(...parts);
  }

  private typeChoice(): HTMLElement {
    const select = choice("Type", this.types.map(({ name }) => [name, safe(name, 60)]), (type) => this.app.go({ type }, true));
    select.value = this.chosen;
    return select;
  }

  private filter(name: "tag_focus" | "focus" | "ignore", label: string, title: string): HTMLElement {
    const field = make("input", { type: "text", "aria-label": label, title, placeholder: label, size: 10, spellcheck: "false", list: name === "tag_focus" ? "tags" : "functions" });
    field.value = this.app.state[name];
    field.addEventListener("change", () => this.app.go({ [name]: field.value.trim() } as Partial<ServerState>, true));
    return field;
  }

  // Offers the names of functions in the fields for them, as expressions that match nothing else. A name that would be
  // shown cut is left out.
  private suggest(profile: Profile): void {
    this.functions.replaceChildren(...profile.names.slice(0, SUGGESTIONS_MAX).map(expressionOf).filter((text) => text === safe(text)).map((value) => make("option", { value })));
  }

  // Offers the labels of whole profiles in the field for them. A value that a part of another one would match is anchored.
  private async suggestTags(): Promise<void> {
    const { api, state } = this.app;
    const { tags } = await api.json<{ tags: Tag[] }>("tags", { service: state.service, environment: state.environment }).catch(() => ({ tags: [] as Tag[] }));
    const options = tags.flatMap(({ name, values }) => values.map((value) => {
      const exact = expressionOf(value).replace(/,/g, "\\x2c"), isPart = values.some((other) => other !== value && other.includes(value));
      return `${name}=${isPart ? exact : exact.slice(1, -1)}`;
    }));
    if (state === this.app.state) this.tags.replaceChildren(...options.filter((text) => text === safe(text)).slice(0, SUGGESTIONS_MAX).map((value) => make("option", { value })));
  }

  // One more function is merged, collapsed or dropped; the root is another one.
  private transform(transform: Transform, name: string): void {
    const before = transform === "show_from" ? "" : this.app.state[transform];
    this.app.go({ [transform]: before ? `${before}|${expressionOf(name)}` : expressionOf(name) } as Partial<ServerState>, true);
  }

  private transforms(): HTMLElement[] {
    const { state } = this.app;
    return STEPS.filter(([name]) => state[name] !== "")
      .map(([name, text]) => button(`${text} ${safe(state[name].replace(/[\\^$]/g, ""), 60)} ✕`, "undo", () => this.app.go({ [name]: "" } as Partial<ServerState>, true)));
  }

  private range(): HTMLElement {
    const { state } = this.app, from = secondsOf(state.from), to = state.to ? secondsOf(state.to) : 0;
    const go = (low: number, high: number) => this.app.go({ from: low.toFixed(3), to: high ? high.toFixed(3) : "" }, true);
    const last = choice("Range", [["", "Range …"], ...SECONDS.map(([text, seconds]) => [String(seconds), `last ${text}`] as [string, string]), ["all", "all"], ["fields", "from … to …"]], (value) => {
      const now = Math.ceil(Date.now() / 1000);
      if (value === "fields") showFields();
      else if (value === "all") this.app.go({ from: "", to: "" }, true);
      else if (value) go(now - Number(value), now);
    });
    const fields = [timeField("From", from, (low) => go(low, to && to > low ? to : 0)), timeField("To", to, (high) => go(Math.min(from, high - 1), high))];
    const showFields = () => {
      for (const field of fields) field.hidden = false;
      fields[0].focus();
    };
    for (const field of fields) field.hidden = from === 0 && to === 0;
    return make("span", { class: "range" }, last, ...fields);
  }

  private comparison(lists: { [name: string]: string[] } | null): HTMLElement {
    const { state } = this.app, from = secondsOf(state.from), to = state.to ? secondsOf(state.to) : Math.ceil(Date.now() / 1000);
    const none = { base_from: "", base_to: "", base_service: "", base_release: "", base_environment: "", base_host: "" };
    const names = (lists ? lists.release : []).filter((name) => name !== "" && name !== state.release).reverse();
    const services = (lists ? lists.service : []).filter((name) => name !== "" && name !== state.service);
    if (state.base_service && !services.includes(state.base_service)) services.unshift(state.base_service);
    if (state.base_release && !names.includes(state.base_release)) names.unshift(state.base_release);
    const options: [string, string][] = [["", "Compare with …"], ["before", "the time before"], ["this", "this range, with the next one"],
                                         ...names.map((name) => [`r${name}`, `vs. release ${safe(name, 60)}`] as [string, string]),
                                         ...services.map((name) => [`s${name}`, `vs. service ${safe(name, 60)}`] as [string, string])];
    if (state.base_from) options.splice(1, 0, ["now", `vs. ${timeText(secondsOf(state.base_from))} – ${timeText(secondsOf(state.base_to))}`]);
    const select = choice("Compare", options, (value) => {
      if (value === "") this.app.go(none, true);
      else if (value === "before") this.app.go({ ...none, base_from: Math.max(0, from - (to - from)).toFixed(3), base_to: from.toFixed(3) }, true);
      else if (value === "this") this.app.go({ ...none, base_from: from.toFixed(3), base_to: to.toFixed(3) }, true);
      else if (value.startsWith("s")) this.app.go({ ...none, base_service: value.slice(1) }, true);
      else if (value.startsWith("r")) this.app.go({ ...none, base_release: value.slice(1) }, true);
    });
    select.value = state.base_service ? `s${state.base_service}` : state.base_release ? `r${state.base_release}` : state.base_from ? "now" : "";
    const swap = button("⇄", "exchange the two sides", () => {
      const { base_from, base_to, base_service, base_release, release, service } = state;
      if (base_service) this.app.go({ service: base_service, base_service: service, release: base_release, base_release: release }, true);
      else this.app.go(base_release ? { release: base_release, base_release: release } : { from: base_from, to: base_to, base_from: from.toFixed(3), base_to: to.toFixed(3) }, true);
    });
    swap.hidden = !hasBase(state) || (state.base_release !== "" && state.release === "" && state.base_service === "");
    return make("span", { class: "comparison" }, select, swap);
  }
}

// A regular expression that matches NAME alone.
function expressionOf(name: string): string {
  return `^${name.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")}$`;
}

// How the number came about, where it is no sum.
function ruleText(kind: Kind | null): string {
  if (!kind || kind.rule === "sum" || kind.profiles === undefined) return "";
  const of = (count: number | undefined, one: string, many: string) => `${count} ${count === 1 ? one : many}`;
  const text = `${kind.rule} of ${of(kind.profiles, "profile", "profiles")} of ${of(kind.series, "process", "processes")}`;
  return kind.restarts ? `${text}, ${of(kind.restarts, "restart", "restarts")}` : text;
}

// The time view begins with the range, not with the chunk that the range is in.
function windowText(state: ServerState, profile: Profile): string {
  const place = (seconds: string) => Math.round(Number(seconds) * 1e9 - profile.startMs * 1e6);
  return state.from && state.to && profile.startMs > 0 ? `&window=${Math.max(0, place(state.from))}~${place(state.to)}` : "";
}

// From UTC to the page's time 0.
function spansOnAxis(spans: SpanOfServer[], profile: Profile): Span[] {
  const place = (time: string) => (nanosecondsOf(time) - profile.startMs * 1e6);
  return spans.map(({ name, op, thread, start, end }) => ({ name, op, thread, start: place(start), end: place(end) }))
    .filter(({ start, end }) => end > start && end > 0 && start < profile.durationNs);
}

// Rounded by less than a microsecond: a number has 53 bits.
function nanosecondsOf(time: string): number {
  const fraction = /\.(\d+)/.exec(time);
  return Date.parse(time.replace(/\.\d+/, "")) * 1e6 + (fraction ? Number(`0.${fraction[1]}`) * 1e9 : 0);
}
