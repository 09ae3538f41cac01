// SPDX-License-Identifier: Apache-2.0
//
// What a target means to the views: its messages, nodes and rounds, and a short text on it.
import { indicesOf } from "./indices";
import { NONE, Side } from "./model";
import { Target, count, linkText, messageText, targetText } from "./targets";

/** The message of a target that has one, or NONE. */
export function messageOf(side: Side, target: Target): number {
  if (target.kind === "message") return target.message;
  if (target.kind === "op") return side.messageOf[target.op]!;
  if (target.kind === "entry") {
    const entry = side.head.queues.find(
      (it) => it.engine === target.engine && it.node === target.node,
    )?.queues[target.queue]?.entries[target.index];
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
    const out: number[] = [];
    for (let node = 0; node < side.header.nodes; ++node) {
      const message = indicesOf(side).arrival(node, target.block);
      if (message !== NONE) out.push(message);
    }
    return out;
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

/** A line or two for a tooltip. */
export function shortText(side: Side, target: Target): string {
  const message = messageOf(side, target);
  if (message !== NONE) {
    const route = messageText(side, message);
    const slack = side.slack[message] === 0 ? "critical" : `slack ${side.slack[message]}`;
    const crossing =
      side.head.racks && side.crosses(message)
        ? `; rack ${side.head.racks.names[side.rackOf(side.fromOf(message))]} to ` +
          `${side.head.racks.names[side.rackOf(side.toOf(message))]}`
        : "";
    const ops =
      `node ${side.fromOf(message)} op ${side.idOf(side.send[message]!)}, ` +
      `node ${side.toOf(message)} op ${side.idOf(side.recv[message]!)}`;
    return (
      `${route}, round ${side.roundOf(message)}${crossing}\n${ops}\n` +
      `starts at ${side.start[message]}, arrives at ${side.delivery[message]}; ${slack}`
    );
  }
  switch (target.kind) {
    case "node": {
      const rack = side.head.racks
        ? `, rack ${side.head.racks.names[side.rackOf(target.node)]}`
        : "";
      const root = target.node === side.header.root ? " (the root)" : "";
      return `node ${target.node}${root}${rack}\n${count(side.opCount[target.node]!, "op")}`;
    }
    case "block":
      return `block ${target.block}, ${count(side.blockBytes(target.block), "byte")}`;
    case "link": {
      const messages = side.channelBegin[target.channel + 1]! - side.channelBegin[target.channel]!;
      return `${linkText(side, target.channel)}: ${count(messages, "message")}`;
    }
    default:
      return targetText(side, target);
  }
}

/** The same thing on another side, or null: there messages are found by their ends and block. */
export function onSide(sides: Side[], target: Target, index: number): Target | null {
  if (target.side === index) return target;
  const side = sides[index]!;
  const { nodes, blocks, rounds } = side.header;
  switch (target.kind) {
    case "node":
      return target.node < nodes ? { ...target, side: index } : null;
    case "block":
      return target.block < blocks ? { ...target, side: index } : null;
    case "round":
      return target.round < rounds ? { ...target, side: index } : null;
    default:
      break;
  }
  const own = sides[target.side]!;
  const message = messageOf(own, target);
  if (message === NONE) return null;
  const block = own.blockOf(message);
  if (block === NONE || own.toOf(message) >= nodes || block >= blocks) return null;
  const other = indicesOf(side).arrival(own.toOf(message), block);
  if (other === NONE || side.fromOf(other) !== own.fromOf(message)) return null;
  return { side: index, kind: "message", message: other };
}
