// SPDX-License-Identifier: Apache-2.0
//
// Target: a thing that can be pointed at, selected and searched for, and its text: "node 5",
// "block 12", "round 4", "5/13" (an op), "3>2:7" (a message), "3>2" (a channel).
import { indicesOf } from "./indices";
import { CREDIT_LANE, Side } from "./model";

export type Target = { side: number } & (
  | { kind: "node"; node: number }
  | { kind: "block"; block: number }
  | { kind: "round"; round: number }
  | { kind: "op"; op: number }
  | { kind: "message"; message: number }
  | { kind: "link"; channel: number }
  | { kind: "entry"; engine: string; node: number; queue: number; index: number }
);

export const ENGINES: Record<string, string> = {
  nic: "NIC (preposted)",
  deferred: "deferred work queues",
  cpu: "CPU",
};

/** A piece of text; with a target it can be clicked. */
export type Piece = string | { text: string; target: Target };
export type Line = Piece[];

export const textOf = (lines: Line[]): string =>
  lines
    .map(
      (line) =>
        line.map((piece) => (typeof piece === "string" ? piece : piece.text)).join("") + "\n",
    )
    .join("");

/** "1 block", "4 blocks". */
export const count = (n: number, noun: string) => `${n} ${noun}${n === 1 ? "" : "s"}`;

export const opText = (side: Side, op: number) => `${side.nodeOf(op)}/${side.idOf(op)}`;

/** "1>5:3", of several blocks "1>5:3-6", or "credit 5>1". */
export function messageText(side: Side, message: number): string {
  const ends = `${side.fromOf(message)}>${side.toOf(message)}`;
  return side.isCredit(message)
    ? `credit ${ends}`
    : `${ends}:${side.blocksText(side.send[message]!)}`;
}

export function linkText(side: Side, channel: number): string {
  const ends = `${side.from[channel]}>${side.to[channel]}`;
  return side.lane[channel] === CREDIT_LANE ? `credit ${ends}` : ends;
}

/** Whether parse() finds a message by its text. */
function isFirst(side: Side, message: number): boolean {
  if (side.isCredit(message)) return false;
  const send = side.send[message]!;
  const block = side.block[send]!;
  const all = messagesOn(side, side.fromOf(message), side.toOf(message), block);
  return all.find((it) => isRange(side, it, block, side.countOf(send))) === message;
}

/** What parse() reads back as the same target. */
export function targetText(side: Side, target: Target): string {
  switch (target.kind) {
    case "node":
      return `node ${target.node}`;
    case "block":
      return `block ${target.block}`;
    case "round":
      return `round ${target.round}`;
    case "op":
      return opText(side, target.op);
    case "link":
      return linkText(side, target.channel);
    case "entry":
      return `${target.engine} ${target.node} queue ${target.queue} entry ${target.index}`;
    case "message":
      // The second of two messages that look alike is named by its send, as credits are.
      return isFirst(side, target.message)
        ? messageText(side, target.message)
        : opText(side, side.send[target.message]!);
  }
}

export function sameTarget(a: Target | null, b: Target | null): boolean {
  return a === b || (a !== null && b !== null && JSON.stringify(a) === JSON.stringify(b));
}

function checkNode(side: Side, node: number): void {
  const { nodes } = side.header;
  if (node >= nodes) {
    throw new Error(`there is no node ${node}, the nodes are 0 to ${nodes - 1}`);
  }
}

function checkBlock(side: Side, block: number): void {
  const { blocks } = side.header;
  if (block >= blocks) {
    throw new Error(`there is no block ${block}, the blocks are 0 to ${blocks - 1}`);
  }
}

function findOp(side: Side, index: number, node: number, id: number): Target {
  checkNode(side, node);
  const ops = side.opCount[node]!;
  if (ops === 0) throw new Error(`node ${node} has no ops`);
  if (id >= ops) throw new Error(`node ${node} has no op ${id}, its ops are 0 to ${ops - 1}`);
  return { side: index, kind: "op", op: side.opBegin[node]! + id };
}

/** The messages from one node to another with `block`, in the order of the channel. */
function messagesOn(side: Side, from: number, to: number, block: number): number[] {
  const indices = indicesOf(side);
  const [begin, end] = indices.receives(to, block);
  const { list } = indices.receivesByBlock;
  return Array.from(list.subarray(begin, end), (op) => side.messageOf[op]!).filter(
    (message) => side.fromOf(message) === from,
  );
}

/** Whether a message has these blocks and no others. */
function isRange(side: Side, message: number, block: number, blocks: number): boolean {
  const send = side.send[message]!;
  return side.block[send] === block && side.countOf(send) === blocks;
}

/** `last`: of a range, or `block`. */
function findMessage(
  side: Side,
  index: number,
  from: number,
  to: number,
  block: number,
  last: number,
): Target {
  checkNode(side, from);
  checkNode(side, to);
  checkBlock(side, block);
  checkBlock(side, last);
  if (last < block) throw new Error(`blocks ${block} to ${last} are none`);
  const found = messagesOn(side, from, to, block);
  const exact = found.find((it) => isRange(side, it, block, last - block + 1));
  // Any block of a message names it.
  const message = exact ?? (last === block ? found[0] : undefined);
  if (message !== undefined) return { side: index, kind: "message", message };
  const what = last === block ? `block ${block}` : `blocks ${block}-${last}`;
  const [begin, end] = indicesOf(side).receives(to, block);
  if (side.isMulticast && to === side.root)
    throw new Error(`node ${to} is the root, which has every block from the start`);
  if (begin === end) throw new Error(`node ${to} is sent nothing of block ${block}`);
  const first = indicesOf(side).arrival(to, block);
  throw new Error(
    end - begin === 1
      ? `node ${to} gets block ${block} from node ${side.fromOf(first)}: ${messageText(side, first)}`
      : `node ${from} sends node ${to} no message of ${what}; the first that comes is ` +
          messageText(side, first),
  );
}

function findLink(side: Side, index: number, from: number, to: number, lane: number): Target {
  checkNode(side, from);
  checkNode(side, to);
  const all = indicesOf(side).channels.get(from * side.header.nodes + to) ?? [];
  const channel = all.find((it) => side.lane[it] === lane);
  if (channel !== undefined) return { side: index, kind: "link", channel };
  const what = lane === CREDIT_LANE ? "credit" : "block";
  throw new Error(`node ${from} sends no ${what} to node ${to}`);
}

/** Throws an Error that says what is wrong. */
export function parseTarget(side: Side, index: number, text: string): Target {
  const clean = text.trim().toLowerCase().replace(/\s+/g, " ");
  const match = (pattern: RegExp): number[] | null => {
    const found = pattern.exec(clean);
    return found ? found.slice(1).map(Number) : null;
  };
  let n: number[] | null;
  if ((n = match(/^(?:node |n)?(\d{1,9})$/))) {
    checkNode(side, n[0]!);
    return { side: index, kind: "node", node: n[0]! };
  }
  if ((n = match(/^(?:block |b|:)(\d{1,9})$/))) {
    checkBlock(side, n[0]!);
    return { side: index, kind: "block", block: n[0]! };
  }
  if ((n = match(/^(?:round |r)(\d{1,9})$/))) {
    const { rounds } = side.header;
    if (rounds === 0) throw new Error("the plan has no rounds");
    if (n[0]! >= rounds) {
      throw new Error(`there is no round ${n[0]}, the rounds are 0 to ${rounds - 1}`);
    }
    return { side: index, kind: "round", round: n[0]! };
  }
  if ((n = match(/^(\d{1,9}) ?\/ ?(\d{1,9})$/))) return findOp(side, index, n[0]!, n[1]!);
  if ((n = match(/^node (\d{1,9}) op (\d{1,9})$/))) return findOp(side, index, n[0]!, n[1]!);
  if ((n = match(/^(\d{1,9}) ?-?> ?(\d{1,9}) ?: ?(\d{1,9})$/))) {
    return findMessage(side, index, n[0]!, n[1]!, n[2]!, n[2]!);
  }
  if ((n = match(/^(\d{1,9}) ?-?> ?(\d{1,9}) ?: ?(\d{1,9}) ?- ?(\d{1,9})$/))) {
    return findMessage(side, index, n[0]!, n[1]!, n[2]!, n[3]!);
  }
  if ((n = match(/^(\d{1,9}) ?-?> ?(\d{1,9})$/))) return findLink(side, index, n[0]!, n[1]!, 0);
  if ((n = match(/^credit (\d{1,9}) ?-?> ?(\d{1,9})$/))) {
    return findLink(side, index, n[0]!, n[1]!, CREDIT_LANE);
  }
  const entry = /^(\w+) (\d{1,9}) queue (\d{1,6}) entry (\d{1,9})$/.exec(clean);
  if (entry) {
    const [node, queue, at] = entry.slice(2).map(Number) as [number, number, number];
    const found = side.queues.find(entry[1]!, node);
    if (!found?.queues[queue]?.entries[at]) throw new Error(`there is no ${clean}`);
    return { side: index, kind: "entry", engine: entry[1]!, node, queue, index: at };
  }
  throw new Error(
    `'${text.trim().slice(0, 40)}' is none of: node 5, block 12, round 4, ` +
      "5/13 (op 13 of node 5), 3>2:7 (block 7 from 3 to 2), 3>2 (a channel)",
  );
}
