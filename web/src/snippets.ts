// How each kind of client sends to this server, ready to paste.  SPDX-License-Identifier: MIT
import type { Api } from "./api";
import { make } from "./dom";

function copyable(text: string): HTMLElement {
  const copy = make("button", { type: "button", class: "copy", "aria-label": "Copy" }, "copy");
  copy.addEventListener("click", () => {
    void navigator.clipboard?.writeText(text);
    copy.textContent = "copied";
  });
  return make("div", { class: "snippet" }, make("pre", { tabindex: "0" }, text), copy);
}

function clients(dsn: string, origin: string, api: Api): [title: string, text: string][] {
  const key = api.key || "KEY";
  return [
    ["Any program, without changing it", `OFFBEAT_DSN='${dsn}' \\\nOFFBEAT_PROFILE_SESSION_SAMPLE_RATE=1 \\\nOFFBEAT_START_PROFILER_ON_APP_START=1 \\\nLD_PRELOAD=liboffbeat.so ./program`],
    ["A recording of a command", `offbeat record -o profile.pb.gz -- ./program\ncurl --data-binary @profile.pb.gz '${origin}api/${api.project}/profiles?service=program&sentry_key=${key}'`],
    ["Python (sentry-sdk)", `import sentry_sdk\nsentry_sdk.init(dsn="${dsn}",\n    profile_session_sample_rate=1.0, profile_lifecycle="manual")\nsentry_sdk.profiler.start_profiler()`],
    ["Node.js (@sentry/node, @sentry/profiling-node)", `Sentry.init({ dsn: "${dsn}",\n  integrations: [nodeProfilingIntegration()],\n  profileSessionSampleRate: 1.0 });\nSentry.profiler.startProfiler();`],
    ["Go, or any pprof endpoint", `curl -s http://localhost:6060/debug/pprof/profile?seconds=30 |\n  curl --data-binary @- '${origin}api/${api.project}/profiles?service=program&sentry_key=${key}'`],
  ];
}

export function snippets(api: Api): HTMLElement {
  const origin = location.origin + location.pathname.replace(/[^/]*$/, ""), key = api.key || "KEY";
  const dsn = `${location.protocol}//${key}@${location.host}${location.pathname.replace(/[^/]*$/, "")}${api.project}`;
  const place = make("div", { class: "snippets" }, make("h3", {}, "DSN"), copyable(dsn));
  if (!api.key)
    place.append(make("p", { class: "hint" }, "A read token does not reveal the key. offbeat serve prints the DSN at its start; offbeat serve admin add-project NAME prints that of a new project."));
  for (const [title, text] of clients(dsn, origin, api)) place.append(make("h3", {}, title), copyable(text));
  return place;
}
