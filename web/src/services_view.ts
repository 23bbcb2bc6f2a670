// The services that have sent, with their activity.  SPDX-License-Identifier: MIT
import { button, make } from "./dom";
import type { ServerApp, ServerView } from "./server_page";
import { snippets } from "./snippets";
import { sparkline, TimeChart } from "./sparkline";
import { safe, Unit } from "./text";
import { agoText, SECONDS, secondsOf, timeText } from "./times";

interface Service {
  name: string;
  first: string;
  last: string;
  chunks: number;
  samples: number;
  samples_by_time: number[]; // []: not asked for
}

export interface Activity {
  start: string;
  end: string;
  services: Service[];
  is_cut: boolean;
}

interface ServicePage {
  services: Service[];
  is_cut: boolean;
  next?: string;
}

const COLUMNS: [column: "name" | "samples" | "chunks" | "last", title: string, isAmount: boolean][] =
  [["name", "Service", false], ["samples", "Samples", true], ["chunks", "Chunks", true], ["last", "Last", false]];
const ROWS_MAX = 500, PAGES_MAX = 100;

const FIRST_RANGE = 3600, BUCKETS = 60;
const ALL = "0"; // a range that begins with 1970; none is the last hour

export class ServicesView implements ServerView {
  readonly element = make("section", { class: "server-view services" });
  private readonly chart: TimeChart;
  private readonly search = make("input", { type: "search", placeholder: "Search services", "aria-label": "Search services", spellcheck: "false" });
  private readonly count = make("span", { class: "faint", role: "status" });
  private readonly head = make("thead");
  private readonly body = make("tbody");
  private services: Service[] = [];
  private sorted: (typeof COLUMNS)[number][0] = "samples";
  private isRising = false;
  private start = 0;
  private end = 1;

  constructor(private readonly app: ServerApp) {
    this.chart = new TimeChart((from, to) => app.go({ from: from.toFixed(3), to: to.toFixed(3) }));
    this.search.addEventListener("input", () => this.writeRows());
  }

  hide(): void {}

  async show(): Promise<void> {
    const { api, state } = this.app, hasRange = state.from !== "" || state.to !== "";
    const ask = (from: string, to: string) => api.json<Activity>("activity", { from: from === ALL ? "" : from, to, buckets: String(BUCKETS) });
    const from = hasRange ? state.from : String(Math.floor(Date.now() / 1000) - FIRST_RANGE), activity = await ask(from, state.to);
    if (activity.is_cut) await this.addOthers(activity, from === ALL ? "" : from, state.to);
    this.start = secondsOf(activity.start);
    this.end = secondsOf(activity.end);
    if (activity.services.length === 0) {
      const isEmpty = (await ask(ALL, "")).services.length === 0;
      this.element.replaceChildren(...(isEmpty ? this.nothingYet() : this.nothingInRange(hasRange)));
    } else this.element.replaceChildren(...this.list(activity));
  }

  // The activity has the first services by name; a list has them all.
  private async addOthers(activity: Activity, from: string, to: string): Promise<void> {
    const known = new Set(activity.services.map(({ name }) => name));
    let after = "";
    for (let i = 0; i < PAGES_MAX; i++) {
      const page = await this.app.api.json<ServicePage>("services", { from, to, after });
      for (const service of page.services) if (!known.has(service.name)) activity.services.push({ ...service, samples_by_time: [] });
      if (!page.is_cut || !page.next) return;
      after = page.next;
    }
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
    const sums = activity.services[0].samples_by_time.map((_, i) => activity.services.reduce((sum, service) => sum + (service.samples_by_time[i] || 0), 0));
    this.chart.show(sums, this.start, this.end);
    const ranges = SECONDS.map(([text, seconds]) => button(text, `the last ${text}`, () => this.app.go({ from: String(Math.floor(Date.now() / 1000) - seconds), to: "" })));
    const bar = make("div", { class: "bar" }, make("span", { class: "faint" }, `${timeText(this.start)} – ${timeText(this.end)}`), ...ranges,
                     button("All", "all of the time", () => this.app.go({ from: ALL, to: "" })));
    this.services = activity.services;
    this.writeHead();
    this.writeRows();
    return [make("h1", {}, "Services"), bar, this.chart.element, make("div", { class: "bar" }, this.search, this.count),
            make("div", { class: "scroll" }, make("table", { class: "list" }, this.head, this.body))];
  }

  private writeHead(): void {
    const cells = COLUMNS.map(([column, title, isAmount]) => {
      const isSorted = column === this.sorted;
      const press = button(isSorted ? `${title} ${this.isRising ? "▴" : "▾"}` : title, `sort by ${title}`, () => {
        this.isRising = isSorted ? !this.isRising : column === "name";
        this.sorted = column;
        this.writeHead();
        this.writeRows();
        (this.head.querySelectorAll("button")[COLUMNS.findIndex(([name]) => name === column)] as HTMLElement).focus();
      });
      return make("th", { scope: "col", class: isAmount ? "amount" : "", "aria-sort": isSorted ? (this.isRising ? "ascending" : "descending") : "none" }, press);
    });
    cells.splice(1, 0, make("th", { scope: "col" }, "Samples by time"));
    this.head.replaceChildren(make("tr", {}, ...cells));
  }

  private writeRows(): void {
    const words = this.search.value.toLowerCase().split(/\s+/), column = this.sorted, sign = this.isRising ? 1 : -1;
    const found = this.services.filter(({ name }) => words.every((word) => name.toLowerCase().includes(word)));
    const order = (a: Service, b: Service) => (a[column] < b[column] ? -sign : a[column] > b[column] ? sign : a.name < b.name ? -1 : 1);
    this.body.replaceChildren(...found.sort(order).slice(0, ROWS_MAX).map((service) => this.row(service)));
    const left = found.length - Math.min(found.length, ROWS_MAX);
    this.count.textContent = `${found.length} of ${this.services.length} services${left ? `; the first ${ROWS_MAX} are shown` : ""}`;
  }

  // A service opens at the last hour that it sent in.
  private row(service: Service): HTMLElement {
    const number = new Unit("count", 0), last = Math.min(secondsOf(service.last), this.end), { state } = this.app;
    const from = state.from && state.from !== ALL ? state.from : Math.max(secondsOf(service.first), last - FIRST_RANGE).toFixed(3);
    const open = this.app.link(safe(service.name, 100) || "(no name)", "its flame graph", { place: "profile", service: service.name, from, to: state.to || (last + 1).toFixed(3) });
    return make("tr", {}, make("td", {}, open), make("td", {}, sparkline(service.samples_by_time, 240, 22)), make("td", { class: "amount" }, number.number(service.samples)),
                make("td", { class: "amount" }, number.number(service.chunks)), make("td", { title: service.last }, agoText(secondsOf(service.last))));
  }
}
