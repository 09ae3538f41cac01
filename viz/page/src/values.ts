// SPDX-License-Identifier: Apache-2.0
//
// What a node has of a block at the clock, and how that was made. A version is what is there of a
// block after one of its receives, named by this op, or at first: the contribution of node n is
// -1 - n. The expressions of versions are those of `prepost explain`, made when they are asked for.
import { Phase, phaseOf } from "./clock";
import { indicesOf } from "./indices";
import { Side } from "./model";
import { Clock } from "./store";

/** Each is more than the one before. */
export enum Value {
  Nothing,
  Own, // what it has at first
  Partly, // more of it; or to pass on, as it need not have it
  Final, // what it must have
}

/** Linear in the receives of the block at the node. */
export function valueOf(side: Side, node: number, block: number, clock: Clock): Value {
  const { roles } = side;
  const [begin, end] = indicesOf(side).receives(node, block);
  const { list } = indicesOf(side).receivesByBlock;
  let done = 0;
  for (let i = begin; i < end; ++i) {
    if (phaseOf(side, side.messageOf[list[i]!]!, clock) === Phase.Done) ++done;
  }
  if (done === end - begin && roles.wants(node, block) && (done > 0 || roles.has(node, block)))
    return Value.Final;
  if (done > 0) return Value.Partly;
  return roles.has(node, block) ? Value.Own : Value.Nothing;
}

/** What it is called on this side. */
export function valueText(side: Side, value: Value): string {
  const combines = side.combines;
  switch (value) {
    case Value.Nothing:
      return "nothing";
    case Value.Own:
      return combines ? "its own contribution" : "there from the start";
    case Value.Partly:
      return combines ? "partly combined" : "there, to be passed on";
    case Value.Final:
      return "final";
  }
}

/** What `node` has of `block` before its op `op`; null: nothing. */
export function versionBefore(side: Side, node: number, block: number, op: number): number | null {
  const [begin, end] = indicesOf(side).receives(node, block);
  const { list } = indicesOf(side).receivesByBlock;
  let low = begin;
  let high = end;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle]! < op) low = middle + 1;
    else high = middle;
  }
  if (low > begin) return list[low - 1]!;
  return side.roles.has(node, block) ? -1 - node : null;
}

/** What it has of it at the end. */
export const versionAtEnd = (side: Side, node: number, block: number) =>
  versionBefore(side, node, block, side.ops);

/** What the receive `op` of `block` brought: a version of its sender's. */
function brought(side: Side, block: number, op: number): number {
  const send = side.send[side.messageOf[op]!]!;
  return versionBefore(side, side.nodeOf(send), block, send)!;
}

/** The version that is the same value and was a contribution, or combined. */
function madeBy(side: Side, block: number, version: number): number {
  let at = version;
  while (at >= 0 && !side.isCombine(at)) at = brought(side, block, at);
  return at;
}

const ownBefore = (side: Side, block: number, op: number) =>
  versionBefore(side, side.nodeOf(op), block, op)!;

/** How many contributions are in it. */
export function contributionsIn(side: Side, block: number, version: number): number {
  const known = new Map<number, number>();
  const open = [madeBy(side, block, version)];
  while (open.length > 0) {
    const top = open[open.length - 1]!;
    if (known.has(top)) {
      open.pop();
      continue;
    }
    if (top < 0) {
      known.set(top, 1);
      continue;
    }
    const operands = [ownBefore(side, block, top), brought(side, block, top)];
    const made = operands.map((it) => madeBy(side, block, it));
    const missing = made.filter((it) => !known.has(it));
    if (missing.length > 0) open.push(...missing);
    else
      known.set(
        top,
        made.reduce((sum, it) => sum + known.get(it)!, 0),
      );
  }
  return known.get(madeBy(side, block, version))!;
}

/**
 * Numbers of versions of a block: those of the same number were made of the same contributions in
 * the same order, but for operands that may be swapped. Linear in the versions that it is asked for.
 */
export class SameValues {
  private readonly ofVersion = new Map<number, number>();
  private readonly ofPair = new Map<string, number>();

  constructor(
    private readonly side: Side,
    private readonly block: number,
  ) {}

  of(version: number): number {
    const { side, block } = this;
    const isOrdered = side.head.collective?.combine?.op === "user_ordered";
    const open = [madeBy(side, block, version)];
    while (open.length > 0) {
      const top = open[open.length - 1]!;
      if (this.ofVersion.has(top)) {
        open.pop();
        continue;
      }
      if (top < 0) {
        this.ofVersion.set(top, top);
        continue;
      }
      const made = [ownBefore(side, block, top), brought(side, block, top)].map((it) =>
        madeBy(side, block, it),
      );
      const missing = made.filter((it) => !this.ofVersion.has(it));
      if (missing.length > 0) {
        open.push(...missing);
        continue;
      }
      const pair = made.map((it) => this.ofVersion.get(it)!);
      if (!isOrdered) pair.sort((a, b) => a - b);
      const key = pair.join();
      if (!this.ofPair.has(key)) this.ofPair.set(key, this.ofPair.size);
      this.ofVersion.set(top, this.ofPair.get(key)!);
    }
    return this.ofVersion.get(madeBy(side, block, version))!;
  }
}

const SIGNS: Record<string, string> = { sum: "+", prod: "*", and: "&", or: "|", xor: "^" };
const TEXT_MAX = 200;

/** "x0+(x3+x2)", "min(x0, x1)"; cut behind about 200 letters. */
export function expressionText(side: Side, block: number, version: number): string {
  const op = side.head.collective?.combine?.op ?? "";
  const sign = SIGNS[op] ?? "";
  const todo: { text?: string; version?: number; isInner?: boolean }[] = [{ version }];
  let text = "";
  while (todo.length > 0) {
    if (text.length >= TEXT_MAX) return `${text}...`;
    const part = todo.pop()!;
    if (part.text !== undefined) {
      text += part.text;
      continue;
    }
    const made = madeBy(side, block, part.version!);
    if (made < 0) {
      text += `x${-1 - made}`;
      continue;
    }
    const hasParentheses = sign !== "" && part.isInner === true;
    if (hasParentheses || sign === "") todo.push({ text: ")" });
    todo.push({ version: brought(side, block, made), isInner: true });
    todo.push({ text: sign === "" ? ", " : sign });
    todo.push({ version: ownBefore(side, block, made), isInner: true });
    if (hasParentheses) todo.push({ text: "(" });
    if (sign === "") todo.push({ text: `${op}(` });
  }
  return text;
}

/** A node's value that became an operand of another's. */
export interface Step {
  from: number;
  into: number;
  message: number;
}

/**
 * How the value that `node` has of `block` at the end was made: where it was combined last, and each
 * node whose value went into another's, behind the one that it went into.
 */
export function wayOf(side: Side, block: number, node: number): { madeAt: number; steps: Step[] } {
  const nodeOf = (version: number) => (version < 0 ? -1 - version : side.nodeOf(version));
  const end = versionAtEnd(side, node, block);
  if (end === null) return { madeAt: node, steps: [] };
  const top = madeBy(side, block, end);
  const seen = new Set([nodeOf(top)]);
  const steps: Step[] = [];
  const open = [top];
  while (open.length > 0) {
    let version = open.pop()!;
    while (version >= 0) {
      const other = brought(side, block, version);
      const from = nodeOf(other);
      if (!seen.has(from)) {
        seen.add(from);
        const message = side.messageOf[version]!;
        steps.push({ from, into: nodeOf(version), message });
        open.push(other);
      }
      if (!side.isCombine(version)) break;
      version = ownBefore(side, block, version);
    }
  }
  return { madeAt: nodeOf(top), steps };
}
