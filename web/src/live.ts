// The state of a page when a newer profile takes the place of the shown one: functions and threads have other numbers there.
// SPDX-License-Identifier: MIT
import type { Profile, Thread } from "./protocol";
import type { State } from "./state";

function threadOf(thread: number, from: Profile, to: Profile): number {
  if (thread < 0 || thread >= from.threads.length) return -1;
  const { id, name }: Thread = from.threads[thread], same = to.threads.findIndex((each) => each.id === id && each.name === name);
  return same >= 0 ? same : to.threads.findIndex((each) => each.id === id);
}

export function carryOver(state: State, from: Profile, to: Profile): State {
  const places = new Map(to.names.map((name, func) => [name, func]));
  const funcOf = (func: number) => (func >= 0 && func < from.names.length ? places.get(from.names[func]) ?? -1 : -1);
  const path = state.path.map(funcOf), lost = path.indexOf(-1), type = from.types[state.type];
  return {
    ...state, func: funcOf(state.func), path: lost < 0 ? path : path.slice(0, lost), thread: threadOf(state.thread, from, to), lane: threadOf(state.lane, from, to),
    type: type ? to.types.findIndex((each) => each.type === type.type && each.unit === type.unit) : -1,
  };
}
