// SPDX-License-Identifier: Apache-2.0
//
// Gaps of a run: how long block sends start after the last of what they wait for, by that one's
// kind: what the one who starts them takes, a host or a NIC.
import { indicesOf } from "./indices";
import { NONE, Side } from "./model";
import { WaitKind } from "./reasons";

/**
 * By send, of those of which all is known, in the order of their messages. Ends of what they wait for
 * are as their node saw them.
 */
export interface Gaps {
  op: Int32Array;
  kind: Uint8Array; // WaitKind
  cause: Int32Array; // the op of what it waited for
  from: Float64Array; // the end of what it waited for
  to: Float64Array; // its start
}

/** Of one kind. */
export interface GapSum {
  kind: WaitKind;
  count: number;
  median: number;
  sum: number;
  longest: number;
  longestOp: number;
}

/** Whether two ops have a block in common. */
function shareBlocks(side: Side, a: number, b: number): boolean {
  const [first, other] = [side.block[a]!, side.block[b]!];
  return first < other + side.countOf(b) && other < first + side.countOf(a);
}

function makeGaps(side: Side): Gaps {
  const { started, completed } = side.run!;
  const { send: sends, recv: recvs, channelOf, channelBegin, block, isSend, after } = side;
  const { afterBegin, messages } = side;
  const indices = indicesOf(side);
  const { send_window } = side.header;
  const ofSend = send_window !== null ? WaitKind.SendWindow : WaitKind.After;
  const out: Gaps = {
    op: new Int32Array(messages),
    kind: new Uint8Array(messages),
    cause: new Int32Array(messages),
    from: new Float64Array(messages),
    to: new Float64Array(messages),
  };
  let count = 0;
  for (let message = 0; message < messages; ++message) {
    const send = sends[message]!;
    const own = block[send]!;
    const start = started[send]!;
    if (own === NONE || Number.isNaN(start)) continue;
    let latest = -Infinity;
    let kind = WaitKind.After;
    let cause = NONE;
    let isKnown = true;
    const channel = channelOf[message]!;
    const arrival = indices.arrivalBefore(send);
    if (arrival !== NONE) {
      latest = completed[recvs[arrival]!]!;
      kind = WaitKind.Data;
      cause = recvs[arrival]!;
      isKnown = !Number.isNaN(latest);
    }
    for (let i = afterBegin[send]!; i < afterBegin[send + 1]!; ++i) {
      const op = send - after[i]!;
      const time = completed[op]!;
      const isOther = block[op] !== NONE && !shareBlocks(side, op, send);
      const why = isSend[op]
        ? ofSend
        : block[op] === NONE
          ? WaitKind.Credit
          : isOther
            ? WaitKind.After
            : WaitKind.Data;
      if (Number.isNaN(time)) isKnown = false;
      if (time > latest || (time === latest && why < kind)) {
        [latest, kind, cause] = [time, why, op];
      }
    }
    // The one before on its channel must only have left; one that had ended by then may be why.
    if (message !== channelBegin[channel]!) {
      const time = completed[sends[message - 1]!]!;
      const isLater = time > latest || (time === latest && WaitKind.ChannelOrder < kind);
      if (time <= start && isLater) {
        [latest, kind, cause] = [time, WaitKind.ChannelOrder, sends[message - 1]!];
      }
    }
    if (!isKnown || latest === -Infinity) continue;
    out.op[count] = send;
    out.kind[count] = kind;
    out.cause[count] = cause;
    out.from[count] = Math.min(latest, start);
    out.to[count] = start;
    ++count;
  }
  return {
    op: out.op.slice(0, count),
    kind: out.kind.slice(0, count),
    cause: out.cause.slice(0, count),
    from: out.from.slice(0, count),
    to: out.to.slice(0, count),
  };
}

function sumsOf(gaps: Gaps): GapSum[] {
  const counts = new Map<WaitKind, number>();
  gaps.kind.forEach((kind) => counts.set(kind, (counts.get(kind) ?? 0) + 1));
  return [...counts]
    .sort((a, b) => a[0] - b[0])
    .map(([kind, count]) => {
      const lengths = new Float64Array(count);
      let [at, sum, longest, longestOp] = [0, 0, -1, NONE];
      for (let i = 0; i < gaps.kind.length; ++i) {
        if (gaps.kind[i] !== kind) continue;
        const length = gaps.to[i]! - gaps.from[i]!;
        lengths[at++] = length;
        sum += length;
        if (length > longest) [longest, longestOp] = [length, gaps.op[i]!];
      }
      const median = lengths.sort()[(count - 1) >> 1]!;
      return { kind, count, median, sum, longest, longestOp };
    });
}

interface Made {
  gaps: Gaps;
  sums: GapSum[] | null;
  at: Int32Array | null;
}

const made = new WeakMap<Side, Made>();

/** Its side has a run; as the next. */
export function gapsOf(side: Side): Gaps {
  let it = made.get(side);
  if (!it) made.set(side, (it = { gaps: makeGaps(side), sums: null, at: null }));
  return it.gaps;
}
/** By kind. */
export function gapSumsOf(side: Side): GapSum[] {
  const gaps = gapsOf(side);
  const it = made.get(side)!;
  return (it.sums ??= sumsOf(gaps));
}
/** The gap before a message's send, or NONE. */
export function gapAt(side: Side, message: number): number {
  const gaps = gapsOf(side);
  const it = made.get(side)!;
  if (!it.at) {
    it.at = new Int32Array(side.messages).fill(NONE);
    gaps.op.forEach((op, i) => (it.at![side.messageOf[op]!] = i));
  }
  return it.at[message]!;
}
