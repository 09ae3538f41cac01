// SPDX-License-Identifier: Apache-2.0
//
// What a run says of things, in lines of the panel; and how late its receives were.
import { timeText } from "./clock";
import { indicesOf } from "./indices";
import { onSide } from "./marks";
import { NONE, Side } from "./model";
import { REASONS } from "./palette";
import { isWhole } from "./plan_facts";
import { WaitKind } from "./reasons";
import { gapAt, gapsOf } from "./run_gaps";
import { Store } from "./store";
import { Line, Target, count, opText } from "./targets";

/** How late a message arrived, ns, against rounds of equal length; below 0: early; NaN: unknown. */
function lateBy(side: Side, message: number): number {
  const { duration_ns } = side.head.run!;
  const due = ((side.roundOf(message) + 1) / side.header.rounds) * duration_ns;
  return side.run!.completed[side.recv[message]!]! - due;
}

const lateText = (ns: number) => `${timeText(Math.abs(ns))} ${ns < 0 ? "early" : "late"}`;

/** Of all blocks; null where the run is not whole. Its side has a run. */
export function latenessOf(side: Side): { median: number; worst: number; message: number } | null {
  const messages = indicesOf(side).blocksByRound;
  if (messages.length === 0 || !isWhole(side)) return null;
  const late = Float64Array.from(messages, (message) => lateBy(side, message));
  let worst = 0;
  late.forEach((it, i) => {
    if (it > late[worst]!) worst = i;
  });
  const [message, most] = [messages[worst]!, late[worst]!];
  return { median: late.sort()[(late.length - 1) >> 1]!, worst: most, message };
}

/** "against rounds of equal length, receives end ..."; "" where nothing is known. */
export function latenessText(side: Side): string {
  const it = latenessOf(side);
  if (!it) return "";
  return (
    `against rounds of equal length, receives end ${lateText(it.median)} at the median, at worst ` +
    `${lateText(it.worst)} (node ${side.toOf(it.message)}, block ${side.blockOf(it.message)})`
  );
}

function opLines(side: Side, index: number, op: number, what: string): Line[] {
  const { run } = side;
  if (!run) return [];
  const at = (times: Float64Array) => (Number.isNaN(times[op]!) ? "unknown" : timeText(times[op]!));
  const message = side.messageOf[op]!;
  const isBlock = side.block[op] !== NONE;
  const late = isBlock && !side.isSend[op] && isWhole(side) ? lateBy(side, message) : NaN;
  const lines: Line[] = [
    [
      `${what}: posted ${at(run.posted)}, started ${at(run.started)}, ` +
        `completed ${at(run.completed)}` +
        (Number.isNaN(late) ? "" : `, ${lateText(late)} against rounds of equal length`),
    ],
  ];
  const gap = isBlock && side.isSend[op] ? gapAt(side, message) : NONE;
  if (gap === NONE) return lines;
  const { from, to, kind, cause } = gapsOf(side);
  const other = cause[gap]!;
  lines.push([
    `  it started ${timeText(to[gap]! - from[gap]!)} after the last that it waited for, `,
    { text: opText(side, other), target: { side: index, kind: "op", op: other } },
    ` (${REASONS[kind[gap]! as WaitKind].name}), which completed at ${timeText(from[gap]!)}`,
  ]);
  return lines;
}

/** Messages of blocks that a node receives. */
function expectedMessages(side: Side, node: number): number {
  const { begin } = indicesOf(side).received;
  return begin[node + 1]! - begin[node]!;
}

function nodeLines(side: Side, node: number): Line[] {
  const lines: Line[] = [];
  const host = side.head.run?.hosts?.find((it) => it.node === node);
  if (side.run && !(side.isPlainMulticast && node === side.root)) {
    const { begin, times } = indicesOf(side).arrivalTimes;
    const known = begin[node + 1]! - begin[node]!;
    const blocks = expectedMessages(side, node);
    const last = known > 0 ? timeText(times[begin[node + 1]! - 1]!) : "";
    const noun = side.countMax > 1 ? "message" : "block";
    if (known < blocks) lines.push([`in the run it got ${known} of ${count(blocks, noun)}`]);
    else if (side.isPlainMulticast) lines.push([`in the run it had all blocks after ${last}`]);
    else if (known > 0) lines.push([`in the run it had its last ${noun} after ${last}`]);
  }
  if (host) {
    lines.push([
      `its host posted ${host.posts} times, ${host.posts_during} of them during ` +
        `the transfer; ${count(host.wakeups, "wake-up")}, ${timeText(host.cpu_ns)} of a processor`,
    ]);
  }
  return lines;
}

/** Of an op, a message or a node; of a message on both sides. */
export function runLines(store: Store, target: Target, what = "in the run"): Line[] {
  const side = store.sideOf(target);
  if (target.kind === "node") return nodeLines(side, target.node);
  if (target.kind === "op") return opLines(side, target.side, target.op, what);
  if (target.kind !== "message") return [];
  const lines: Line[] = [];
  store.sides.forEach((_, index) => {
    const here = onSide(store.sides, target, index);
    if (here?.kind !== "message") return;
    const on = store.sides[index]!;
    const name = store.sides.length > 1 ? `${"AB"[index]}: ` : "";
    lines.push(
      ...opLines(on, index, on.send[here.message]!, `${name}its send in the run`),
      ...opLines(on, index, on.recv[here.message]!, `${name}its receive in the run`),
    );
  });
  return lines;
}
