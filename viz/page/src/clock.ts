// SPDX-License-Identifier: Apache-2.0
//
// What has happened at the clock: the state of a message, the blocks that a node holds, and the
// line that says what happens now. A side without a run has no time: on that clock all is over.
import { indicesOf } from "./indices";
import { NONE, Side } from "./model";
import { Clock } from "./store";
import { count, messageText } from "./targets";

export enum Phase {
  Waiting,
  OnWire,
  Done,
}

export const isOver = (side: Side, clock: Clock) =>
  clock.kind === "rounds" ? clock.value >= side.header.rounds : clock.value >= side.duration;

export function phaseOf(side: Side, message: number, clock: Clock): Phase {
  if (clock.kind === "rounds") {
    const round = side.roundOf(message);
    return round < clock.value ? Phase.Done : round === clock.value ? Phase.OnWire : Phase.Waiting;
  }
  const { run } = side;
  if (!run) return Phase.Done;
  const recv = side.recv[message]!;
  if (run.completed[recv]! <= clock.value) return Phase.Done;
  const send = run.started[side.send[message]!]!;
  const start = Number.isNaN(send) ? run.started[recv]! : send;
  return start <= clock.value ? Phase.OnWire : Phase.Waiting;
}

/** Whether an op has completed: of a send, that it was delivered. */
export function isCompleted(side: Side, op: number, clock: Clock): boolean {
  if (clock.kind === "rounds") return side.round[op]! < clock.value;
  return !side.run || side.run.completed[op]! <= clock.value;
}

/** Whether an op has started: of a send, that nothing holds it any more. */
export function isStarted(side: Side, op: number, clock: Clock): boolean {
  if (clock.kind === "rounds") return side.round[op]! <= clock.value;
  if (!side.run) return true;
  const at = side.run.started[op]!;
  return (Number.isNaN(at) ? side.run.completed[op]! : at) <= clock.value;
}

/** How many of `times`[begin..end), sorted, are at most `value`. */
function upTo(times: Float64Array, begin: number, end: number, value: number): number {
  let low = begin;
  let high = end;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle]! > value) high = middle;
    else low = middle + 1;
  }
  return low - begin;
}

/** How many messages of a run `node` has received; on a clock of time. */
export function receivedBy(side: Side, node: number, clock: Clock): number {
  const { begin, times } = indicesOf(side).arrivalTimes;
  return upTo(times, begin[node]!, begin[node + 1]!, clock.value);
}

/** How many blocks `node` holds; of other collectives, how many it has received. */
export function heldBy(side: Side, node: number, clock: Clock): number {
  if (side.isPlainMulticast && node === side.root) return side.header.blocks;
  const indices = indicesOf(side);
  if (clock.kind === "rounds") {
    const { received } = indices;
    const end = indices.from(received, node, clock.value);
    return indices.receivedBlocks(received.begin[node]!, end);
  }
  if (!side.hasRun) return expectedBy(side, node);
  const first = indices.arrivalTimes.begin[node]!;
  return indices.arrivedBlocks(first, first + receivedBy(side, node, clock));
}

/** How many of them it holds, or has received, in the end. */
export function expectedBy(side: Side, node: number): number {
  if (side.isPlainMulticast) return side.header.blocks;
  const { begin } = indicesOf(side).received;
  return indicesOf(side).receivedBlocks(begin[node]!, begin[node + 1]!);
}

/** Block messages on the wire, at most `max`, and how many there are. */
export function onWire(side: Side, clock: Clock, max: number): { list: number[]; total: number } {
  const list: number[] = [];
  let total = 0;
  const add = (message: number) => {
    if (side.block[side.send[message]!] === NONE) return;
    ++total;
    if (list.length < max) list.push(message);
  };
  if (clock.kind === "rounds") {
    if (isOver(side, clock)) return { list, total };
    const { begin, list: all } = indicesOf(side).byRound;
    for (let i = begin[clock.value]!; i < begin[clock.value + 1]!; ++i) add(all[i]!);
    return { list, total };
  }
  if (!side.run) return { list, total };
  const { messages, times, longest } = indicesOf(side).arrived;
  // What arrives more than the longest time later has not started.
  const end = clock.value + longest;
  for (let i = upTo(times, 0, times.length, clock.value); i < messages.length; ++i) {
    if (times[i]! > end) break;
    if (phaseOf(side, messages[i]!, clock) === Phase.OnWire) add(messages[i]!);
  }
  for (const message of indicesOf(side).unfinished) {
    if (phaseOf(side, message, clock) === Phase.OnWire) add(message);
  }
  return { list, total };
}

/** "1.234 ms". */
export function timeText(ns: number): string {
  const size = Math.abs(ns);
  if (size < 1e3) return `${Math.round(ns)} ns`;
  if (size < 1e6) return `${(ns / 1e3).toFixed(size < 1e5 ? 2 : 1)} us`;
  if (size < 1e9) return `${(ns / 1e6).toFixed(3)} ms`;
  return `${(ns / 1e9).toFixed(3)} s`;
}

/** The same of a tick: without zeros at the end. */
export const tickText = (ns: number) =>
  timeText(ns)
    .replace(/\.0+ /, " ")
    .replace(/(\.\d*[1-9])0+ /, "$1 ");

/** One line: what happens now. */
export function nowLine(side: Side, clock: Clock): string {
  const { header } = side;
  if (header.nodes === 1 || header.rounds === 0) {
    return "one node: it has the whole message and nothing is sent";
  }
  const { isPlainMulticast } = side;
  let copies = 0;
  let held = 0;
  let complete = 0;
  let asked = 0;
  for (let node = 0; node < header.nodes; ++node) {
    if (isPlainMulticast && node === side.root) continue;
    const has = heldBy(side, node, clock);
    const all = expectedBy(side, node);
    copies += all;
    held += has;
    if (side.roles.wanted(node) === 0) continue;
    ++asked;
    if (has >= all) ++complete;
  }
  const part = `${((100 * held) / copies).toFixed(1)} %`;
  const share = isPlainMulticast
    ? `${part} of all copies are in place; ` +
      `${complete + 1} of ${count(header.nodes, "node")} have the whole message`
    : `${part} of what is received is in place; ${complete} of ` +
      `${asked === 1 ? "1 node has" : `${asked} nodes have`} all that ` +
      `${asked === 1 ? "it" : "they"} must have`;
  const when =
    clock.kind === "rounds"
      ? isOver(side, clock)
        ? `after ${count(header.rounds, "round")}`
        : `round ${clock.value} of ${header.rounds}`
      : side.hasRun
        ? isOver(side, clock)
          ? `after ${timeText(side.duration)}`
          : `${timeText(clock.value)} of ${timeText(side.duration)}`
        : "no run";
  const { list, total } = onWire(side, clock, 6);
  const overText = held === copies ? "all is over" : "nothing more is known";
  if (total === 0) return `${when}: ${isOver(side, clock) ? overText : "no block moves"}; ${share}`;
  const some = list.map((message) => messageText(side, message)).join(", ");
  return (
    `${when}: ${count(total, side.countMax > 1 ? "message" : "block")} on the wire: ${some}` +
    `${total > list.length ? ", ..." : ""}; ${share}`
  );
}
