// SPDX-License-Identifier: Apache-2.0
//
// What a target means to the views: its messages, nodes and rounds, and a short text on it.
import { indicesOf } from "./indices";
import { NONE, Side } from "./model";
import { Store } from "./store";
import { Target, count, linkText, messageText, targetText } from "./targets";

/** The message of a target that has one, or NONE. */
export function messageOf(side: Side, target: Target): number {
  if (target.kind === "message") return target.message;
  if (target.kind === "op") return side.messageOf[target.op]!;
  if (target.kind === "entry") {
    const entry = side.queues.find(target.engine, target.node)?.queues[target.queue]?.entries[
      target.index
    ];
    return typeof entry?.op === "number"
      ? side.messageOf[side.opBegin[target.node]! + entry.op]!
      : NONE;
  }
  return NONE;
}

/** The node of a target that has one, or NONE. Of a message its receiver. */
export function nodeOf(side: Side, target: Target): number {
  if (target.kind === "node" || target.kind === "entry") return target.node;
  if (target.kind === "op") return side.nodeOf(target.op);
  if (target.kind === "message") return side.toOf(target.message);
  return target.kind === "link" ? side.to[target.channel]! : NONE;
}

/** The block of a target that has one, or NONE. */
export function blockOf(side: Side, target: Target): number {
  if (target.kind === "block") return target.block;
  const message = messageOf(side, target);
  return message === NONE ? NONE : side.blockOf(message);
}

/** The messages of a target, as far as they are few: those of a block, a channel, or itself. */
export function messagesOf(side: Side, target: Target): number[] {
  if (target.kind === "block") {
    return indicesOf(side).messagesOf(target.block);
  }
  if (target.kind === "link") {
    const out: number[] = [];
    const end = side.channelBegin[target.channel + 1]!;
    for (let m = side.channelBegin[target.channel]!; m < end; ++m) out.push(m);
    return out;
  }
  const message = messageOf(side, target);
  return message === NONE ? [] : [message];
}

/** " of part 3" where there are several. */
function partText({ head }: Side, block: number): string {
  const { parts = 1, blocks_per_part: perPart = 1 } = head.collective ?? {};
  return parts === 1 ? "" : ` of part ${Math.floor(block / perPart)}`;
}

/** A line or two for a tooltip. */
export function shortText(side: Side, target: Target): string {
  const message = messageOf(side, target);
  if (message !== NONE) {
    const route = messageText(side, message);
    const slack = side.slack[message] === 0 ? "critical" : `slack ${side.slack[message]}`;
    const crossing =
      side.head.racks && side.crosses(message)
        ? `; ${side.head.racks.word} ${side.head.racks.names[side.rackOf(side.fromOf(message))]} to ` +
          `${side.head.racks.names[side.rackOf(side.toOf(message))]}`
        : "";
    const ops =
      `node ${side.fromOf(message)} op ${side.idOf(side.send[message]!)}, ` +
      `node ${side.toOf(message)} op ${side.idOf(side.recv[message]!)}`;
    const combined = side.isCombine(side.recv[message]!)
      ? `; combined at node ${side.toOf(message)}`
      : "";
    return (
      `${route}${combined}, round ${side.roundOf(message)}${crossing}\n${ops}\n` +
      `starts at ${side.start[message]}, arrives at ${side.delivery[message]}; ${slack}`
    );
  }
  switch (target.kind) {
    case "node": {
      const rack = side.head.racks
        ? `, ${side.head.racks.word} ${side.head.racks.names[side.rackOf(target.node)]}`
        : "";
      const root = target.node === side.root ? " (the root)" : "";
      return `node ${target.node}${root}${rack}\n${count(side.opCount[target.node]!, "op")}`;
    }
    case "block":
      return `block ${target.block}${partText(side, target.block)}, ${count(side.blockBytes(target.block), "byte")}`;
    case "link": {
      const messages = side.channelBegin[target.channel + 1]! - side.channelBegin[target.channel]!;
      return `${linkText(side, target.channel)}: ${count(messages, "message")}`;
    }
    default:
      return targetText(side, target);
  }
}

/** The same message on another side, found by its ends and its blocks or place, or NONE. */
function messageOn(own: Side, message: number, side: Side): number {
  const [from, to] = [own.fromOf(message), own.toOf(message)];
  const { nodes } = side.header;
  if (from >= nodes || to >= nodes) return NONE;
  const channel = channelOn(own, own.channelOf[message]!, side);
  if (channel === NONE) return NONE;
  if (!own.isCredit(message)) {
    // Of those that look alike, the one that is as far on.
    const alike = (of: Side, it: number) => {
      const [a, b] = [of.send[it]!, own.send[message]!];
      return of.block[a] === own.block[b] && of.countOf(a) === own.countOf(b);
    };
    let before = 0;
    for (let it = own.channelBegin[own.channelOf[message]!]!; it < message; ++it)
      if (alike(own, it)) ++before;
    for (let it = side.channelBegin[channel]!; it < side.channelBegin[channel + 1]!; ++it)
      if (alike(side, it) && before-- === 0) return it;
    return NONE;
  }
  const other = side.channelBegin[channel]! + message - own.channelBegin[own.channelOf[message]!]!;
  return other < side.channelBegin[channel + 1]! ? other : NONE;
}

function channelOn(own: Side, channel: number, side: Side): number {
  const [from, to] = [own.from[channel]!, own.to[channel]!];
  if (from >= side.header.nodes || to >= side.header.nodes) return NONE;
  const all = indicesOf(side).channels.get(from * side.header.nodes + to) ?? [];
  return all.find((it) => side.lane[it] === own.lane[channel]) ?? NONE;
}

/** The same thing on another side, or null. Of a queue's entry its op, or else its node. */
export function onSide(sides: Side[], target: Target, index: number): Target | null {
  if (target.side === index) return target;
  const own = sides[target.side]!;
  const side = sides[index]!;
  const { nodes, blocks, rounds } = side.header;
  const message = messageOf(own, target);
  const other = message === NONE ? NONE : messageOn(own, message, side);
  switch (target.kind) {
    case "block":
      return target.block < blocks ? { ...target, side: index } : null;
    case "round":
      return target.round < rounds ? { ...target, side: index } : null;
    case "link": {
      const channel = channelOn(own, target.channel, side);
      return channel === NONE ? null : { side: index, kind: "link", channel };
    }
    case "message":
      return other === NONE ? null : { side: index, kind: "message", message: other };
    case "op": {
      const isSend = own.isSend[target.op] === 1;
      if (other === NONE) return null;
      return { side: index, kind: "op", op: (isSend ? side.send : side.recv)[other]! };
    }
    case "node":
    case "entry":
      if (other !== NONE) return { side: index, kind: "op", op: side.opAt(other, target.node) };
      return target.node < nodes ? { side: index, kind: "node", node: target.node } : null;
  }
}

/** What a view marks: a target as it is on its side. */
export interface Mark {
  target: Target;
  message: number; // that it is about, or NONE
  isHover: boolean; // pointed at; else selected
  width: number; // of its line
}

/** What is selected, and thinner what is pointed at. */
export function marksOn(store: Store, index: number): Mark[] {
  const { selected, hovered } = store.state;
  const out: Mark[] = [];
  const add = (it: Target | null, isHover: boolean) => {
    const target = it && onSide(store.sides, it, index);
    if (!target) return;
    const message = messageOf(store.sides[index]!, target);
    out.push({ target, message, isHover, width: isHover ? 1.5 : 2.5 });
  };
  add(selected, false);
  add(hovered, true);
  return out;
}

/** The line of what some marks hold for; 0: of none. */
export const widthOf = (marks: Mark[], holds: (mark: Mark) => boolean): number =>
  marks.reduce((most, mark) => (mark.width > most && holds(mark) ? mark.width : most), 0);

/** Whether an op is one of a mark's: of its message, block, round or channel. */
export function isOpOf(side: Side, { target, message }: Mark, op: number): boolean {
  switch (target.kind) {
    case "block":
      return side.hasBlock(op, target.block);
    case "round":
      return side.round[op] === target.round;
    case "link":
      return side.channel[op] === target.channel;
    default:
      return message !== NONE && side.messageOf[op] === message;
  }
}

/** The nodes of a mark that is about one or two: of a message or channel its ends. */
export function nodesOf(side: Side, { target, message }: Mark): number[] {
  if (message !== NONE) return [side.fromOf(message), side.toOf(message)];
  if (target.kind === "link") return [side.from[target.channel]!, side.to[target.channel]!];
  return target.kind === "node" || target.kind === "entry" ? [target.node] : [];
}
