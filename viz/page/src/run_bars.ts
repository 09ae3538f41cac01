// SPDX-License-Identifier: Apache-2.0
//
// Bars of a run: per row, the blocks that pass there, by when they start; and what hosts posted.
import { indicesOf } from "./indices";
import { NONE, Side } from "./model";
import { WaitKind } from "./reasons";

const LANES_MAX = 4;

/** Rows of bars: those of row i are begin[i] .. begin[i + 1], by start. */
export interface Bars {
  rows: number;
  begin: Int32Array;
  message: Int32Array;
  start: Float64Array;
  end: Float64Array;
  /** The latest end of a row's bars up to each: rises within a row. */
  endMax: Float64Array;
  lane: Uint8Array;
  lanes: Uint8Array; // by row
}

/** When a block is on the wire: from its send's start to its arrival. */
function wireOf(side: Side, message: number): [number, number] {
  const { started, completed } = side.run!;
  const [send, recv] = [side.send[message]!, side.recv[message]!];
  const from = Number.isNaN(started[send]!) ? started[recv]! : started[send]!;
  const to = Number.isNaN(completed[recv]!) ? completed[send]! : completed[recv]!;
  return [from, to];
}

/** What its node knows of one op. */
function atNode(side: Side, op: number, message: number): [number, number] {
  const { started, completed } = side.run!;
  const [from, to] = wireOf(side, message);
  return [
    Number.isNaN(started[op]!) ? from : started[op]!,
    Number.isNaN(completed[op]!) ? to : completed[op]!,
  ];
}

function makeBars(
  side: Side,
  rows: number,
  rowOf: (message: number) => number,
  timesOf: (message: number) => [number, number],
): Bars {
  const all = indicesOf(side).blocksByRound;
  const begin = new Int32Array(rows + 1);
  const start = new Float64Array(all.length);
  const end = new Float64Array(all.length);
  const known: number[] = [];
  for (let i = 0; i < all.length; ++i) {
    const [from, to] = timesOf(all[i]!);
    if (Number.isNaN(to)) continue;
    start[i] = Number.isNaN(from) ? to : from;
    end[i] = to;
    known.push(i);
    ++begin[rowOf(all[i]!) + 1]!;
  }
  for (let row = 0; row < rows; ++row) begin[row + 1]! += begin[row]!;
  known.sort((a, b) => start[a]! - start[b]!);
  const next = begin.slice();
  const count = known.length;
  const bars: Bars = {
    rows,
    begin,
    message: new Int32Array(count),
    start: new Float64Array(count),
    end: new Float64Array(count),
    endMax: new Float64Array(count),
    lane: new Uint8Array(count),
    lanes: new Uint8Array(rows).fill(1),
  };
  for (const i of known) {
    const at = next[rowOf(all[i]!)]!++;
    bars.message[at] = all[i]!;
    bars.start[at] = start[i]!;
    bars.end[at] = end[i]!;
  }
  const free = new Float64Array(LANES_MAX);
  for (let row = 0; row < rows; ++row) {
    free.fill(-Infinity);
    let latest = -Infinity;
    for (let at = begin[row]!; at < begin[row + 1]!; ++at) {
      latest = Math.max(latest, bars.end[at]!);
      bars.endMax[at] = latest;
      let lane = 0;
      while (lane + 1 < LANES_MAX && free[lane]! > bars.start[at]!) ++lane;
      free[lane] = bars.end[at]!;
      bars.lane[at] = lane;
      bars.lanes[row] = Math.max(bars.lanes[row]!, lane + 1);
    }
  }
  return bars;
}

/** Bars by node: what it receives, or what it sends. */
export function barsOfNodes(side: Side, isSend: boolean): Bars {
  return makeBars(
    side,
    side.header.nodes,
    (message) => side.rowOf[isSend ? side.fromOf(message) : side.toOf(message)]!,
    (message) => atNode(side, isSend ? side.send[message]! : side.recv[message]!, message),
  );
}

/** Bars by channel that carries blocks; `channels` says which, in the order of the rows. */
export function barsOfLinks(side: Side): { bars: Bars; channels: number[] } {
  const channels: number[] = [];
  side.lane.forEach((lane, channel) => {
    if (lane !== 1 && side.channelBegin[channel + 1]! > side.channelBegin[channel]!) {
      channels.push(channel);
    }
  });
  channels.sort(
    (a, b) =>
      side.rowOf[side.from[a]!]! - side.rowOf[side.from[b]!]! ||
      side.rowOf[side.to[a]!]! - side.rowOf[side.to[b]!]! ||
      side.lane[a]! - side.lane[b]!,
  );
  const row = new Int32Array(side.from.length).fill(NONE);
  channels.forEach((channel, i) => (row[channel] = i));
  const bars = makeBars(
    side,
    channels.length,
    (message) => row[side.channelOf[message]!]!,
    (message) => wireOf(side, message),
  );
  return { bars, channels };
}

/** What hosts posted: times during the transfer, by node and together, sorted; and counts. */
export interface Posts {
  begin: Int32Array; // by node
  times: Float64Array;
  all: Float64Array;
  before: number;
  during: number;
}

export function postsOf(side: Side): Posts {
  const { posted } = side.run!;
  const perNode: Float64Array[] = [];
  const begin = new Int32Array(side.header.nodes + 1);
  let before = 0;
  for (let node = 0; node < side.header.nodes; ++node) {
    const first = side.opBegin[node]!;
    const own = posted.subarray(first, first + side.opCount[node]!);
    const during = own.filter((time) => time > 0).sort();
    before += own.reduce((sum, time) => sum + (time <= 0 ? 1 : 0), 0);
    perNode.push(during);
    begin[node + 1] = begin[node]! + during.length;
  }
  const times = new Float64Array(begin[side.header.nodes]!);
  perNode.forEach((list, node) => times.set(list, begin[node]!));
  return { begin, times, all: times.slice().sort(), before, during: times.length };
}

export interface Gap {
  kind: WaitKind | null; // null: nothing that is known
  count: number;
  median: number;
  sum: number;
  longest: number;
  longestOp: number;
}

/**
 * How long block sends start after the last of what they wait for, by that one's kind: what the
 * one who starts them takes. Ends are as their node saw them. Sends of which something is not
 * known do not count.
 */
export function gapsOf(side: Side): Gap[] {
  const { started, completed } = side.run!;
  const byKind = new Map<WaitKind, { gaps: number[]; op: number; longest: number }>();
  const indices = indicesOf(side);
  const window = side.header.send_window !== null;
  for (let message = 0; message < side.messages; ++message) {
    const send = side.send[message]!;
    const block = side.block[send]!;
    const start = started[send]!;
    if (block === NONE || Number.isNaN(start)) continue;
    let latest = -Infinity;
    let kind = WaitKind.After;
    const consider = (time: number, why: WaitKind) => {
      if (time > latest || (time === latest && why < kind)) [latest, kind] = [time, why];
    };
    const needs: [number, WaitKind][] = [];
    const arrival = indices.arrival(side.from[side.channelOf[message]!]!, block);
    if (arrival !== NONE) needs.push([completed[side.recv[arrival]!]!, WaitKind.Data]);
    for (let i = side.afterBegin[send]!; i < side.afterBegin[send + 1]!; ++i) {
      const op = send - side.after[i]!;
      const ofRecv = side.block[op] === NONE ? WaitKind.Credit : WaitKind.Data;
      const isOther = !side.isSend[op] && side.block[op] !== NONE && side.block[op] !== block;
      const ofSend = window ? WaitKind.SendWindow : WaitKind.After;
      needs.push([completed[op]!, side.isSend[op] ? ofSend : isOther ? WaitKind.After : ofRecv]);
    }
    // The one before on its channel must only have left; one that had ended by then may be why.
    if (message !== side.channelBegin[side.channelOf[message]!]!) {
      const before = completed[side.send[message - 1]!]!;
      if (before <= start) needs.push([before, WaitKind.ChannelOrder]);
    }
    if (needs.length === 0 || needs.some(([time]) => Number.isNaN(time))) continue;
    for (const [time, why] of needs) consider(time, why);
    let group = byKind.get(kind);
    if (!group) byKind.set(kind, (group = { gaps: [], op: send, longest: -Infinity }));
    const gap = Math.max(0, start - latest);
    group.gaps.push(gap);
    if (gap > group.longest) [group.longest, group.op] = [gap, send];
  }
  return [...byKind]
    .sort((a, b) => a[0] - b[0])
    .map(([kind, { gaps, op, longest }]) => {
      const sorted = Float64Array.from(gaps).sort();
      return {
        kind,
        count: gaps.length,
        median: sorted[(gaps.length - 1) >> 1]!,
        sum: gaps.reduce((sum, gap) => sum + gap, 0),
        longest,
        longestOp: op,
      };
    });
}

/** The first of values[begin..end), which rise, that is at least `value`. */
export function lowerBound(
  values: Float64Array,
  begin: number,
  end: number,
  value: number,
): number {
  while (begin < end) {
    const middle = (begin + end) >> 1;
    if (values[middle]! >= value) end = middle;
    else begin = middle + 1;
  }
  return begin;
}
