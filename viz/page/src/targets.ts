// SPDX-License-Identifier: Apache-2.0
//
// Target: a thing that can be pointed at, selected and searched for, and its text: "node 5",
// "block 12", "round 4", "5/13" (an op), "3>2:7" (a message), "3>2" (a channel).
import { indicesOf } from "./indices";
import { CREDIT_LANE, NONE, Side } from "./model";

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

/** "1>5:3" or "credit 5>1". */
export function messageText(side: Side, message: number): string {
  const ends = `${side.fromOf(message)}>${side.toOf(message)}`;
  const block = side.blockOf(message);
  return block === NONE ? `credit ${ends}` : `${ends}:${block}`;
}

export function linkText(side: Side, channel: number): string {
  const ends = `${side.from[channel]}>${side.to[channel]}`;
  return side.lane[channel] === CREDIT_LANE ? `credit ${ends}` : ends;
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
      return side.isCredit(target.message)
        ? opText(side, side.send[target.message]!)
        : messageText(side, target.message);
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

function findMessage(side: Side, index: number, from: number, to: number, block: number): Target {
  checkNode(side, from);
  checkNode(side, to);
  checkBlock(side, block);
  const message = indicesOf(side).arrival(to, block);
  if (message === NONE) {
    throw new Error(`node ${to} is the root, which has every block from the start`);
  }
  const sender = side.fromOf(message);
  if (sender !== from) {
    throw new Error(`node ${to} gets block ${block} from node ${sender}: ${sender}>${to}:${block}`);
  }
  return { side: index, kind: "message", message };
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
  if ((n = match(/^(?:block |b)(\d{1,9})$/))) {
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
    return findMessage(side, index, n[0]!, n[1]!, n[2]!);
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
