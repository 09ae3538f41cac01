// SPDX-License-Identifier: Apache-2.0
//
// Bars of a run: per row, the blocks that pass there, by when they start.
import { indicesOf } from "./indices";
import { CREDIT_LANE, NONE, Side } from "./model";

const TRACKS_MAX = 4;

/** Rows of bars: those of row i are begin[i] .. begin[i + 1], by start. */
export interface Bars {
  rows: number;
  begin: Int32Array;
  message: Int32Array;
  start: Float64Array;
  end: Float64Array;
  /** The latest end of a row's bars up to each: rises within a row. */
  endMax: Float64Array;
  track: Uint8Array;
  tracks: Uint8Array; // by row
  at: Int32Array; // by message: its place in the others, or NONE
}

/** When a message is on the wire: from its send's start to its arrival; NaN: unknown. */
export function wireOf(side: Side, message: number): [number, number] {
  const { started, completed } = side.run!;
  const [send, recv] = [side.send[message]!, side.recv[message]!];
  const from = Number.isNaN(started[send]!) ? started[recv]! : started[send]!;
  const to = Number.isNaN(completed[recv]!) ? completed[send]! : completed[recv]!;
  return [from, to];
}

/** By rounds, as they come, they are nearly in the order of their starts. */
function sortByStart(order: Int32Array, start: Float64Array, begin: number, end: number): void {
  let moves = 0;
  for (let i = begin + 1; i < end; ++i) {
    const one = order[i]!;
    let at = i;
    while (at > begin && start[order[at - 1]!]! > start[one]!) {
      order[at] = order[at - 1]!;
      --at;
      ++moves;
    }
    order[at] = one;
    if (moves > 16 * (end - begin)) {
      order.subarray(begin, end).sort((a, b) => start[a]! - start[b]!);
      return;
    }
  }
}

/** `opOf`: the op whose times a bar has as far as they are known; null: a bar is on the wire. */
function makeBars(
  side: Side,
  rows: number,
  rowOf: (message: number) => number,
  opOf: ((message: number) => number) | null,
): Bars {
  const all = indicesOf(side).blocksByRound;
  const begin = new Int32Array(rows + 1);
  const start = new Float64Array(all.length);
  const end = new Float64Array(all.length);
  const { started, completed } = side.run!;
  const { send: sends, recv: recvs } = side;
  const known = (a: number, b: number) => (Number.isNaN(a) ? b : a);
  for (let i = 0; i < all.length; ++i) {
    const message = all[i]!;
    const [send, recv] = [sends[message]!, recvs[message]!];
    let from = known(started[send]!, started[recv]!);
    let to = known(completed[recv]!, completed[send]!);
    if (opOf) {
      const op = opOf(message);
      from = known(started[op]!, from);
      to = known(completed[op]!, to);
    }
    start[i] = known(from, to);
    end[i] = Number.isNaN(to) && !Number.isNaN(from) ? side.duration : to; // it never ended
    if (!Number.isNaN(end[i]!)) ++begin[rowOf(message) + 1]!;
  }
  for (let row = 0; row < rows; ++row) begin[row + 1]! += begin[row]!;
  const count = begin[rows]!;
  const order = new Int32Array(count);
  const next = begin.slice();
  for (let i = 0; i < all.length; ++i) {
    if (!Number.isNaN(end[i]!)) order[next[rowOf(all[i]!)]!++] = i;
  }
  for (let row = 0; row < rows; ++row) sortByStart(order, start, begin[row]!, begin[row + 1]!);
  const bars: Bars = {
    rows,
    begin,
    message: new Int32Array(count),
    start: new Float64Array(count),
    end: new Float64Array(count),
    endMax: new Float64Array(count),
    track: new Uint8Array(count),
    tracks: new Uint8Array(rows).fill(1),
    at: new Int32Array(side.messages).fill(NONE),
  };
  for (let at = 0; at < count; ++at) {
    const i = order[at]!;
    const message = (bars.message[at] = all[i]!);
    bars.start[at] = start[i]!;
    bars.end[at] = end[i]!;
    bars.at[message] = at;
  }
  const free = new Float64Array(TRACKS_MAX);
  for (let row = 0; row < rows; ++row) {
    free.fill(-Infinity);
    let latest = -Infinity;
    for (let at = begin[row]!; at < begin[row + 1]!; ++at) {
      latest = Math.max(latest, bars.end[at]!);
      bars.endMax[at] = latest;
      let track = 0;
      while (track + 1 < TRACKS_MAX && free[track]! > bars.start[at]!) ++track;
      free[track] = bars.end[at]!;
      bars.track[at] = track;
      bars.tracks[row] = Math.max(bars.tracks[row]!, track + 1);
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
    (message) => (isSend ? side.send : side.recv)[message]!,
  );
}

/** Bars by channel that carries blocks; `channels` says which, in the order of the rows. */
export function barsOfLinks(side: Side): { bars: Bars; channels: number[] } {
  const channels: number[] = [];
  side.lane.forEach((lane, channel) => {
    if (lane !== CREDIT_LANE && side.channelBegin[channel + 1]! > side.channelBegin[channel]!) {
      channels.push(channel);
    }
  });
  channels.sort(
    (a, b) =>
      side.rowOf[side.from[a]!]! - side.rowOf[side.from[b]!]! ||
      side.rowOf[side.to[a]!]! - side.rowOf[side.to[b]!]!,
  );
  const row = new Int32Array(side.from.length).fill(NONE);
  channels.forEach((channel, i) => (row[channel] = i));
  const bars = makeBars(
    side,
    channels.length,
    (message) => row[side.channelOf[message]!]!,
    null,
  );
  return { bars, channels };
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
