// The services that have sent, with their activity.  SPDX-License-Identifier: MIT
import { button, make } from "./dom";
import type { ServerApp, ServerView } from "./server_page";
import { snippets } from "./snippets";
import { sparkline, TimeChart } from "./sparkline";
import { safe, Unit } from "./text";
import { agoText, SECONDS, secondsOf, timeText } from "./times";

export interface Activity {
  start: string;
  end: string;
  services: { name: string; first: string; last: string; chunks: number; samples: number; samples_by_time: number[] }[];
  is_cut: boolean;
}

const FIRST_RANGE = 3600, BUCKETS = 60;
const ALL = "0"; // a range that begins with 1970; none is the last hour

export class ServicesView implements ServerView {
  readonly element = make("section", { class: "server-view services" });
  private readonly chart: TimeChart;
  private start = 0;
  private end = 1;

  constructor(private readonly app: ServerApp) {
    this.chart = new TimeChart((from, to) => app.go({ from: from.toFixed(3), to: to.toFixed(3) }));
  }

  hide(): void {}

  async show(): Promise<void> {
    const { api, state } = this.app, hasRange = state.from !== "" || state.to !== "";
    const ask = (from: string, to: string) => api.json<Activity>("activity", { from: from === ALL ? "" : from, to, buckets: String(BUCKETS) });
    const activity = await ask(hasRange ? state.from : String(Math.floor(Date.now() / 1000) - FIRST_RANGE), state.to);
    this.start = secondsOf(activity.start);
    this.end = secondsOf(activity.end);
    if (activity.services.length === 0) {
      const isEmpty = (await ask(ALL, "")).services.length === 0;
      this.element.replaceChildren(...(isEmpty ? this.nothingYet() : this.nothingInRange(hasRange)));
    } else this.element.replaceChildren(...this.list(activity));
  }

  private nothingYet(): HTMLElement[] {
    const again = button("Look again", "ask the server again", () => this.app.go({}));
    return [make("h1", {}, "No profiles have arrived yet"), make("p", {}, "Send one in any of these ways; then look again. What is rejected is listed under Ingest, with the reason."),
            make("p", {}, again), snippets(this.app.api)];
  }

  private nothingInRange(hasRange: boolean): HTMLElement[] {
    return [make("h1", {}, hasRange ? "Nothing arrived in this range" : "Nothing arrived in the last hour"),
            make("p", {}, button("Show all of the time", "without a range", () => this.app.go({ from: ALL, to: "" })))];
  }

  private list(activity: Activity): HTMLElement[] {
    const sums = activity.services[0].samples_by_time.map((_, i) => activity.services.reduce((sum, service) => sum + service.samples_by_time[i], 0));
    this.chart.show(sums, this.start, this.end);
    const ranges = SECONDS.map(([text, seconds]) => button(text, `the last ${text}`, () => this.app.go({ from: String(Math.floor(Date.now() / 1000) - seconds), to: "" })));
    const bar = make("div", { class: "bar" }, make("span", { class: "faint" }, `${timeText(this.start)} – ${timeText(this.end)}`), ...ranges,
                     button("All", "all of the time", () => this.app.go({ from: ALL, to: "" })));
    const rows = activity.services.slice().sort((a, b) => b.samples - a.samples || (a.name < b.name ? -1 : 1)).map((service) => this.row(service));
    const head = make("tr", {}, ...["Service", "Samples by time", "Samples", "Chunks", "Last"].map((text, i) => make("th", { scope: "col", class: i === 2 || i === 3 ? "amount" : "" }, text)));
    const table = make("table", { class: "list" }, make("thead", {}, head), make("tbody", {}, ...rows));
    const more = activity.is_cut ? [make("p", { class: "hint" }, "More services have sent; choose a shorter range.")] : [];
    return [make("h1", {}, "Services"), bar, this.chart.element, make("div", { class: "scroll" }, table), ...more];
  }

  // A service opens at the last hour that it sent in.
  private row(service: Activity["services"][0]): HTMLElement {
    const number = new Unit("count", 0), last = Math.min(secondsOf(service.last), this.end), { state } = this.app;
    const from = state.from && state.from !== ALL ? state.from : Math.max(secondsOf(service.first), last - FIRST_RANGE).toFixed(3);
    const open = button(safe(service.name, 100) || "(no name)", "open its flame graph", () =>
      this.app.go({ place: "profile", service: service.name, from, to: state.to || (last + 1).toFixed(3) }));
    return make("tr", {}, make("td", {}, open), make("td", {}, sparkline(service.samples_by_time, 240, 22)), make("td", { class: "amount" }, number.number(service.samples)),
                make("td", { class: "amount" }, number.number(service.chunks)), make("td", { title: service.last }, agoText(secondsOf(service.last))));
  }
}
