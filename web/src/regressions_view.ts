// The functions that take a larger share than before, of all services: by more than chance explains.  SPDX-License-Identifier: MIT
import { Rejection } from "./api";
import { choice, make } from "./dom";
import { hint, listTable } from "./list_table";
import type { ServerApp, ServerView } from "./server_page";
import type { ServerState } from "./server_state";
import { percent, safe } from "./text";
import { SECONDS, secondsOf, timeText } from "./times";

interface Service {
  name: string;
  first: string;
  samples: number;
}

interface Regressions {
  base: { total: number };
  new: { total: number };
  functions: { name: string; base: { self: number }; new: { self: number } }[];
}

interface Row {
  service: string;
  name: string;
  before: number; // share of the service's values
  now: number;
  changes: Partial<ServerState>; // what a comparison of both sides chooses
}

const FIRST_RANGE = 3600, SERVICES_MAX = 50, AT_ONCE = 4, FUNCTIONS_MAX = 10;

export class RegressionsView implements ServerView {
  readonly element = make("section", { class: "server-view regressions" });

  constructor(private readonly app: ServerApp) {}

  hide(): void {}

  async show(): Promise<void> {
    const { api, state } = this.app, now = Math.ceil(Date.now() / 1000);
    const to = state.to ? secondsOf(state.to) : now, from = state.from ? secondsOf(state.from) : to - FIRST_RANGE;
    const { services } = await api.json<{ services: Service[] }>("services", { from: from.toFixed(3), to: to.toFixed(3) });
    const largest = services.sort((a, b) => b.samples - a.samples).slice(0, SERVICES_MAX), rows: Row[] = [], without: string[] = [];
    const waiting = largest.slice();
    const work = async () => {
      for (let service = waiting.shift(); service; service = waiting.shift()) {
        const found = await this.regressionsOf(service.name, from, to);
        if (found) rows.push(...found);
        else without.push(service.name);
        if (state === this.app.state) this.app.say(`Comparing services: ${largest.length - waiting.length} of ${largest.length} …`);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    if (state !== this.app.state) return;
    rows.sort((a, b) => b.now - b.before - (a.now - a.before));
    this.element.replaceChildren(make("h1", {}, "Regressions"), this.bar(from, to), ...this.list(rows, largest.length - without.length),
                                 ...(without.length ? [hint(`Nothing to compare with: ${without.slice(0, 20).map((name) => safe(name, 60) || "(no name)").join(", ")}${without.length > 20 ? ", …" : ""}`)] : []),
                                 ...(rows.length >= FUNCTIONS_MAX ? [hint(`At most ${FUNCTIONS_MAX} functions of each service.`)] : []),
                                 ...(services.length > SERVICES_MAX ? [hint(`The ${SERVICES_MAX} services with the most samples of ${services.length}.`)] : []));
  }

  // The two sides of the comparison of SERVICE; null: there is no other one.
  private async sidesOf(service: string, from: number, to: number): Promise<Partial<ServerState> | null> {
    const range = { from: from.toFixed(3), to: to.toFixed(3) };
    if (this.app.state.against !== "release") return { ...range, service, base_from: Math.max(0, 2 * from - to).toFixed(3), base_to: from.toFixed(3) };
    const { releases } = await this.app.api.json<{ releases: Service[] }>("releases", { service });
    const [newest, before] = releases.filter(({ name }) => name !== "").sort((a, b) => (a.first < b.first ? 1 : -1));
    return before ? { ...range, service, release: newest.name, base_release: before.name, base_from: "1", base_to: range.to } : null;
  }

  private async regressionsOf(service: string, from: number, to: number): Promise<Row[] | null> {
    const changes = await this.sidesOf(service, from, to);
    if (!changes) return null;
    try {
      const answer = await this.app.api.json<Regressions>("regressions", { ...(changes as { [name: string]: string }), limit: String(FUNCTIONS_MAX) });
      return answer.functions.map((each) => ({ service, name: each.name, before: each.base.self / answer.base.total, now: each.new.self / answer.new.total, changes }));
    } catch (error) {
      if (error instanceof Rejection && (error.status === 404 || error.status === 400)) return null;
      throw error;
    }
  }

  private bar(from: number, to: number): HTMLElement {
    const against = choice("Compare with", [["", "This range vs. the time before"], ["release", "Newest release vs. the one before"]], (value) => this.app.go({ against: value }));
    against.value = this.app.state.against;
    const range = choice("Range", [["", "Range …"], ...SECONDS.map(([text, seconds]) => [String(seconds), `last ${text}`] as [string, string])], (value) => {
      if (value) this.app.go({ from: String(Math.floor(Date.now() / 1000) - Number(value)), to: "" });
    });
    return make("div", { class: "bar" }, against, range, make("span", { class: "faint" }, `${timeText(from)} – ${timeText(to)}`));
  }

  private list(rows: Row[], compared: number): HTMLElement[] {
    if (rows.length === 0) return [hint(compared ? `No function of ${compared} ${compared === 1 ? "service" : "services"} takes a larger share than before, beyond chance.` : "No service has two sides to compare in this range.")];
    const points = (value: number) => `+${(100 * value).toFixed(2)}`;
    return [listTable(["Function", "Service", "Before#", "Now#", "Points#"], rows.map(({ service, name, before, now, changes }) => [
      this.app.link(safe(name, 100), "compare both sides in the flame graph", { place: "profile", ...changes }), safe(service, 60) || "(no name)", percent(before, 1), percent(now, 1), points(now - before)]))];
  }
}
