// Sends a profile of a page with Sentry's SDK for browsers. The query of the page is v1 or trace. SPDX-License-Identifier: MIT
import * as Sentry from "@sentry/browser";
const lifecycle = location.search.slice(1);
const ofProfiles = lifecycle === "v1" ? { profilesSampleRate: 1 } : { profileSessionSampleRate: 1, profileLifecycle: lifecycle };
Sentry.init({ dsn: window.DSN, release: `browser-${lifecycle}@1.0`, environment: "live", tracesSampleRate: 1,
  integrations: [Sentry.browserTracingIntegration({ instrumentPageLoad: false, instrumentNavigation: false }), Sentry.browserProfilingIntegration()],
  ...ofProfiles });

function burn(ms) {
  const end = performance.now() + ms;
  let x = 0;
  while (performance.now() < end) x += Math.sqrt(x + 1);
  return x;
}
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

window.done = (async () => {
  await Sentry.startSpan({ name: "work", op: "task", forceTransaction: true }, async () => {
    for (let i = 0; i < 10; i++) {
      Sentry.startSpan({ name: "burn", op: "cpu" }, () => burn(100));
      await pause(10);
    }
  });
  await pause(1500);
  return Sentry.flush(5000);
})();
