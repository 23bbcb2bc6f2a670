// The page of `offbeat serve`: where one is, what is chosen of the store, and who may see it.  SPDX-License-Identifier: MIT
import { AdminView } from "./admin_view";
import { Api, Rejection } from "./api";
import { button, choice, link, make } from "./dom";
import { FileView } from "./file_view";
import { IngestView } from "./ingest_view";
import { ProfileView } from "./profile_view";
import { RegressionsView } from "./regressions_view";
import { Place, parseServerState, ServerState, serverStateText } from "./server_state";
import { ServicesView } from "./services_view";
import { SessionsView } from "./sessions_view";
import { safe } from "./text";
import { secondsOf } from "./times";

export interface ServerApp {
  api: Api;
  state: ServerState;
  script: HTMLScriptElement;
  // Shows another part of the store. KEEPS_VIEW: how it is shown stays, as after "#".
  go(changes: Partial<ServerState>, keepsView?: boolean): void;
  // A link to that part.
  link(label: string, title: string, changes: Partial<ServerState>): HTMLAnchorElement;
  say(text: string): void;
}

export interface ServerView {
  readonly element: HTMLElement;
  show(): Promise<void>;
  hide(): void;
}

const TITLES: { [place in Place]: string } = {
  services: "Services", profile: "Profile", regressions: "Regressions", sessions: "Sessions", ingest: "Ingest", admin: "Administration",
};
const IN_BAR: Place[] = ["services", "regressions", "sessions", "ingest", "admin"];
const NO_SESSION = { profiler: "", chunk: "", trace: "", span: "" };

class ServerPage implements ServerApp {
  readonly api = new Api();
  state: ServerState;
  private readonly bar = make("nav", { class: "bar server", "aria-label": "Server" });
  private readonly place = make("div", { class: "place-of-view" });
  private readonly line = make("p", { class: "line", role: "status" });
  private readonly views: { [place in Place]: ServerView };
  private readonly links: HTMLAnchorElement[];
  private readonly file = new FileView(this);
  private readonly chosenFile = make("input", { type: "file", hidden: true, "aria-label": "File" });
  private readonly refreshing = choice("Refresh", [["0", "Refresh: off"], ["10", "every 10 s"], ["60", "every minute"]], (seconds) => this.setRefresh(Number(seconds)));
  private refreshTimer = 0;
  private isReady = false; // what is chosen is shown
  private readonly projects = make("span", { class: "projects" });
  private shown: ServerView | null = null;
  private shownText = "";

  constructor(readonly script: HTMLScriptElement) {
    this.api.takeFromUrl();
    this.state = parseServerState(location.search);
    this.views = { services: new ServicesView(this), profile: new ProfileView(this), regressions: new RegressionsView(this), sessions: new SessionsView(this), ingest: new IngestView(this), admin: new AdminView(this) };
    this.links = IN_BAR.map((place) => this.link(TITLES[place], TITLES[place], { place, ...NO_SESSION }));
    const open = button("Open a file …", "show a profile of this machine", () => this.chosenFile.click());
    this.bar.append(make("strong", {}, "offbeat"), ...this.links, this.refreshing, open, this.chosenFile, this.projects);
    document.body.replaceChildren(this.bar, this.line, this.place);
    this.chosenFile.addEventListener("change", () => this.open(this.chosenFile.files));
    document.addEventListener("dragover", (event) => event.preventDefault()); // else the browser leaves the page
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      this.open(event.dataTransfer ? event.dataTransfer.files : null);
    });
    window.addEventListener("popstate", () => {
      const state = parseServerState(location.search);
      if (serverStateText(state) === this.shownText) return;
      this.state = state;
      void this.apply();
    });
    void this.start();
  }

  private async start(): Promise<void> {
    if (this.api.token === "") await this.api.askOtherTabs();
    if (this.api.token === "") {
      this.askForToken("");
      return;
    }
    await this.apply();
    void this.showProjects();
  }

  say(text: string): void {
    this.line.textContent = text;
    this.line.hidden = text === "";
  }

  go(changes: Partial<ServerState>, keepsView = false): void {
    this.state = { ...this.state, ...changes };
    history.pushState(null, "", location.pathname + serverStateText(this.state) + (keepsView ? location.hash : ""));
    void this.apply();
  }

  link(label: string, title: string, changes: Partial<ServerState>): HTMLAnchorElement {
    return link(label, title, location.pathname + serverStateText({ ...this.state, ...changes }), () => this.go(changes));
  }

  // Asks again from time to time, and moves the range on, until that is switched off.
  private setRefresh(seconds: number): void {
    clearInterval(this.refreshTimer);
    if (seconds > 0) this.refreshTimer = setInterval(() => this.refresh(seconds), seconds * 1000) as unknown as number;
  }

  private refresh(seconds: number): void {
    const { from, to, profiler, chunk, span } = this.state, isBusy = !this.isReady || document.hidden || document.querySelector("dialog[open]");
    if (isBusy || this.shown === this.file || profiler || chunk || span) return;
    const later = (time: string) => (time === "" || time === "0" ? time : (secondsOf(time) + seconds).toFixed(3));
    this.state = { ...this.state, from: later(from), to: later(to) };
    history.replaceState(null, "", location.pathname + serverStateText(this.state) + location.hash);
    void this.apply();
  }

  // Shows the first of FILES until another part of the store is chosen.
  private open(files: FileList | null): void {
    if (!files || files.length === 0 || this.api.token === "") return;
    this.file.choose(files[0]);
    this.chosenFile.value = "";
    void this.apply(this.file);
  }

  private async apply(view: ServerView = this.views[this.state.place]): Promise<void> {
    const { state, api } = this;
    this.shownText = serverStateText(state);
    api.project = /^\d{1,18}$/.test(state.project) ? state.project : "1";
    api.startOver();
    document.title = view === this.file ? "File – offbeat" : `${TITLES[state.place]}${state.service ? ` of ${safe(state.service, 60)}` : ""} – offbeat`;
    IN_BAR.forEach((place, i) => {
      this.links[i].href = location.pathname + serverStateText({ ...state, place, ...NO_SESSION });
      if (place === state.place && view !== this.file) this.links[i].setAttribute("aria-current", "page");
      else this.links[i].removeAttribute("aria-current");
    });
    this.isReady = false;
    this.say("Asking the server …");
    if (this.shown && this.shown !== view) this.shown.hide();
    this.shown = view;
    this.place.replaceChildren(view.element);
    try {
      await view.show();
      if (state !== this.state) return;
      this.isReady = true;
      this.say(api.lacks);
    } catch (error) {
      if (state === this.state) this.fail(error as Error);
    }
  }

  private fail(error: Error): void {
    if (error.name === "AbortError") return;
    const isOfToken = error instanceof Rejection && (error.status === 401 || error.status === 403);
    if (isOfToken) this.askForToken(error.message);
    else this.say(error instanceof Rejection ? error.message : `The server does not answer: ${error.message}`);
  }

  private askForToken(problem: string): void {
    const isAdmin = this.state.place === "admin";
    const field = make("input", { type: "password", id: "token", autocomplete: "off", spellcheck: "false", size: 34 });
    const form = make("form", { class: "token" }, make("h1", {}, isAdmin ? "A token with the role admin is needed" : "A read token is needed"), make("label", { for: "token" }, "Token"), field,
                      make("button", { type: "submit" }, "Open"),
                      make("p", {}, isAdmin ? "On the server, this command makes one:" : "offbeat serve prints a URL with a token when it starts. On the server, this command makes another one:"),
                      make("pre", {}, `offbeat serve admin add-key all${isAdmin ? " --role admin" : ""}`), make("p", {}, "The token is kept until this tab is closed."));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.api.keepToken(field.value.trim());
      void this.start();
    });
    this.shown?.hide();
    this.shown = null;
    this.place.replaceChildren(form);
    this.say(problem);
    field.focus();
  }

  // A token of one project may not list them.
  private async showProjects(): Promise<void> {
    try {
      const { projects } = await (await this.api.ask("api/projects")).json() as { projects: { id: number; name: string }[] };
      if (projects.length < 2) return;
      const select = choice("Project", projects.map(({ id, name }) => [String(id), safe(name, 60)]), (project) => this.go({ ...parseServerState(""), project }));
      select.value = this.api.project;
      this.projects.replaceChildren(select);
    } catch {
      this.projects.replaceChildren();
    }
  }
}

export function startServerPage(script: HTMLScriptElement): void {
  new ServerPage(script);
}
