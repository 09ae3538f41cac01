// SPDX-License-Identifier: Apache-2.0
//
// The op graph around a selection: which messages, which edges, and where each op lies. The chain
// back to what began it is always in it; then causes and consequences, nearest first, up to a limit.
// An op lies in its node's row at its time; what happens at once lies in the order of its causes.
import { NONE, Side } from "./model";
import { WaitKind, chainOf, waitedBy, waitsFor } from "./reasons";

export const GRAPH_MESSAGES_MAX = 300;
const STEPS_FORWARD = 3;

export interface GraphOp {
  op: number;
  x: number; // in times or rounds
  row: number;
  track: number; // of those at the same place
}

export interface GraphEdge {
  from: number; // ops
  to: number;
  kind: WaitKind;
  isImplied: boolean;
  isCause: boolean;
}

export interface Graph {
  ops: GraphOp[];
  at: Map<number, GraphOp>;
  edges: GraphEdge[];
  nodes: number[]; // by row
  tracks: number[]; // by row: how many ops lie above each other
  rowTop: number[]; // in tracks
  height: number; // in tracks
  first: number; // x of the first and after the last
  last: number;
  leftOut: boolean;
  messages: number;
  chain: Set<number>;
}

interface Found {
  messages: Set<number>;
  leftOut: boolean;
}

/** Nearest first from `seeds`; `next` names the messages around one. */
function spread(
  found: Found,
  seeds: Iterable<number>,
  limit: number,
  steps: number,
  next: (message: number) => number[],
): void {
  let front = [...seeds];
  for (let step = 0; step < steps && front.length > 0; ++step) {
    const after: number[] = [];
    for (const message of front) {
      for (const other of next(message)) {
        if (found.messages.has(other)) continue;
        if (found.messages.size >= limit) {
          found.leftOut = true;
          return;
        }
        found.messages.add(other);
        after.push(other);
      }
    }
    front = after;
  }
}

function gather(side: Side, seeds: number[], chain: number[]): Found {
  const found: Found = { messages: new Set(seeds), leftOut: false };
  for (const message of chain) {
    if (found.messages.size >= GRAPH_MESSAGES_MAX * 0.6) {
      found.leftOut = true;
      break;
    }
    found.messages.add(message);
  }
  const others = (ops: { op: number }[]) =>
    ops.filter((it) => it.op !== NONE).map((it) => side.messageOf[it.op]!);
  // Around many messages, as those of a block, only what they wait for themselves.
  const isOne = seeds.length === 1;
  spread(found, seeds, GRAPH_MESSAGES_MAX * 0.75, isOne ? STEPS_FORWARD : 0, (message) => [
    ...others(waitedBy(side, side.send[message]!)),
    ...others(waitedBy(side, side.recv[message]!).filter((it) => it.kind !== WaitKind.Granted)),
  ]);
  spread(
    found,
    [...seeds, ...chain.filter((it) => found.messages.has(it))],
    GRAPH_MESSAGES_MAX,
    isOne ? Infinity : 1,
    (message) => [
      ...others(waitsFor(side, side.send[message]!).filter((it) => it.kind !== WaitKind.Granted)),
      ...(side.isCombine(side.recv[message]!) ? others(waitsFor(side, side.recv[message]!)) : []),
    ],
  );
  return found;
}

/** Where in its unit of time an op lies: arrivals first, then credits, then sends. */
function placeOf(side: Side, op: number): number {
  const isCredit = side.block[op] === NONE;
  if (side.isSend[op]) return isCredit ? -0.12 : 0.36;
  return isCredit ? 0.12 : -0.36;
}

export function layOutGraph(side: Side, seeds: number[], byRound: boolean): Graph {
  const chain = seeds.length === 0 ? [] : chainOf(side, seeds[0]!).map((step) => step.message);
  const found = gather(side, seeds, chain);
  const at = new Map<number, GraphOp>();
  const ops: GraphOp[] = [];
  const nodeSet = new Set<number>();
  const add = (op: number, message: number) => {
    const isArrival = side.isSend[op] === 0;
    const isCredit = side.block[op] === NONE;
    const time = byRound
      ? side.round[op]! + (isArrival && !isCredit ? 1 : 0)
      : isArrival
        ? side.ready[message]!
        : side.start[message]!;
    const it = { op, x: time + placeOf(side, op), row: 0, track: 0 };
    ops.push(it);
    at.set(op, it);
    nodeSet.add(side.nodeOf(op));
  };
  for (const message of found.messages) {
    add(side.send[message]!, message);
    add(side.recv[message]!, message);
  }
  const nodes = [...nodeSet].sort((a, b) => side.rowOf[a]! - side.rowOf[b]!);
  const rowOf = new Map(nodes.map((node, row) => [node, row]));
  const tracks = nodes.map(() => 1);
  const taken = new Map<string, number>();
  ops.sort((a, b) => a.x - b.x || a.op - b.op);
  for (const it of ops) {
    it.row = rowOf.get(side.nodeOf(it.op))!;
    const key = `${it.row} ${it.x}`;
    it.track = taken.get(key) ?? 0;
    taken.set(key, it.track + 1);
    tracks[it.row] = Math.max(tracks[it.row]!, it.track + 1);
  }
  const rowTop: number[] = [];
  let height = 0;
  for (const count of tracks) {
    rowTop.push(height);
    height += count + 0.35;
  }
  const edges: GraphEdge[] = [];
  for (const message of found.messages) {
    const send = side.send[message]!;
    edges.push({
      from: send,
      to: side.recv[message]!,
      kind: WaitKind.Transfer,
      isImplied: false,
      isCause: true,
    });
    for (const wait of waitsFor(side, send)) {
      if (wait.op === NONE || wait.kind === WaitKind.Granted || !at.has(wait.op)) continue;
      edges.push({
        from: wait.op,
        to: send,
        kind: wait.kind,
        isImplied: wait.isImplied,
        isCause: wait.isCause,
      });
    }
    const recv = side.recv[message]!;
    if (!side.isCombine(recv)) continue;
    for (const { op, kind, isImplied, isCause } of waitsFor(side, recv)) {
      if (kind === WaitKind.Transfer || kind === WaitKind.DeliveryOrder || !at.has(op)) continue;
      edges.push({ from: op, to: recv, kind, isImplied, isCause });
    }
  }
  const xs = ops.map((it) => it.x);
  return {
    ops,
    at,
    edges,
    nodes,
    tracks,
    rowTop,
    height: Math.max(1, height),
    first: xs.length === 0 ? 0 : Math.floor(Math.min(...xs)) - 0.5,
    last: xs.length === 0 ? 1 : Math.ceil(Math.max(...xs)) + 0.5,
    leftOut: found.leftOut,
    messages: found.messages.size,
    chain: new Set(chain),
  };
}
