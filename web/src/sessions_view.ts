// Sessions and transactions, each of which has a flamechart.  SPDX-License-Identifier: MIT
import { choice, make } from "./dom";
import { hint, listTable } from "./list_table";
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

interface Chunk {
  profiler: string;
  service: string;
  release: string;
  host: string;
}

// The transactions of one name.
interface Group {
  name: string;
  service: string;
  lengths: number[]; // seconds
  profiled: number;
}

const SHOWN_MAX = 300, MARGIN = 0.001, LIST_MAX = "10000";
const NO_SESSION = { profiler: "", chunk: "", span: "", trace: "" };

export class SessionsView implements ServerView {
  readonly element = make("section", { class: "server-view sessions" });

  constructor(private readonly app: ServerApp) {}

  hide(): void {}

  async show(): Promise<void> {
    const { api, state } = this.app, { from, to, service } = state;
    const [services, sessions, transactions, chunks] = await Promise.all([
      api.json<{ services: Session[] }>("services", { from, to, limit: LIST_MAX }),
      api.json<{ sessions: Session[]; is_cut: boolean }>("sessions", { from, to, service }),
      api.json<{ transactions: Transaction[]; is_cut: boolean }>("transactions", { from, to, service }),
      api.json<{ chunks: Chunk[] }>("chunks", { from, to, service, limit: LIST_MAX }),
    ]);
    const names = services.services.map(({ name }) => name);
    const select = choice("Service", [["", "Service: all"], ...names.map((name) => [name, safe(name, 60)] as [string, string])], (value) => this.app.go({ service: value }));
    select.value = service;
    const latest = sessions.sessions.filter(({ name }) => name !== "").sort((a, b) => (a.last < b.last ? 1 : -1));
    const ofSession = new Map(chunks.chunks.map((chunk) => [chunk.profiler, chunk] as [string, Chunk]));
    const found = transactions.transactions, profiled = found.filter(isProfiled).sort((a, b) => (a.start < b.start ? 1 : -1));
    this.element.replaceChildren(make("h1", {}, "Sessions and transactions"), make("div", { class: "bar" }, select), ...cutHint(transactions.is_cut, found.length),
                                 make("h2", {}, "Transactions by name"), ...this.groups(found), make("h2", {}, "Sessions"), ...this.sessions(latest, ofSession),
                                 make("h2", {}, "Transactions with a profile"), ...this.transactions(profiled));
  }

  private groups(transactions: Transaction[]): HTMLElement[] {
    if (transactions.length === 0) return [hint("No transaction. A Sentry SDK sends them if traces are on.")];
    const groups = groupsOf(transactions);
    const rows = groups.slice(0, SHOWN_MAX).map((group) => {
      const text = safe(group.name, 80) || "(no name)", part = (share: number) => seconds(quantile(group.lengths, share) * 1e9);
      const name = group.profiled > 0 ? this.app.link(text, "the flame graph of all of them", { place: "profile", service: group.service, transaction: group.name, ...NO_SESSION })
        : make("span", { title: "none of them has a profile" }, text);
      return [name, safe(group.service, 60), String(group.lengths.length), part(0.5), part(0.95), seconds(sum(group.lengths) * 1e9)];
    });
    return [listTable(["Transaction", "Service", "Count#", "p50#", "p95#", "All#"], rows), ...more(groups.length)];
  }

  private sessions(sessions: Session[], chunks: Map<string, Chunk>): HTMLElement[] {
    if (sessions.length === 0) return [hint("No session: continuous profiling sends one for each run of a program. See Ingest for how to send.")];
    const number = new Unit("count", 0);
    const rows = sessions.slice(0, SHOWN_MAX).map((session) => {
      const start = secondsOf(session.first), end = secondsOf(session.last), chunk = chunks.get(session.name);
      const open = this.app.link(session.name.slice(0, 8), "its flamechart", { place: "profile", ...NO_SESSION, profiler: session.name, from: "", to: "" });
      return [open, ...[chunk?.service, chunk?.release, chunk?.host].map((text) => safe(text || "", 60)), timeText(start), seconds((end - start) * 1e9), number.number(session.samples), agoText(end)];
    });
    return [listTable(["Session", "Service", "Release", "Host", "Start", "Length#", "Samples#", "Last"], rows), ...more(sessions.length)];
  }

  private transactions(transactions: Transaction[]): HTMLElement[] {
    if (transactions.length === 0) return [hint("No transaction with a profile. A Sentry SDK sends them if traces and profiles are on.")];
    const rows = transactions.slice(0, SHOWN_MAX).map((each) => {
      const start = secondsOf(each.start), end = secondsOf(each.end);
      const choose = each.profiler ? { profiler: each.profiler, from: (start - MARGIN).toFixed(6), to: (end + MARGIN).toFixed(6), span: "", trace: "", chunk: "" }
        : { profiler: "", chunk: each.profile, from: "", to: "", span: "", trace: "" };
      const open = this.app.link(safe(each.name, 80) || each.span, "its flamechart", { place: "profile", ...choose });
      return [open, safe(each.op, 40), safe(each.service, 60), seconds((end - start) * 1e9), timeText(start)];
    });
    return [listTable(["Transaction", "Operation", "Service", "Length#", "Start"], rows), ...more(transactions.length)];
  }
}

function isProfiled({ profiler, profile }: Transaction): boolean {
  return profiler !== "" || profile !== "";
}

function sum(values: number[]): number {
  return values.reduce((all, value) => all + value, 0);
}

// The smallest of VALUES, which are sorted, that is not below SHARE of them.
function quantile(values: number[], share: number): number {
  return values[Math.max(0, Math.ceil(share * values.length) - 1)];
}

// Those that took the most time together are first.
function groupsOf(transactions: Transaction[]): Group[] {
  const groups = new Map<string, Group>();
  for (const each of transactions) {
    const key = JSON.stringify([each.service, each.name]), group = groups.get(key) || { name: each.name, service: each.service, lengths: [], profiled: 0 };
    groups.set(key, group);
    group.lengths.push(Math.max(0, secondsOf(each.end) - secondsOf(each.start)));
    group.profiled += isProfiled(each) ? 1 : 0;
  }
  for (const group of groups.values()) group.lengths.sort((a, b) => a - b);
  return Array.from(groups.values()).sort((a, b) => sum(b.lengths) - sum(a.lengths));
}

function cutHint(isCut: boolean, count: number): HTMLElement[] {
  return isCut ? [hint(`Of the transactions, the first ${count} of the range are listed and counted; choose a shorter range or a service.`)] : [];
}

function more(count: number): HTMLElement[] {
  return count > SHOWN_MAX ? [hint(`The ${SHOWN_MAX} latest of ${count}.`)] : [];
}
