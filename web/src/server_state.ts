// What of the store is shown, as the query of the URL. How it is shown is after "#" (state.ts).  SPDX-License-Identifier: MIT
import type { Parameters } from "./api";

export type Place = "services" | "profile" | "regressions" | "sessions" | "ingest" | "admin";
export const PLACES: Place[] = ["services", "profile", "regressions", "sessions", "ingest", "admin"];

// Names as the server's parameters, and what regressions are compared with. Times are seconds since 1970.
const NAMES = ["project", "against", "from", "to", "service", "environment", "release", "host", "type", "transaction", "thread", "tag_focus", "focus", "ignore", "hide", "prune_from", "show_from", "profiler", "chunk", "trace", "span",
               "base_from", "base_to", "base_service", "base_release", "base_environment", "base_host"] as const;
type Name = (typeof NAMES)[number];

export type ServerState = { place: Place } & { [name in Name]: string };

export function parseServerState(search: string): ServerState {
  const given = new URLSearchParams(search), place = given.get("place") as Place;
  const state = { place: PLACES.includes(place) ? place : "services" } as ServerState;
  for (const name of NAMES) state[name] = given.get(name) || "";
  return state;
}

export function serverStateText(state: ServerState): string {
  const words = [`place=${state.place}`];
  for (const name of NAMES) if (state[name] !== "") words.push(`${name}=${encodeURIComponent(state[name])}`);
  return "?" + words.join("&");
}

// What chooses chunks and filters their samples.
export function selectionOf(state: ServerState): Parameters {
  const { from, to, service, environment, release, host, type, transaction, thread, tag_focus, focus, ignore, hide, prune_from, show_from, profiler, chunk, trace, span } = state;
  return { from, to, service, environment, release, host, type, transaction, thread, tag_focus, focus, ignore, hide, prune_from, show_from, profiler, chunk, trace, span };
}

export function hasBase(state: ServerState): boolean {
  return NAMES.some((name) => name.startsWith("base_") && state[name] !== "");
}

// What is not given of the base is as in the selection.
export function baseOf(state: ServerState): Parameters {
  const base = selectionOf(state);
  if (state.base_from || state.base_to) [base.from, base.to] = [state.base_from, state.base_to];
  if (state.base_service) Object.assign(base, { service: state.base_service, release: "", transaction: "" }); // they are of the other one
  if (state.base_release) base.release = state.base_release;
  if (state.base_environment) base.environment = state.base_environment;
  if (state.base_host) base.host = state.base_host;
  return base;
}

export const NOTHING: { [name in Name]?: string } = Object.fromEntries(NAMES.filter((name) => name !== "project").map((name) => [name, ""]));
