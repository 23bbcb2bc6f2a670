// Begins the page, and follows a command that runs.  SPDX-License-Identifier: MIT
import { Client } from "./client";
import { make } from "./dom";
import { Bytes, Host, isOfServer } from "./host";
import { Page } from "./page";
import { startServerPage } from "./server_page";
import { safe } from "./text";

const PERIOD_MS = 1000, FIRST_PERIOD_MS = 250;

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

async function firstBytes(host: Host, line: HTMLElement): Promise<Bytes> {
  for (;;) {
    const loaded = await host.load();
    if (loaded) return loaded;
    line.textContent = "The command runs. Waiting for its first samples …";
    await pause(FIRST_PERIOD_MS);
  }
}

async function follow(host: Host, client: Client, page: Page): Promise<void> {
  while (host.isLive) {
    page.showLive(true);
    await pause(PERIOD_MS);
    if (page.isPaused) continue;
    const loaded = await host.load();
    if (loaded) page.replace(await client.ask("open", { bytes: loaded.bytes, waits: true }, [loaded.bytes]));
  }
  page.showLive(false);
  page.announce("The command has ended: this is its profile.");
}

async function open(script: HTMLScriptElement, line: HTMLElement): Promise<void> {
  if (isOfServer()) return startServerPage(script);
  const host = new Host(), client = new Client(script), { bytes, base } = await firstBytes(host, line);
  const profile = await client.ask("open", { bytes, base }, base ? [bytes, base] : [bytes]);
  line.remove();
  const page = new Page(client, profile, document.body, { host });
  if (!host.isLive) return;
  follow(host, client, page).catch(() => {
    page.showLive(false);
    page.announce("offbeat view has ended: this is the last profile that it sent.");
  });
}

export function startPage(script: HTMLScriptElement): void {
  const line = make("p", { id: "loading", role: "status" }, "Reading the profile …");
  document.body.append(line);
  open(script, line).catch((error: Error) => {
    document.body.replaceChildren(make("p", { id: "failed", role: "alert" }, `This profile cannot be shown: ${safe(error.message)}`));
  });
}
