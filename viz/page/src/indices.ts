// SPDX-License-Identifier: Apache-2.0
//
// Indices of a side, each made when first asked for: what arrives where, what happens in which
// round, what waits for an op. All are flat arrays; making one is linear in the plan.
import { NONE, Side } from "./model";

/** Lists in one array: those of i are list[begin[i]] .. list[begin[i + 1]]. */
export interface Lists {
  begin: Int32Array;
  list: Int32Array;
}

function group(
  count: number,
  items: Iterable<number> | Int32Array,
  keyOf: (item: number) => number,
  total: number,
): Lists {
  const begin = new Int32Array(count + 1);
  for (const item of items) ++begin[keyOf(item) + 1]!;
  for (let i = 0; i < count; ++i) begin[i + 1]! += begin[i]!;
  const next = begin.slice();
  const list = new Int32Array(total);
  for (const item of items) list[next[keyOf(item)]!++] = item;
  return { begin, list };
}

export class Indices {
  private cache = new Map<string, unknown>();

  constructor(private readonly side: Side) {}

  private once<T>(name: string, make: () => T): T {
    if (!this.cache.has(name)) this.cache.set(name, make());
    return this.cache.get(name) as T;
  }

  /** By block: the receives of it, in the order of ops, and so node after node. */
  get receivesByBlock(): Lists {
    return this.once("receivesByBlock", () => {
      const { side } = this;
      const { ops, isSend, block: firstOf } = side;
      const begin = new Int32Array(side.header.blocks + 1);
      for (let op = 0; op < ops; ++op) {
        const first = firstOf[op]!;
        if (isSend[op] || first === NONE) continue;
        const end = first + side.countOf(op);
        for (let block = first; block < end; ++block) ++begin[block + 1]!;
      }
      for (let block = 0; block < side.header.blocks; ++block) begin[block + 1]! += begin[block]!;
      const next = begin.slice();
      const list = new Int32Array(begin[side.header.blocks]!);
      for (let op = 0; op < ops; ++op) {
        const first = firstOf[op]!;
        if (isSend[op] || first === NONE) continue;
        const end = first + side.countOf(op);
        for (let block = first; block < end; ++block) list[next[block]!++] = op;
      }
      return { begin, list };
    });
  }
  /** Where in receivesByBlock those of `node` begin and end. */
  receives(node: number, block: number): [number, number] {
    const { begin, list } = this.receivesByBlock;
    const from = (op: number) => {
      let low = begin[block]!;
      let high = begin[block + 1]!;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (list[middle]! >= op) high = middle;
        else low = middle + 1;
      }
      return low;
    };
    const first = this.side.opBegin[node]!;
    return [from(first), from(first + this.side.opCount[node]!)];
  }
  /** The message by which `node` gets `block` first, or NONE. */
  arrival(node: number, block: number): number {
    const [begin, end] = this.receives(node, block);
    return begin === end ? NONE : this.side.messageOf[this.receivesByBlock.list[begin]!]!;
  }
  /** The message that brought one of the blocks of a send to its node last before it, or NONE. */
  arrivalBefore(send: number): number {
    const { side } = this;
    const node = side.nodeOf(send);
    const { list } = this.receivesByBlock;
    let last = NONE;
    for (let i = 0; i < side.countOf(send); ++i) {
      const [begin, end] = this.receives(node, side.block[send]! + i);
      for (let at = end - 1; at >= begin; --at) {
        if (list[at]! > send) continue;
        last = Math.max(last, list[at]!);
        break;
      }
    }
    return last === NONE ? NONE : side.messageOf[last]!;
  }
  /** The messages of a block. */
  messagesOf(block: number): number[] {
    const { begin, list } = this.receivesByBlock;
    return Array.from(
      list.subarray(begin[block]!, begin[block + 1]!),
      (op) => this.side.messageOf[op]!,
    );
  }
  /** Blocks in `received.list`[begin..end). */
  receivedBlocks(begin: number, end: number): number {
    if (this.side.countMax === 1) return end - begin;
    const before = this.once("receivedBlocks", () => this.blocksBefore(this.received.list));
    return before[end]! - before[begin]!;
  }
  /** The same of arrivalTimes. */
  arrivedBlocks(begin: number, end: number): number {
    if (this.side.countMax === 1) return end - begin;
    const before = this.once("arrivedBlocks", () => this.blocksBefore(this.arrivalTimes.list));
    return before[end]! - before[begin]!;
  }
  /** How many blocks the messages before each have. */
  private blocksBefore(messages: Int32Array): Float64Array {
    const { side } = this;
    const before = new Float64Array(messages.length + 1);
    messages.forEach((m, i) => (before[i + 1] = before[i]! + side.countOf(side.send[m]!)));
    return before;
  }

  /** All messages by round, credits too. */
  get byRound(): Lists {
    return this.once("byRound", () => {
      const { side } = this;
      const all = new Int32Array(side.messages);
      for (let m = 0; m < all.length; ++m) all[m] = m;
      return group(side.header.rounds, all, (m) => side.round[side.send[m]!]!, all.length);
    });
  }
  /** Block messages by round: those of byRound without credits. */
  get blocksByRound(): Int32Array {
    return this.once("blocksByRound", () =>
      this.byRound.list.filter((m) => this.side.block[this.side.send[m]!] !== NONE),
    );
  }
  /** By node: the blocks that it receives, by round. */
  get received(): Lists {
    return this.once("received", () => {
      const { side } = this;
      const list = this.blocksByRound;
      return group(side.header.nodes, list, (m) => side.to[side.channelOf[m]!]!, list.length);
    });
  }
  /** By node: the blocks that it sends, by round. */
  get sent(): Lists {
    return this.once("sent", () => {
      const { side } = this;
      const list = this.blocksByRound;
      return group(side.header.nodes, list, (m) => side.from[side.channelOf[m]!]!, list.length);
    });
  }
  /** Where the messages of `node` in `lists` from `round` on begin. */
  from(lists: Lists, node: number, round: number): number {
    let low = lists.begin[node]!;
    let high = lists.begin[node + 1]!;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.side.roundOf(lists.list[middle]!) >= round) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** By op: the ops of its node whose `after` names it. */
  get dependents(): Lists {
    return this.once("dependents", () => {
      const { side } = this;
      const begin = new Int32Array(side.ops + 1);
      for (let op = 0; op < side.ops; ++op) {
        for (let i = side.afterBegin[op]!; i < side.afterBegin[op + 1]!; ++i) {
          ++begin[op - side.after[i]! + 1]!;
        }
      }
      for (let op = 0; op < side.ops; ++op) begin[op + 1]! += begin[op]!;
      const next = begin.slice();
      const list = new Int32Array(side.after.length);
      for (let op = 0; op < side.ops; ++op) {
        for (let i = side.afterBegin[op]!; i < side.afterBegin[op + 1]!; ++i) {
          list[next[op - side.after[i]!]!++] = op;
        }
      }
      return { begin, list };
    });
  }

  /** The channels between two nodes, by from * nodes + to. */
  get channels(): Map<number, number[]> {
    return this.once("channels", () => {
      const out = new Map<number, number[]>();
      this.side.from.forEach((from, channel) => {
        const key = from * this.side.header.nodes + this.side.to[channel]!;
        const list = out.get(key);
        if (list) list.push(channel);
        else out.set(key, [channel]);
      });
      return out;
    });
  }

  // ---- Of a run -----------------------------------------------------------------------------

  /** Block messages whose arrival is known, by when they arrive; the longest time on the wire. */
  get arrived(): { messages: Int32Array; times: Float64Array; longest: number } {
    return this.once("arrived", () => {
      const { side } = this;
      const { completed: done, started } = side.run!;
      const messages = this.blocksByRound.filter((m) => !Number.isNaN(done[side.recv[m]!]!));
      const keys = Float64Array.from(messages, (m) => done[side.recv[m]!]!);
      const order = Uint32Array.from(messages, (_, i) => i).sort((a, b) => keys[a]! - keys[b]!);
      let longest = 0;
      messages.forEach((message, i) => {
        const start = started[side.send[message]!]!;
        if (keys[i]! - start > longest) longest = keys[i]! - start;
      });
      return {
        messages: Int32Array.from(order, (i) => messages[i]!),
        times: Float64Array.from(order, (i) => keys[i]!),
        longest,
      };
    });
  }
  /** Block messages that started and of whose arrival nothing is known. */
  get unfinished(): Int32Array {
    return this.once("unfinished", () => {
      const { completed, started } = this.side.run!;
      const { send, recv } = this.side;
      return this.blocksByRound.filter(
        (m) => Number.isNaN(completed[recv[m]!]!) && !Number.isNaN(started[send[m]!]!),
      );
    });
  }
  /** By node: when its messages of blocks arrived, sorted, and which they are. */
  get arrivalTimes(): { begin: Int32Array; times: Float64Array; list: Int32Array } {
    return this.once("arrivalTimes", () => {
      const { side } = this;
      const { messages } = this.arrived;
      const lists = group(
        side.header.nodes,
        messages,
        (m) => side.to[side.channelOf[m]!]!,
        messages.length,
      );
      const done = side.run!.completed;
      return {
        begin: lists.begin,
        times: Float64Array.from(lists.list, (m) => done[side.recv[m]!]!),
        list: lists.list,
      };
    });
  }
}

const made = new WeakMap<Side, Indices>();

export function indicesOf(side: Side): Indices {
  let indices = made.get(side);
  if (!indices) made.set(side, (indices = new Indices(side)));
  return indices;
}
