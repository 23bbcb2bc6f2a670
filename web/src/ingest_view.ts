// What arrived, what was rejected, and how to send.  SPDX-License-Identifier: MIT
import { make } from "./dom";
import { hint, listTable } from "./list_table";
import type { ServerApp, ServerView } from "./server_page";
import { snippets } from "./snippets";
import { safe, Unit } from "./text";
import { secondsOf, timeText } from "./times";

interface Outcome {
  outcome: string;
  category: string;
  reason: string;
  quantity: number;
}

interface Rejected {
  received: string;
  type: string;
  reason: string;
  place: string;
  found: string;
  expected: string;
  sdk: string;
  bytes: number;
}

const MEANINGS: { [outcome: string]: string } = {
  accepted: "stored", invalid: "rejected by the rules", rate_limited: "above the rate of the project", client_discard: "dropped by the client, which reported it",
  not_stored: "acknowledged, of a type that is not stored",
};
const SHOWN_MAX = 300;

export class IngestView implements ServerView {
  readonly element = make("section", { class: "server-view ingest" });

  constructor(private readonly app: ServerApp) {}

  hide(): void {}

  async show(): Promise<void> {
    const { api } = this.app;
    const [{ outcomes }, { rejected, is_cut }] = await Promise.all([
      api.json<{ outcomes: Outcome[] }>("outcomes"), api.json<{ rejected: Rejected[]; is_cut: boolean }>("rejected"),
    ]);
    this.element.replaceChildren(make("h1", {}, "Ingest"), make("h2", {}, "What arrived"), ...this.outcomes(outcomes),
                                 make("h2", {}, "Rejected by client"), ...this.byClient(rejected), make("h2", {}, "Rejected in the last day"), ...this.rejected(rejected, is_cut),
                                 make("h2", {}, "How to send"), snippets(api));
  }

  private outcomes(outcomes: Outcome[]): HTMLElement[] {
    if (outcomes.length === 0) return [hint("Nothing has arrived yet. Send something with one of the lines below, then open this page again.")];
    const number = new Unit("count", 0);
    return [listTable(["Outcome", "Meaning", "Kind", "Reason", "Items#"], outcomes.map(({ outcome, category, reason, quantity }) =>
      [safe(outcome), MEANINGS[outcome] || "", safe(category), safe(reason), number.number(quantity)]))];
  }

  private byClient(rejected: Rejected[]): HTMLElement[] {
    const counts = new Map<string, number>();
    for (const { sdk, reason } of rejected) {
      const key = JSON.stringify([sdk || "(not named)", reason]);
      counts.set(key, (counts.get(key) || 0) + 1);
    }
    if (counts.size === 0) return [hint("Nothing was rejected in the last day.")];
    const rows = Array.from(counts).sort((a, b) => b[1] - a[1]).map(([key, count]) => [...(JSON.parse(key) as string[]).map((text) => safe(text)), String(count)]);
    return [listTable(["Client", "Reason", "Items#"], rows)];
  }

  private rejected(rejected: Rejected[], isCut: boolean): HTMLElement[] {
    if (rejected.length === 0) return [];
    const latest = rejected.slice().reverse().slice(0, SHOWN_MAX);
    const rows = latest.map((each) => [timeText(secondsOf(each.received)), each.sdk, each.type, each.reason, each.place, each.found, each.expected].map((text) => safe(text, 200)));
    const cut = rejected.length > SHOWN_MAX || isCut ? [hint(`The latest ${SHOWN_MAX}; /api/${this.app.api.project}/rejected lists all.`)] : [];
    return [listTable(["Received", "Client", "Item", "Reason", "Where", "Found", "Expected"], rows), ...cut];
  }
}
