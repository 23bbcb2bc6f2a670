// Questions to `offbeat serve`, with the token that the page has.  SPDX-License-Identifier: MIT

export type Parameters = { [name: string]: string };

// A kind of profiles: what values measure, and how they are added up over time.
export interface Kind {
  name: string;
  type: string;
  unit: string;
  rule: "sum" | "average" | "difference";
  profiles?: number; // of series: profiles, processes that sent them, and starts of processes among them
  series?: number;
  restarts?: number;
}

export class Rejection extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

// The token stays in this tab: in its session storage, never in a link.
const TOKEN = "offbeat-token", KEY = "offbeat-key", TABS_MS = 200;

async function received(answer: Response, arrived: (bytes: number, all: number) => void): Promise<ArrayBuffer> {
  const all = Number(answer.headers.get("Content-Length")), reader = answer.body!.getReader(), parts: Uint8Array[] = [];
  let bytes = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    parts.push(part.value);
    arrived((bytes += part.value.length), all);
  }
  return new Blob(parts as BlobPart[]).arrayBuffer();
}

export class Api {
  token = sessionStorage.getItem(TOKEN) || "";
  key = sessionStorage.getItem(KEY) || ""; // of the DSN that `offbeat serve` printed; "": not known
  project = "1";
  lacks = ""; // what the answers since startOver lack, as a sentence; "": nothing
  private asking = new AbortController();
  private readonly tabs = new BroadcastChannel("offbeat"); // of this origin

  constructor() {
    this.tabs.addEventListener("message", ({ data }) => this.answerTabs(data));
  }

  // Takes token and key out of the URL that `offbeat serve` printed.
  takeFromUrl(): void {
    const given = new URLSearchParams(location.hash.replace(/^#/, ""));
    if (!given.has("token")) return;
    this.keepToken(given.get("token")!);
    this.key = given.get("key") || "";
    sessionStorage.setItem(KEY, this.key);
    const search = new URLSearchParams(location.search);
    if (given.has("project")) search.set("project", given.get("project")!);
    history.replaceState(null, "", `${location.pathname}?${search}`);
  }

  // Takes token and key from another tab with this page: a link that was opened in a new tab has none.
  async askOtherTabs(): Promise<void> {
    this.tabs.postMessage("token?");
    await new Promise((resolve) => setTimeout(resolve, TABS_MS));
  }

  private answerTabs(data: unknown): void {
    const given = data as { token?: string; key?: string };
    if (data === "token?") {
      if (this.token) this.tabs.postMessage({ token: this.token, key: this.key });
    } else if (this.token === "" && typeof given.token === "string") {
      this.keepToken(given.token);
      this.key = String(given.key || "");
      sessionStorage.setItem(KEY, this.key);
    }
  }

  keepToken(token: string): void {
    this.token = token;
    sessionStorage.setItem(TOKEN, token);
  }

  forgetToken(): void {
    this.token = "";
    sessionStorage.removeItem(TOKEN);
  }

  // The answers to what was asked before are not needed: the server stops computing them.
  startOver(): void {
    this.asking.abort();
    this.asking = new AbortController();
    this.lacks = "";
  }

  url(route: string, parameters: Parameters): string {
    const given = Object.keys(parameters).filter((name) => parameters[name] !== "");
    const query = given.map((name) => `${name}=${encodeURIComponent(parameters[name])}`).join("&");
    return `api/${this.project}/${route}${query ? "?" + query : ""}`;
  }

  async ask(url: string, method = "GET", body?: Blob): Promise<Response> {
    const answer = await fetch(url, { method, body, headers: { Authorization: `Bearer ${this.token}` }, signal: this.asking.signal, credentials: "omit" });
    const shards = answer.headers.get("X-Offbeat-Incomplete"), isDamaged = answer.headers.has("X-Offbeat-Damaged");
    if (shards) this.lacks = `Data is missing: of the cluster, ${shards} did not answer.`;
    else if (isDamaged) this.lacks ||= "Data is missing: a file of the server is damaged.";
    if (answer.ok) return answer;
    const detail = await answer.json().then(({ detail: text }) => String(text), () => `the server answers ${answer.status}`);
    throw new Rejection(answer.status, this.lacks ? `${detail}. ${this.lacks}` : detail);
  }

  async json<Answer>(route: string, parameters: Parameters = {}): Promise<Answer> {
    return (await this.ask(this.url(route, parameters))).json();
  }

  async bytes(route: string, parameters: Parameters): Promise<ArrayBuffer> {
    return (await this.ask(this.url(route, parameters))).arrayBuffer();
  }

  // The data of a page, and of what kind its values are. ARRIVED is called with the bytes that are there, and all of them.
  async page(parameters: Parameters, arrived: (bytes: number, all: number) => void): Promise<{ bytes: ArrayBuffer; kind: Kind | null }> {
    const answer = await this.ask(this.url("page", parameters)), kind = answer.headers.get("X-Offbeat-Kind");
    return { bytes: await received(answer, arrived), kind: kind ? JSON.parse(decodeURIComponent(kind)) as Kind : null };
  }

  // The same question for a program, which reads the token as a password.
  commandUrl(route: string, parameters: Parameters): string {
    const folder = location.pathname.replace(/[^/]*$/, "");
    return `${location.protocol}//offbeat:${this.token}@${location.host}${folder}${this.url(route, parameters)}`;
  }
}
