// SPDX-License-Identifier: Apache-2.0
//
// Why a message cannot start earlier, what waits for it, and the chain of messages from it back to
// the root: the same answers as those of `prepost explain`. An edge of the plan's event graph is a
// reason; only the edges at the asked op are made.
import { indicesOf } from "./indices";
import { NONE, Side } from "./model";

/** In the order in which one of several that end at once is called the cause. */
export enum WaitKind {
  Transfer,
  Data,
  SendWindow,
  ChannelOrder,
  ReceiveWindow,
  Credit,
  CombineOrder,
  Left,
  Scratch,
  After,
  DeliveryOrder,
  Granted,
  Posted,
  Arrived,
  PostOrder,
  Barrier,
}

export interface Wait {
  kind: WaitKind;
  op: number; // the other end; NONE: the barrier
  until: number;
  isCause: boolean;
  isImplied: boolean;
}

export interface ChainStep {
  message: number;
  cause: WaitKind | null; // why it waits for the next step; null: it waits for nothing
}

/** What a message takes in the model. */
const costOf = (side: Side, message: number) => (side.isCredit(message) ? 0 : 1);

/** Whether two messages have a block in common. */
function haveBlockInCommon(side: Side, a: number, b: number): boolean {
  const [opA, opB] = [side.send[a]!, side.send[b]!];
  const [blockA, blockB] = [side.block[opA]!, side.block[opB]!];
  if (blockA === NONE || blockB === NONE) return false;
  return blockA < blockB + side.countOf(opB) && blockB < blockA + side.countOf(opA);
}

/** Message `later` is combined when `earlier`, which the same node sends or receives, is there. */
function kindOfCombineAfter(side: Side, earlier: number, later: number): WaitKind {
  if (side.channelOf[earlier] === side.channelOf[later]) return WaitKind.CombineOrder;
  if (!haveBlockInCommon(side, earlier, later)) return WaitKind.After;
  return side.fromOf(earlier) === side.toOf(later) ? WaitKind.Left : WaitKind.Data;
}

/** When an op of `message` at `node` has completed: a receive that combines, when it has. */
const completionAt = (side: Side, message: number, node: number) =>
  (side.fromOf(message) === node ? side.delivery : side.ready)[message]!;

/** Message `later` starts at a node when `earlier`, which it sends or receives, is delivered. */
function kindOfAfter(side: Side, earlier: number, later: number): WaitKind {
  const { header } = side;
  const laterIsCredit = side.isCredit(later);
  const earlierIsCredit = side.isCredit(earlier);
  if (side.fromOf(earlier) === side.fromOf(later)) {
    if (laterIsCredit && !earlierIsCredit) return WaitKind.Scratch;
    const isWindow = header.send_window !== null && !earlierIsCredit && !laterIsCredit;
    return isWindow ? WaitKind.SendWindow : WaitKind.After;
  }
  if (laterIsCredit) {
    const isWindow = header.ready.mode === "window" && !earlierIsCredit;
    return isWindow ? WaitKind.ReceiveWindow : WaitKind.After;
  }
  if (earlierIsCredit) {
    const isGranted = side.partner(side.channelOf[later]!) === side.channelOf[earlier];
    return isGranted ? WaitKind.Credit : WaitKind.After;
  }
  return haveBlockInCommon(side, earlier, later) ? WaitKind.Data : WaitKind.After;
}

/** The last receive that a credit grants, or NONE. */
function grantedLast(side: Side, credit: number): number {
  const blocks = side.partner(side.channelOf[credit]!);
  if (blocks === NONE) return NONE;
  const begin = side.channelBegin[blocks]!;
  const granted = Math.min(side.grantedUpTo(credit), side.channelBegin[blocks + 1]! - begin);
  return granted === 0 ? NONE : begin + granted - 1;
}

interface Edge {
  kind: WaitKind;
  message: number; // NONE: the barrier
  until: number;
}

/** What the start of `message` waits for, by the number of the event that it waits for. */
function beforeStart(side: Side, message: number): Edge[] {
  const edges: Edge[] = [];
  const channel = side.channelOf[message]!;
  const send = side.send[message]!;
  if (message > side.channelBegin[channel]!) {
    const until = side.start[message - 1]! + costOf(side, message - 1);
    edges.push({ kind: WaitKind.ChannelOrder, message: message - 1, until });
  }
  for (let i = side.afterBegin[send]!; i < side.afterBegin[send + 1]!; ++i) {
    const before = side.messageOf[send - side.after[i]!]!;
    const kind = kindOfAfter(side, before, message);
    edges.push({ kind, message: before, until: completionAt(side, before, side.fromOf(message)) });
  }
  if (side.isCredit(message)) {
    const granted = grantedLast(side, message);
    if (granted !== NONE) edges.push({ kind: WaitKind.Granted, message: granted, until: 0 });
  }
  edges.sort((a, b) => a.message - b.message || a.kind - b.kind);
  if (side.header.ready.mode === "barrier") {
    edges.push({ kind: WaitKind.Barrier, message: NONE, until: 0 });
  }
  return edges;
}

/** What the combining of `message` waits for beside its own arrival. */
function beforeCombine(side: Side, message: number): Edge[] {
  const edges: Edge[] = [];
  const recv = side.recv[message]!;
  const begin = side.channelBegin[side.channelOf[message]!]!;
  for (let before = message - 1; before >= begin; --before) {
    if (!side.isCombine(side.recv[before]!)) continue;
    edges.push({ kind: WaitKind.CombineOrder, message: before, until: side.ready[before]! });
    break;
  }
  for (let i = side.afterBegin[recv]!; i < side.afterBegin[recv + 1]!; ++i) {
    const before = side.messageOf[recv - side.after[i]!]!;
    const kind = kindOfCombineAfter(side, before, message);
    edges.push({ kind, message: before, until: completionAt(side, before, side.toOf(message)) });
  }
  return edges.sort((a, b) => a.message - b.message || a.kind - b.kind);
}

/** The block and the credit that a send needs, where nothing in `waits` names them. */
function addImplied(side: Side, message: number, node: number, waits: Wait[]): void {
  if (side.isCredit(message)) return;
  const add = (kind: WaitKind, needed: number) => {
    if (needed === NONE || waits.some((wait) => wait.kind === kind)) return;
    const until = completionAt(side, needed, node);
    const op = side.opAt(needed, node);
    waits.push({ kind, op, until, isCause: until === side.start[message], isImplied: true });
  };
  add(WaitKind.Data, indicesOf(side).arrivalBefore(side.send[message]!));
  const channel = side.channelOf[message]!;
  const credits = side.partner(channel);
  if (credits === NONE) return;
  add(WaitKind.Credit, side.creditFor(credits, message - side.channelBegin[channel]!));
}

/** What a send's start, or a receive's delivery and combining, waits for, the kinds in order. */
export function waitsFor(side: Side, op: number): Wait[] {
  const message = side.messageOf[op]!;
  const waits: Wait[] = [];
  if (side.isSend[op]) {
    const node = side.nodeOf(op);
    for (const edge of beforeStart(side, message)) {
      const other = edge.message === NONE ? NONE : side.opAt(edge.message, node);
      const isCause = edge.until === side.start[message];
      waits.push({ kind: edge.kind, op: other, until: edge.until, isCause, isImplied: false });
    }
    addImplied(side, message, node, waits);
  } else {
    const add = (kind: WaitKind, other: number, until: number) =>
      waits.push({
        kind,
        op: other,
        until,
        isCause: until === side.ready[message],
        isImplied: false,
      });
    add(WaitKind.Transfer, side.send[message]!, side.start[message]! + costOf(side, message));
    if (message > side.channelBegin[side.channelOf[message]!]!) {
      add(WaitKind.DeliveryOrder, side.recv[message - 1]!, side.delivery[message - 1]!);
    }
    if (side.isCombine(op)) {
      const node = side.toOf(message);
      for (const edge of beforeCombine(side, message))
        add(edge.kind, side.opAt(edge.message, node), edge.until);
    }
  }
  return waits.sort((a, b) => a.kind - b.kind);
}

/** What waits for an op at its node, and the receive of a send, the kinds in order. */
export function waitedBy(side: Side, op: number): { kind: WaitKind; op: number }[] {
  const message = side.messageOf[op]!;
  const channel = side.channelOf[message]!;
  const isLast = message + 1 === side.channelBegin[channel + 1]!;
  const waits: { kind: WaitKind; op: number }[] = [];
  if (side.isSend[op]) {
    waits.push({ kind: WaitKind.Transfer, op: side.recv[message]! });
    if (!isLast) waits.push({ kind: WaitKind.ChannelOrder, op: side.send[message + 1]! });
  } else {
    for (const credit of creditsOf(side, message)) {
      waits.push({ kind: WaitKind.Granted, op: side.send[credit]! });
    }
    if (!isLast) waits.push({ kind: WaitKind.DeliveryOrder, op: side.recv[message + 1]! });
    if (side.isCombine(op)) {
      for (let later = message + 1; later < side.channelBegin[channel + 1]!; ++later) {
        if (!side.isCombine(side.recv[later]!)) continue;
        waits.push({ kind: WaitKind.CombineOrder, op: side.recv[later]! });
        break;
      }
    }
  }
  const { begin, list } = indicesOf(side).dependents;
  for (let i = begin[op]!; i < begin[op + 1]!; ++i) {
    const later = list[i]!;
    const kindOf = side.isSend[later] ? kindOfAfter : kindOfCombineAfter;
    waits.push({ kind: kindOf(side, message, side.messageOf[later]!), op: later });
  }
  return waits.sort((a, b) => a.kind - b.kind);
}

/** The credits that wait for the posting of the receive of `message`, the last that they grant. */
function creditsOf(side: Side, message: number): number[] {
  const channel = side.channelOf[message]!;
  if (side.isCredit(message)) return [];
  const credits = side.partner(channel);
  if (credits === NONE) return [];
  let credit = side.creditFor(credits, message - side.channelBegin[channel]!);
  const out: number[] = [];
  if (credit === NONE) return out;
  for (; credit < side.channelBegin[credits + 1]!; ++credit) {
    if (grantedLast(side, credit) !== message) break;
    out.push(credit);
  }
  return out;
}

/** The first of those that end at `at` that says most. */
function causeAmong(edges: Edge[], at: number): Edge | null {
  let best: Edge | null = null;
  for (const edge of edges) {
    if (edge.until !== at) continue;
    if (!best || edge.kind < best.kind) best = edge;
  }
  return best;
}
/** What the start of `message` waits for longest, the one that says most. */
const causeOf = (side: Side, message: number) =>
  causeAmong(beforeStart(side, message), side.start[message]!);

/** Combining takes no time: whose arrival what `message` brings to `node` waits for. */
function arrivalBehind(side: Side, message: number, node: number): number {
  let at = message;
  while (side.toOf(at) === node && side.isCombine(side.recv[at]!)) {
    const cause = causeAmong(beforeCombine(side, at), side.ready[at]!);
    if (!cause) return at; // its own arrival
    at = cause.message;
  }
  return at;
}

/** From `message` to what it waited for longest, and so on back to one that waits for none. */
export function chainOf(side: Side, message: number): ChainStep[] {
  const chain: ChainStep[] = [];
  for (;;) {
    const cause = causeOf(side, message);
    chain.push({ message, cause: cause ? cause.kind : null });
    if (!cause || cause.kind === WaitKind.Barrier || cause.kind === WaitKind.Granted) return chain;
    message = arrivalBehind(side, cause.message, side.fromOf(message));
  }
}
