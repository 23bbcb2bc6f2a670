// A file of this machine, which the server reads and does not keep.  SPDX-License-Identifier: MIT
import { Client } from "./client";
import { make } from "./dom";
import { Page } from "./page";
import type { ServerApp, ServerView } from "./server_page";
import { quantity, safe } from "./text";

export class FileView implements ServerView {
  readonly element = make("section", { class: "server-view profile" });
  private readonly place = make("div", { class: "page" });
  private page: Page | null = null;
  private client: Client | null = null;
  private file: File | null = null;

  constructor(private readonly app: ServerApp) {
    this.element.append(this.place);
  }

  choose(file: File): void {
    this.file = file;
  }

  hide(): void {
    this.page?.end();
    this.page = null;
    this.place.replaceChildren();
  }

  async show(): Promise<void> {
    const { api } = this.app, file = this.file!;
    this.hide();
    this.app.say(`Reading ${safe(file.name, 60)}, ${quantity(file.size, "bytes")} …`);
    const bytes = await (await api.ask(api.url("page", { name: file.name }), "POST", file)).arrayBuffer();
    this.client ||= new Client(this.app.script);
    const profile = await this.client.ask("open", { bytes, base: undefined }, [bytes]);
    if (file === this.file) this.page = new Page(this.client, profile, this.place, {});
  }
}
