// SPDX-License-Identifier: Apache-2.0
//
// Side: one plan (and its run) as flat arrays: ops, channels, messages and credits. A message is
// the i-th send of a channel with its i-th receive; messages are numbered channel by channel. Ops
// are global indices; an op's id is its position in its node's program.
import { Columns } from "./decode";
import { QueueTable } from "./queue_table";
import { CollectiveHead, Roles, rangeText } from "./roles";
import { Run, decodeRun } from "./run_times";

export interface Header {
  algorithm: string;
  nodes: number;
  root: number; // of plans without one, who leads: see Side.root
  bytes: number;
  block_bytes: number;
  blocks: number;
  part_bytes?: number[]; // of each part, where they differ
  rounds: number;
  ports: number;
  send_window: number | null;
  ready: { mode: "barrier" | "channel" | "window" | "retry"; window: number };
}

export interface SideHead {
  label: string;
  headline: string;
  subline: string;
  header: Header;
  collective: CollectiveHead | null; // null: a plain multicast
  length: number;
  stats: Record<string, unknown> | null;
  racks: { word: string; names: string[]; of: number[] } | null; // word: "rack" or "site"
  run: {
    label: string;
    executor: string;
    detail: string;
    modelled: boolean;
    /** "completed", or why it failed. */
    outcome: string;
    duration_ns: number;
    /** Of blocks, and of how many of them it is known when they completed. */
    receives: number;
    receives_known: number;
    /** Of which nothing is known. */
    nodes_missing: number[];
    /** The last time that is known of an op: of a run that failed, later than its last arrival. */
    until_ns: number;
    /** The last wake-up that is known; 0: none is. */
    wakeups_until_ns: number;
    /** Times are multiples of it. */
    step_ns: number;
    hosts?: {
      node: number;
      posts: number;
      posts_during: number;
      wakeups: number;
      /** Of how many the time is known; null: the file says none. */
      wakeups_known: number | null;
      cpu_ns: number;
    }[];
  } | null;
  /** Of entries of queues; see QueueTable. */
  forms: string[];
  queues_note: string;
}

export const CREDIT_LANE = 1;
export const NONE = -1;

/** Prefix sums: `counts` become begins; the last entry is the total. */
function begins(counts: Int32Array): Int32Array {
  const begin = new Int32Array(counts.length + 1);
  for (let i = 0; i < counts.length; ++i) begin[i + 1] = begin[i]! + counts[i]!;
  return begin;
}

export class Side {
  readonly header: Header;
  readonly from: Int32Array;
  readonly to: Int32Array;
  readonly lane: Int32Array;
  /** By node: its ops are opBegin[node] .. opBegin[node] + opCount[node]. */
  readonly opBegin: Int32Array;
  readonly opCount: Int32Array;
  readonly channel: Int32Array;
  readonly block: Int32Array; // -1: a credit; of several blocks the first
  /** Blocks of each op; empty: one each. */
  private readonly counts: Int32Array;
  /** 1: a receive that combines; empty: none does. */
  private readonly combine: Uint8Array;
  /** Bytes of each block; empty: by the header. */
  private readonly bytes: Float64Array;
  readonly round: Int32Array;
  readonly afterBegin: Int32Array;
  readonly after: Int32Array;
  readonly grants: Int32Array;
  readonly ops: number;
  readonly isSend: Uint8Array;
  readonly messages: number;
  readonly channelBegin: Int32Array;
  readonly send: Int32Array;
  readonly recv: Int32Array;
  readonly messageOf: Int32Array;
  readonly channelOf: Int32Array; // by message
  readonly start: Int32Array; // by message, as the next two: model time
  readonly delivery: Int32Array;
  readonly slack: Int32Array;
  /** By message: when what it brought is there, combined where it is to be. */
  readonly ready: Int32Array;
  readonly roles: Roles;
  /** Whose message it is, or who gets it; NONE where no node is asked for by name. */
  readonly root: number;
  /** The most blocks of a message. */
  readonly countMax: number;
  readonly hasRun: boolean;
  readonly queues: QueueTable;
  /** Rows of pictures: nodes of a rack are together. */
  readonly nodeAt: Int32Array;
  readonly rowOf: Int32Array;
  private readonly nodes: Int32Array; // by program, with programBegin
  private readonly programBegin: Int32Array;
  private credits: { partner: Int32Array; granted: Float64Array } | null = null;

  private times: Run | null = null;

  constructor(
    readonly head: SideHead,
    private readonly columns: Columns,
    private readonly index: number,
  ) {
    const ints = (name: string) => columns.ints(`${index}.${name}`);
    this.header = head.header;
    this.from = ints("channel.from");
    this.to = ints("channel.to");
    this.lane = ints("channel.lane");
    this.nodes = ints("program.node");
    const counts = ints("program.ops");
    this.programBegin = begins(counts);
    this.opBegin = new Int32Array(head.header.nodes);
    this.opCount = new Int32Array(head.header.nodes);
    this.nodes.forEach((node, program) => {
      this.opBegin[node] = this.programBegin[program]!;
      this.opCount[node] = counts[program]!;
    });
    this.channel = ints("op.channel");
    this.block = ints("op.block");
    this.counts = ints("op.count");
    this.combine = Uint8Array.from(ints("op.combine"));
    this.bytes = columns.wide(`${index}.block.bytes`);
    this.roles = new Roles(head.header, head.collective, columns, `${index}.`);
    this.root = head.collective ? (head.collective.root ?? NONE) : head.header.root;
    this.countMax = this.counts.reduce((most, it) => Math.max(most, it), 1);
    this.round = ints("op.round");
    this.afterBegin = begins(ints("op.afters"));
    this.after = ints("after");
    this.grants = ints("op.grants");
    this.ops = this.channel.length;
    this.isSend = new Uint8Array(this.ops);

    const channels = this.from.length;
    const perChannel = new Int32Array(channels);
    this.nodes.forEach((node, program) => {
      const end = this.programBegin[program + 1]!;
      for (let op = this.programBegin[program]!; op < end; ++op) {
        const channel = this.channel[op]!;
        if (this.from[channel] !== node) continue;
        this.isSend[op] = 1;
        ++perChannel[channel]!;
      }
    });
    this.channelBegin = begins(perChannel);
    this.messages = this.channelBegin[channels]!;
    this.send = new Int32Array(this.messages).fill(NONE);
    this.recv = new Int32Array(this.messages).fill(NONE);
    this.messageOf = new Int32Array(this.ops);
    this.channelOf = new Int32Array(this.messages);
    this.start = new Int32Array(this.messages);
    this.delivery = new Int32Array(this.messages);
    this.slack = new Int32Array(this.messages);
    const start = ints("send.start");
    const delivery = ints("send.delivery");
    const slack = ints("send.slack");
    const combined = ints("send.combined");
    this.ready = combined.length > 0 ? new Int32Array(this.messages) : this.delivery;
    const nextSend = this.channelBegin.slice();
    const nextRecv = this.channelBegin.slice();
    let sends = 0;
    for (let op = 0; op < this.ops; ++op) {
      const channel = this.channel[op]!;
      if (this.isSend[op] === 0) {
        const message = nextRecv[channel]!++;
        this.recv[message] = op;
        this.messageOf[op] = message;
        continue;
      }
      const message = nextSend[channel]!++;
      this.send[message] = op;
      this.messageOf[op] = message;
      this.channelOf[message] = channel;
      this.start[message] = start[sends]!;
      this.delivery[message] = delivery[sends]!;
      this.slack[message] = slack[sends]!;
      if (combined.length > 0) this.ready[message] = combined[sends]!;
      ++sends;
    }
    this.hasRun = head.run !== null && columns.has(`${index}.run.completed`);
    this.queues = new QueueTable(columns, `${index}.queues.`, head.forms);
    const order = Array.from({ length: head.header.nodes }, (_, node) => node);
    const racks = head.racks;
    if (racks) order.sort((a, b) => racks.of[a]! - racks.of[b]! || a - b);
    this.nodeAt = Int32Array.from(order);
    this.rowOf = new Int32Array(order.length);
    order.forEach((node, row) => (this.rowOf[node] = row));
  }

  /** Its run's times, decoded when they are first asked for. */
  get run(): Run | null {
    if (this.hasRun && !this.times)
      this.times = decodeRun(this, this.columns, `${this.index}.run.`);
    return this.times;
  }

  /** Where the clock of its run ends, ns: all that is known of ops is before; 0: there is no run. */
  get duration(): number {
    const { duration_ns = 0, until_ns = 0 } = this.head.run ?? {};
    return this.hasRun ? Math.max(1, duration_ns, until_ns) : 0;
  }

  /** The node of an op. */
  nodeOf(op: number): number {
    const channel = this.channel[op]!;
    return this.isSend[op] ? this.from[channel]! : this.to[channel]!;
  }
  /** The other end of an op. */
  peerOf(op: number): number {
    const channel = this.channel[op]!;
    return this.isSend[op] ? this.to[channel]! : this.from[channel]!;
  }
  idOf(op: number): number {
    return op - this.opBegin[this.nodeOf(op)]!;
  }
  /** The op of `message` at `node`, one of its two ends. */
  opAt(message: number, node: number): number {
    return this.from[this.channelOf[message]!] === node ? this.send[message]! : this.recv[message]!;
  }
  isCredit(message: number): boolean {
    return this.block[this.send[message]!] === NONE;
  }
  /** The block of a message, of several the first. */
  blockOf(message: number): number {
    return this.block[this.send[message]!]!;
  }
  /** How many blocks an op has. */
  countOf(op: number): number {
    return this.counts.length > 0 ? this.counts[op]! : 1;
  }
  /** Whether an op has `block`. */
  hasBlock(op: number, block: number): boolean {
    const first = this.block[op]!;
    return first !== NONE && block >= first && block < first + this.countOf(op);
  }
  /** "3", "4-7": the blocks of an op. */
  blocksText(op: number): string {
    return rangeText(this.block[op]!, this.countOf(op));
  }
  /** Whether an op is a receive that is combined with what its node has. */
  isCombine(op: number): boolean {
    return this.combine.length > 0 && this.combine[op] === 1;
  }
  get combines(): boolean {
    return this.head.collective?.combine != null;
  }
  /** Whether the root has all at first, and all others must have it. */
  get isPlainMulticast(): boolean {
    return this.head.collective === null;
  }
  get isMulticast(): boolean {
    return this.head.collective === null || this.head.collective.kind === "multicast";
  }
  roundOf(message: number): number {
    return this.round[this.send[message]!]!;
  }
  fromOf(message: number): number {
    return this.from[this.channelOf[message]!]!;
  }
  toOf(message: number): number {
    return this.to[this.channelOf[message]!]!;
  }
  blockBytes(block: number): number {
    if (this.bytes.length > 0) return this.bytes[block]!;
    const begin = block * this.header.block_bytes;
    return Math.max(0, Math.min(this.header.block_bytes, this.header.bytes - begin));
  }
  /** Bytes of all blocks of an op. */
  bytesOf(op: number): number {
    let sum = 0;
    for (let i = 0; i < this.countOf(op); ++i) sum += this.blockBytes(this.block[op]! + i);
    return sum;
  }
  rackOf(node: number): number {
    return this.head.racks ? this.head.racks.of[node]! : 0;
  }
  crosses(message: number): boolean {
    return this.rackOf(this.fromOf(message)) !== this.rackOf(this.toOf(message));
  }

  /** The credit channel of a block channel, or the other way round; NONE where there is none. */
  partner(channel: number): number {
    return this.creditTable().partner[channel]!;
  }
  /** Receives that a credit and those before it on its channel grant. */
  grantedUpTo(message: number): number {
    return this.creditTable().granted[message]!;
  }
  /** The credit that grants the `position`-th receive of the partner of `channel`, or NONE. */
  creditFor(channel: number, position: number): number {
    const granted = this.creditTable().granted;
    let low = this.channelBegin[channel]!;
    const end = this.channelBegin[channel + 1]!;
    let high = end;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (granted[middle]! > position) high = middle;
      else low = middle + 1;
    }
    return low === end ? NONE : low;
  }

  private creditTable() {
    if (this.credits) return this.credits;
    const partner = new Int32Array(this.from.length).fill(NONE);
    const granted = new Float64Array(this.messages);
    const byEnds = new Map<number, number>();
    const key = (from: number, to: number) => from * this.header.nodes + to;
    this.lane.forEach((lane, channel) => {
      if (lane !== CREDIT_LANE) return;
      byEnds.set(key(this.from[channel]!, this.to[channel]!), channel);
      let total = 0;
      for (let m = this.channelBegin[channel]!; m < this.channelBegin[channel + 1]!; ++m) {
        total += this.grants[this.send[m]!] ?? 0;
        granted[m] = total;
      }
    });
    this.lane.forEach((lane, channel) => {
      if (lane === CREDIT_LANE) return;
      const credit = byEnds.get(key(this.to[channel]!, this.from[channel]!));
      if (credit === undefined) return;
      partner[channel] = credit;
      partner[credit] = channel;
    });
    this.credits = { partner, granted };
    return this.credits;
  }
}
