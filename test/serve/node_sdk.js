// Sends a profile of this process with the Node SDK. Arguments: manual or trace; static (transactions) or stream (spans).
// SPDX-License-Identifier: MIT
const Sentry = require("@sentry/node");
const { nodeProfilingIntegration } = require("@sentry/profiling-node");
const mode = process.argv[2];
Sentry.init({ dsn: process.env.SENTRY_DSN, release: process.env.SENTRY_RELEASE_NAME + "@1.0", environment: "live", integrations: [nodeProfilingIntegration()],
  tracesSampleRate: 1, profileSessionSampleRate: 1, profileLifecycle: mode, traceLifecycle: process.argv[3] || "stream" });
function burn(ms) { const end = Date.now() + ms; let x = 0; while (Date.now() < end) x += Math.sqrt(x + 1); return x; }
(async () => {
  if (mode === "manual") Sentry.profiler.startProfiler();
  await Sentry.startSpan({ name: "work", op: "task", forceTransaction: true }, async () => {
    for (let i = 0; i < 10; i++) { Sentry.startSpan({ name: "burn", op: "cpu" }, () => burn(100)); await new Promise((r) => setTimeout(r, 10)); }
  });
  if (mode === "manual") Sentry.profiler.stopProfiler();
  await new Promise((r) => setTimeout(r, 1500));
  await Sentry.flush(5000);
})();
