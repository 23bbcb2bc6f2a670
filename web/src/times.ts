// Points and ranges of time of a server, in seconds since 1970.  SPDX-License-Identifier: MIT
import { make } from "./dom";

export const SECONDS: [text: string, seconds: number][] = [["15 minutes", 900], ["1 hour", 3600], ["6 hours", 21600], ["1 day", 86400], ["7 days", 604800]];

export function secondsOf(text: string): number {
  return /^\d+(\.\d+)?$/.test(text) ? Number(text) : Date.parse(text) / 1000 || 0;
}

export function timeText(seconds: number): string {
  const date = new Date(seconds * 1000), two = (number: number) => String(number).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

// "3 min ago"
export function agoText(seconds: number): string {
  const ago = Date.now() / 1000 - seconds;
  if (ago < 0) return timeText(seconds);
  const [size, unit] = ago < 90 ? [1, "s"] : ago < 5400 ? [60, "min"] : ago < 129600 ? [3600, "h"] : [86400, "days"];
  return `${Math.round(ago / size)}\u202f${unit} ago`;
}

// A field for a time of day, in the zone of the browser.
export function timeField(label: string, seconds: number, change: (seconds: number) => void): HTMLInputElement {
  const field = make("input", { type: "datetime-local", step: 1, "aria-label": label, title: label });
  if (seconds > 0) field.value = timeText(seconds).replace(" ", "T");
  field.addEventListener("change", () => {
    const chosen = new Date(field.value).getTime() / 1000;
    if (Number.isFinite(chosen)) change(chosen);
  });
  return field;
}
