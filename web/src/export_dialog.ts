// Files for other programs, with the command that opens each, and pictures.  SPDX-License-Identifier: MIT
import type { Api, Parameters } from "./api";
import type { App } from "./app";
import type { BoxView } from "./box_view";
import { make } from "./dom";
import { safe } from "./text";

// Where a server computes files.
export interface Source {
  api: Api;
  parameters: Parameters;
}

function download(blob: Blob, name: string): void {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// What the server has of the formats, and what opens them.
const OF_SERVER: [title: string, route: string, format: string, ending: string, command: string][] = [
  ["pprof", "profile.pb.gz", "", "pb.gz", "go tool pprof -http=: 'URL'"],
  ["speedscope", "export", "speedscope", "speedscope.json", "npx speedscope FILE"],
  ["Firefox Profiler", "export", "firefox", "firefox.json", "open https://profiler.firefox.com and drop FILE on it"],
  ["collapsed stacks", "export", "collapsed", "collapsed", "flamegraph.pl FILE > x.svg"],
];

export function makeExport(app: App, picture: BoxView | undefined, source: Source | null): HTMLDialogElement {
  const dialog = make("dialog", { class: "help export", "aria-label": "Export" }), base = safe(app.profile.title, 60).replace(/[^\w.@-]+/g, "_") || "profile";
  const close = make("button", { type: "button", class: "close", "aria-label": "Close" }, "✕");
  close.addEventListener("click", () => dialog.close());
  const list = make("dl", {});
  const add = (title: string, ending: string, command: string, blob: () => Promise<Blob | null>) => {
    const press = make("button", { type: "button" }, title);
    press.addEventListener("click", () => void blob().then((bytes) => {
      if (bytes) download(bytes, `${base}.${ending}`);
      app.announce(bytes ? `${base}.${ending} is in the downloads` : "there is nothing to export");
    }, (error: Error) => app.announce(error.message)));
    list.append(make("dt", {}, press), make("dd", {}, make("code", { tabindex: "0" }, command.replace("FILE", `${base}.${ending}`))));
  };
  if (source) {
    for (const [title, route, format, ending, command] of OF_SERVER) {
      const parameters = format ? { ...source.parameters, format } : source.parameters;
      add(title, ending, command.replace("URL", source.api.commandUrl(route, parameters)), async () => new Blob([await source.api.bytes(route, parameters)]));
    }
  } else {
    for (const [title, , format, ending, command] of OF_SERVER) {
      if (format !== "collapsed" && format !== "speedscope") continue;
      add(title, ending, command, async () => new Blob([await app.client.ask("export", { format, type: app.selection.type, title: app.profile.title })]));
    }
  }
  if (picture) {
    add("PNG", "png", "the picture on the screen", () => picture.png());
    add("SVG", "svg", "the same with all rows, and names as tooltips", async () => new Blob([picture.svg()], { type: "image/svg+xml" }));
  }
  dialog.append(close, make("h2", {}, "Export"), make("p", {}, source ? "Of the chosen part of the store. The URL has your token: do not share it." : "Of the chosen value, thread and range."), list);
  return dialog;
}
