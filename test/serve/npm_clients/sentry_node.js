// Sends a profile of this process with Sentry's SDK for Node. Arguments: v1, manual or trace (who starts the profiler); static
// (transactions) or stream (spans, version 11).
// SPDX-License-Identifier: MIT
const Sentry = require("@sentry/node");
const { nodeProfilingIntegration } = require("@sentry/profiling-node");
const [, , lifecycle, traceLifecycle] = process.argv;
const ofProfiles = lifecycle === "v1" ? { profilesSampleRate: 1 } : { profileSessionSampleRate: 1, profileLifecycle: lifecycle };
Sentry.init({ dsn: process.env.SENTRY_DSN, release: process.env.SENTRY_RELEASE_NAME + "@1.0", environment: "live",
  integrations: [nodeProfilingIntegration()], tracesSampleRate: 1, traceLifecycle, ...ofProfiles });

function burn(ms) {
  const end = Date.now() + ms;
  let x = 0;
  while (Date.now() < end) x += Math.sqrt(x + 1);
  return x;
}
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

(async () => {
  if (lifecycle === "manual") Sentry.profiler.startProfiler();
  await Sentry.startSpan({ name: "work", op: "task", forceTransaction: true }, async () => {
    for (let i = 0; i < 10; i++) {
      Sentry.startSpan({ name: "burn", op: "cpu" }, () => burn(100));
      await pause(10);
    }
  });
  await pause(1500);
  if (lifecycle === "manual") Sentry.profiler.stopProfiler();
  await Sentry.flush(5000);
})();
