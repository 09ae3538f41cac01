// SPDX-License-Identifier: Apache-2.0
//
// The times of a run. They are written as differences to each other (viz/page_data/page_run.h): a send's start
// to what it waited for, all else of its message to that. So messages are read after those that
// they wait for.
import { Columns } from "./decode";
import { indicesOf } from "./indices";
import { NONE, Side } from "./model";

/** Times by op, in ns since the start of the transfer; NaN: unknown. */
export interface Run {
  posted: Float64Array;
  started: Float64Array;
  completed: Float64Array;
  /** By node: when its host woke up; null: the file does not say. */
  wakeups: Float64Array[] | null;
}

const orStart = (time: number) => (Number.isNaN(time) ? 0 : time);

/** The time that is `written` as a difference to `base`. */
function timeOf(written: number, base: number): number {
  return written === 0 ? NaN : base + (written > 0 ? written - 1 : written);
}

/** The credit that grants a receive, or NONE. */
function creditOf(side: Side, recv: number): number {
  const channel = side.channel[recv]!;
  const partner = side.block[recv] === NONE ? NONE : side.partner(channel);
  if (partner === NONE) return NONE;
  return side.creditFor(partner, side.messageOf[recv]! - side.channelBegin[channel]!);
}

function decodePosted(side: Side, posted: Float64Array, started: Float64Array): void {
  const isPreposted = side.head.run!.executor === "offload";
  const granted: number[] = []; // receives: their credits' postings are needed first
  let node = NONE;
  let before = 0;
  for (let op = 0; op < side.ops; ++op) {
    if (!isPreposted && side.isSend[op]) {
      posted[op] = timeOf(posted[op]!, orStart(started[op]!));
      continue;
    }
    if (!isPreposted && creditOf(side, op) !== NONE) {
      granted.push(op);
      continue;
    }
    if (node !== side.nodeOf(op)) [node, before] = [side.nodeOf(op), 0];
    posted[op] = timeOf(posted[op]!, before);
    before = orStart(posted[op]!);
  }
  for (const op of granted) {
    const send = side.send[creditOf(side, op)]!;
    posted[op] = timeOf(posted[op]!, orStart(posted[send]!));
  }
}

/**
 * The starts of sends and all that hangs on them. It goes through the messages by round and, where
 * one waits for another of its round that comes later, through that one first.
 */
function decodeMessages(side: Side, started: Float64Array, completed: Float64Array): void {
  const { send: sends, recv: recvs, messageOf, afterBegin, after, block } = side;
  const indices = indicesOf(side);
  const isDone = new Uint8Array(side.messages);
  const stack = new Int32Array(side.messages + 1);
  for (const first of indices.byRound.list) {
    let size = 0;
    if (!isDone[first]) stack[size++] = first;
    while (size > 0) {
      const message = stack[size - 1]!;
      const send = sends[message]!;
      const recv = recvs[message]!;
      let latest = 0;
      let next = NONE;
      for (let i = afterBegin[send]!; i < afterBegin[send + 1]!; ++i) {
        const op = send - after[i]!;
        if (!isDone[messageOf[op]!]) next = messageOf[op]!;
        else if (completed[op]! > latest) latest = completed[op]!; // not if it is unknown
      }
      if (block[send] !== NONE) {
        const arrival = indices.arrivalBefore(send);
        if (arrival !== NONE && !isDone[arrival]) next = arrival;
        else if (arrival !== NONE && completed[recvs[arrival]!]! > latest) {
          latest = completed[recvs[arrival]!]!;
        }
      }
      if (next !== NONE) {
        stack[size++] = next;
        continue;
      }
      started[send] = timeOf(started[send]!, latest);
      const start = orStart(started[send]!);
      started[recv] = timeOf(started[recv]!, start);
      completed[recv] = timeOf(completed[recv]!, start);
      completed[send] = timeOf(completed[send]!, orStart(completed[recv]!));
      isDone[message] = 1;
      --size;
    }
  }
}

/** Those of the hosts that the head names, one after the other, as it counts them. */
function byNode(side: Side, times: Float64Array): Float64Array[] | null {
  const hosts = side.head.run!.hosts ?? [];
  if (hosts.every((host) => host.wakeups_known === null)) return null;
  const none = times.subarray(0, 0);
  const out = Array.from({ length: side.header.nodes }, () => none);
  let at = 0;
  for (const { node, wakeups_known } of hosts) {
    out[node] = times.subarray(at, at + (wakeups_known ?? 0));
    at += wakeups_known ?? 0;
  }
  return out;
}

/** `prefix`: of the run's columns. */
export function decodeRun(side: Side, columns: Columns, prefix: string): Run {
  const posted = columns.wide(`${prefix}posted`);
  const started = columns.wide(`${prefix}started`);
  const completed = columns.wide(`${prefix}completed`);
  decodeMessages(side, started, completed);
  decodePosted(side, posted, started);
  const wakeups = columns.wide(`${prefix}wakeups`);
  const step = side.head.run!.step_ns;
  if (step > 1) {
    for (const times of [posted, started, completed, wakeups]) {
      for (let i = 0; i < times.length; ++i) times[i]! *= step;
    }
  }
  return { posted, started, completed, wakeups: byNode(side, wakeups) };
}
