// Sessions and transactions, each of which has a flamechart.  SPDX-License-Identifier: MIT
import { button, choice, make } from "./dom";
import type { ServerApp, ServerView } from "./server_page";
import { safe, seconds, Unit } from "./text";
import { agoText, secondsOf, timeText } from "./times";

interface Session {
  name: string;
  first: string;
  last: string;
  chunks: number;
  samples: number;
}

interface Transaction {
  trace: string;
  span: string;
  name: string;
  op: string;
  service: string;
  release: string;
  profiler: string;
  profile: string;
  start: string;
  end: string;
}

const SHOWN_MAX = 300, MARGIN = 0.001;

function table(headings: string[], rows: HTMLElement[]): HTMLElement {
  const head = make("tr", {}, ...headings.map((text) => make("th", { scope: "col", class: text === "Length" || text === "Samples" ? "amount" : "" }, text)));
  return make("div", { class: "scroll" }, make("table", { class: "list" }, make("thead", {}, head), make("tbody", {}, ...rows)));
}

export class SessionsView implements ServerView {
  readonly element = make("section", { class: "server-view sessions" });

  constructor(private readonly app: ServerApp) {}

  hide(): void {}

  async show(): Promise<void> {
    const { api, state } = this.app, { from, to, service } = state;
    const [services, sessions, transactions] = await Promise.all([
      api.json<{ services: Session[] }>("services", { from, to, limit: "1000" }),
      api.json<{ sessions: Session[]; is_cut: boolean }>("sessions", { from, to, service }),
      api.json<{ transactions: Transaction[]; is_cut: boolean }>("transactions", { from, to, service }),
    ]);
    const names = services.services.map(({ name }) => name);
    const select = choice("Service", [["", "Service: all"], ...names.map((name) => [name, safe(name, 60)] as [string, string])], (value) => this.app.go({ service: value }));
    select.value = service;
    const latest = sessions.sessions.filter(({ name }) => name !== "").sort((a, b) => (a.last < b.last ? 1 : -1));
    const profiled = transactions.transactions.filter(({ profiler, profile }) => profiler !== "" || profile !== "").sort((a, b) => (a.start < b.start ? 1 : -1));
    this.element.replaceChildren(make("h1", {}, "Sessions and transactions"), make("div", { class: "bar" }, select),
                                 make("h2", {}, "Sessions"), ...this.sessions(latest), make("h2", {}, "Transactions with a profile"), ...this.transactions(profiled));
  }

  private sessions(sessions: Session[]): HTMLElement[] {
    if (sessions.length === 0) return [make("p", { class: "hint" }, "No session: continuous profiling sends one for each run of a program. See Ingest for how to send.")];
    const number = new Unit("count", 0);
    const rows = sessions.slice(0, SHOWN_MAX).map((session) => {
      const start = secondsOf(session.first), end = secondsOf(session.last);
      const open = button(session.name.slice(0, 8), "open its flamechart", () => this.app.go({ place: "profile", profiler: session.name, from: "", to: "", span: "", trace: "", chunk: "" }));
      return make("tr", {}, make("td", {}, open), make("td", {}, timeText(start)), make("td", { class: "amount" }, seconds((end - start) * 1e9)),
                  make("td", { class: "amount" }, number.number(session.samples)), make("td", {}, agoText(end)));
    });
    return [table(["Session", "Start", "Length", "Samples", "Last"], rows), ...more(sessions.length)];
  }

  private transactions(transactions: Transaction[]): HTMLElement[] {
    if (transactions.length === 0) return [make("p", { class: "hint" }, "No transaction with a profile. A Sentry SDK sends them if traces and profiles are on.")];
    const rows = transactions.slice(0, SHOWN_MAX).map((each) => {
      const start = secondsOf(each.start), end = secondsOf(each.end);
      const choose = each.profiler ? { profiler: each.profiler, from: (start - MARGIN).toFixed(6), to: (end + MARGIN).toFixed(6), span: "", trace: "", chunk: "" }
        : { profiler: "", chunk: each.profile, from: "", to: "", span: "", trace: "" };
      const open = button(safe(each.name, 80) || each.span, "open its flamechart", () => this.app.go({ place: "profile", ...choose }));
      return make("tr", {}, make("td", {}, open), make("td", {}, safe(each.op, 40)), make("td", {}, safe(each.service, 60)), make("td", { class: "amount" }, seconds((end - start) * 1e9)),
                  make("td", {}, timeText(start)));
    });
    return [table(["Transaction", "Operation", "Service", "Length", "Start"], rows), ...more(transactions.length)];
  }
}

function more(count: number): HTMLElement[] {
  return count > SHOWN_MAX ? [make("p", { class: "hint" }, `The ${SHOWN_MAX} latest of ${count}.`)] : [];
}
