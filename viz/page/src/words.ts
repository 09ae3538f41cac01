// SPDX-License-Identifier: Apache-2.0
//
// The sentences of `prepost explain`, as lines of pieces that can be clicked. The text of the lines
// is that of the command, to the byte, but for its two last lines on times.
import { indicesOf } from "./indices";
import { NONE, Side } from "./model";
import { ChainStep, WaitKind, chainOf, waitedBy, waitsFor } from "./reasons";
import { summarise } from "./summary";
import { Line, Piece, Target, count, messageText } from "./targets";
import { SameValues, contributionsIn, expressionText, versionAtEnd, versionBefore } from "./values";

// What a list in text shows at most; a long chain shows its two ends.
const WAITS_MAX = 20;
const PEERS_MAX = 12;
const CHAIN_HEAD = 20;
const CHAIN_TAIL = 10;

/** "nodes 0 to 7", "nodes 0, 3, 6", "node 2". */
function nodesText(nodes: number[]): string {
  if (nodes.length === 0) return "no node";
  if (nodes.length === 1) return `node ${nodes[0]}`;
  const [first, last] = [nodes[0]!, nodes[nodes.length - 1]!];
  if (last - first + 1 === nodes.length) return `nodes ${first} to ${last}`;
  const more = nodes.length > PEERS_MAX ? ` and ${nodes.length - PEERS_MAX} more` : "";
  return `nodes ${nodes.slice(0, PEERS_MAX).join(", ")}${more}`;
}

export class Words {
  constructor(
    private readonly side: Side,
    private readonly index: number,
  ) {}

  /** "node 5 op 7 (recv 1>5:3), round 3", the first part a link. */
  op(op: number): Line {
    const { side } = this;
    const channel = side.channel[op]!;
    const block = side.block[op]!;
    const kind = side.isSend[op] ? "send" : side.isCombine(op) ? "combine" : "recv";
    let route = `${side.from[channel]}>${side.to[channel]}`;
    if (block !== NONE) route += `:${side.blocksText(op)}`;
    const text =
      `node ${side.nodeOf(op)} op ${side.idOf(op)} ` +
      `(${kind} ${block === NONE ? "credit " : ""}${route})`;
    return [{ text, target: { side: this.index, kind: "op", op } }, `, round ${side.round[op]}`];
  }

  message(message: number): Piece {
    const target: Target = { side: this.index, kind: "message", message };
    return { text: messageText(this.side, message), target };
  }

  /** "block 3", "blocks 3 to 5". */
  private blocks(op: number): string {
    const [first, count] = [this.side.block[op]!, this.side.countOf(op)];
    return count === 1 ? `block ${first}` : `blocks ${first} to ${first + count - 1}`;
  }

  /** What must happen before, as a sentence without its end. */
  needed(kind: WaitKind, on: number): string {
    const { side } = this;
    const { send_window: sendWindow, ready } = side.header;
    switch (kind) {
      case WaitKind.Transfer:
        return "its sender must have started";
      case WaitKind.Data:
        return `${this.blocks(on)} must have ${side.isCombine(on) ? "been combined" : "arrived"}`;
      case WaitKind.CombineOrder:
        return "the one before it on the channel must have been combined";
      case WaitKind.Left:
      case WaitKind.Scratch:
        return `${this.blocks(on)} must be with node ${side.peerOf(on)}`;
      case WaitKind.SendWindow:
        return (
          `send window ${sendWindow}: ${this.blocks(on)} must be with node ` + `${side.peerOf(on)}`
        );
      case WaitKind.ChannelOrder:
        return "the one before it on the channel must have left";
      case WaitKind.ReceiveWindow:
        return (
          `receive window ${ready.window}: ${this.blocks(on)} must have ` +
          `${side.isCombine(on) ? "been combined" : "arrived"}`
        );
      case WaitKind.Credit:
        return `node ${side.peerOf(on)} must have posted the receive and said so`;
      case WaitKind.After:
        return "the plan's `after` names it";
      case WaitKind.DeliveryOrder:
        return "the one before it on the channel must have arrived";
      case WaitKind.Granted:
        return "the receive that it grants must be posted";
      case WaitKind.Posted:
        return "its receive must be posted";
      case WaitKind.Arrived:
        return "it must have arrived";
      case WaitKind.PostOrder:
        return "the receive before it on the channel must be posted";
      case WaitKind.Barrier:
        return "all receives everywhere must be posted";
    }
  }

  /** What waits, and for what of it. */
  waiting(kind: WaitKind, op: number): string {
    const { side } = this;
    const { send_window: sendWindow, ready } = side.header;
    switch (kind) {
      case WaitKind.Transfer:
        return "its receive";
      case WaitKind.Data:
        return side.isCombine(op)
          ? "combines more with it"
          : `passes the block on to node ${side.peerOf(op)}`;
      case WaitKind.CombineOrder:
        return "the next combine of the channel";
      case WaitKind.Left:
        return "changes what has been sent";
      case WaitKind.Scratch:
        return "the credit for the scratch buffer";
      case WaitKind.SendWindow:
        return `send window ${sendWindow}: the next block`;
      case WaitKind.ChannelOrder:
      case WaitKind.DeliveryOrder:
        return "the next one on the channel";
      case WaitKind.ReceiveWindow:
        return `receive window ${ready.window}: the next credit`;
      case WaitKind.Credit:
        return "the block that it lets go";
      case WaitKind.Granted:
        return "the credit that grants it";
      case WaitKind.After:
      case WaitKind.Posted:
      case WaitKind.Arrived:
      case WaitKind.PostOrder:
      case WaitKind.Barrier:
        return "its `after` names this op";
    }
  }

  private waits(op: number): Line[] {
    const lines: Line[] = [];
    const rest = (total: number) => {
      if (total > WAITS_MAX) lines.push([`  ... and ${total - WAITS_MAX} more`]);
    };
    const before = waitsFor(this.side, op);
    lines.push([before.length === 0 ? "waits for nothing" : "waits for"]);
    for (const wait of before.slice(0, WAITS_MAX)) {
      const line: Line = [`  until ${wait.until}: ${this.needed(wait.kind, wait.op)}`];
      if (wait.op !== NONE) line.push(": ", ...this.op(wait.op));
      if (wait.isImplied) line.push(" (follows from the rest)");
      if (wait.isCause && wait.until !== 0) line.push("  <- nothing takes longer");
      lines.push(line);
    }
    rest(before.length);
    const after = waitedBy(this.side, op);
    lines.push([after.length === 0 ? "what waits for it: nothing" : "what waits for it"]);
    for (const wait of after.slice(0, WAITS_MAX)) {
      lines.push([`  ${this.waiting(wait.kind, wait.op)}: `, ...this.op(wait.op)]);
    }
    rest(after.length);
    return lines;
  }

  /** An op: its times, what it waits for and what waits for it. */
  opLines(op: number): Line[] {
    const { side } = this;
    const message = side.messageOf[op]!;
    const block = side.block[op]!;
    const size = block === NONE ? "no bytes" : count(side.bytesOf(op), "byte");
    const start = side.start[message]!;
    const slack = side.slack[message]!;
    const tight =
      slack === 0 ? "critical: no slack" : `slack ${slack}: may start at ${start + slack}`;
    return [
      [...this.op(op), `, ${size}`],
      [`starts at ${start}, arrives at ${side.delivery[message]}; ${tight}`],
      ...this.valueLines(op),
      ...this.waits(op),
    ];
  }

  /** What an op carries, or has left at its node, of the first of its blocks. */
  private valueLines(op: number): Line[] {
    const { side } = this;
    const block = side.block[op]!;
    if (block === NONE || !side.combines) return [];
    const version = side.isSend[op] ? versionBefore(side, side.nodeOf(op), block, op)! : op;
    return [
      [
        `block ${block} is then ${expressionText(side, block, version)}: ` +
          `${contributionsIn(side, block, version)} of ${side.head.collective!.members} contributions`,
      ],
    ];
  }

  chainLines(chain: ChainStep[]): Line[] {
    const { side } = this;
    if (chain.length === 0) return [];
    const credits = chain.filter((step) => side.isCredit(step.message)).length;
    const lines: Line[] = [
      [
        `chain back to the ${side.isMulticast ? "root" : "start"}: ` +
          `${count(chain.length - credits, "block")}, ${count(credits, "credit")}`,
      ],
    ];
    const width = String(chain.length).length;
    for (let i = 0; i < chain.length; ++i) {
      if (i === CHAIN_HEAD && chain.length > CHAIN_HEAD + CHAIN_TAIL) {
        i = chain.length - CHAIN_TAIL;
        lines.push([`  ... ${i - CHAIN_HEAD} more`]);
      }
      const step = chain[i]!;
      const next = chain[i + 1];
      const on = next ? side.opAt(next.message, side.fromOf(step.message)) : NONE;
      const why = step.cause === null ? "waits for nothing" : this.needed(step.cause, on);
      lines.push([
        `  ${String(i + 1).padStart(width)}. `,
        this.message(step.message),
        `, round ${side.roundOf(step.message)}, starts at ${side.start[step.message]}: ${why}`,
      ]);
    }
    return lines;
  }

  /** The summary of a node, without its chain. */
  nodeLines(node: number): Line[] {
    const { side } = this;
    const it = summarise(side, node);
    const root = node === side.root ? ", the root" : "";
    const lines: Line[] = [
      [
        { text: `node ${node}`, target: { side: this.index, kind: "node", node } },
        `${root}: ${count(side.opCount[node]!, "op")}; ${count(it.blocksIn, "block")} in, ` +
          `${it.blocksOut} out; ${count(it.creditsIn, "credit")} in, ${it.creditsOut} out`,
      ],
    ];
    const peers = (label: string, list: { peer: number; blocks: number }[]) => {
      if (list.length === 0) return;
      const line: Line = [`  ${label} nodes `];
      list.slice(0, PEERS_MAX).forEach(({ peer, blocks }, i) => {
        line.push(
          i === 0 ? "" : ", ",
          { text: String(peer), target: { side: this.index, kind: "node", node: peer } },
          ` (${count(blocks, "block")})`,
        );
      });
      if (list.length > PEERS_MAX) line.push(`, and ${list.length - PEERS_MAX} more`);
      lines.push(line);
    };
    peers("receives from", it.from);
    peers("sends to", it.to);
    if (it.last !== NONE) {
      lines.push([
        "  first block ",
        this.message(it.first),
        ` arrives at ${side.delivery[it.first]}, last block `,
        this.message(it.last),
        ` at ${side.delivery[it.last]}`,
      ]);
    }
    const total = it.blocksIn + it.blocksOut;
    if (total === 0) return lines;
    const line: Line = [
      `  slack of its blocks: ${it.slackMin} to ${it.slackMax}; ` +
        `${it.critical.length} of ${total} are critical`,
    ];
    it.critical.slice(0, PEERS_MAX).forEach((op, i) => {
      line.push(i === 0 ? ": ops " : ", ", {
        text: String(side.idOf(op)),
        target: { side: this.index, kind: "op", op },
      });
    });
    if (it.critical.length > PEERS_MAX) line.push(", ...");
    lines.push(line);
    return lines;
  }

  /** What a node has at first, and must have at the end. */
  roleLines(node: number): Line[] {
    const { roles, combines } = this.side;
    const [has, wants] = [roles.hasText(node, PEERS_MAX), roles.wantsText(node, PEERS_MAX)];
    const blocks = (text: string) => (/^\d+$/.test(text) ? `block ${text}` : `blocks ${text}`);
    const first = combines ? "contributes at first to" : "has at first";
    return [
      [has === "" ? "has nothing at first" : `${first} ${blocks(has)}`],
      [
        wants === ""
          ? `need have nothing at the end${has === "" ? ": it helps the others" : ""}`
          : `must have at the end ${blocks(wants)}${combines ? ", combined" : ""}`,
      ],
    ];
  }

  /** What the command says on a block, without fingerprints: whose it is, for whom, made of what. */
  blockLines(block: number): Line[] {
    const { side } = this;
    const { parts, blocks_per_part: perPart, combine } = side.head.collective!;
    const size = side.blockBytes(block);
    const begin = (parts === 1 ? block : block % perPart) * side.header.block_bytes;
    const of = parts === 1 ? "the message" : `part ${Math.floor(block / perPart)}`;
    const from: number[] = [];
    const wanted: number[] = [];
    for (let node = 0; node < side.header.nodes; ++node) {
      if (side.roles.has(node, block)) from.push(node);
      if (side.roles.wants(node, block)) wanted.push(node);
    }
    const messages = indicesOf(side).messagesOf(block);
    const rounds = messages.map((it) => side.roundOf(it));
    const [first, last] = rounds.reduce(
      ([low, high], it) => [Math.min(low, it), Math.max(high, it)],
      [Infinity, 0],
    );
    const when = messages.length === 0 ? "" : ` in rounds ${first} to ${last}`;
    const bytes = size === 0 ? "" : `, ${begin} to ${begin + size - 1}`;
    const lines: Line[] = [
      [`block ${block}: ${count(size, "byte")}${bytes} of ${of}`],
      [
        `  from ${nodesText(from)}, for ${nodesText(wanted)}; ${count(messages.length, "message")}${when}`,
      ],
    ];
    if (!combine) return lines;
    const same = new SameValues(side, block);
    const byValue = new Map<number, number[]>();
    for (const node of wanted) {
      const value = same.of(versionAtEnd(side, node, block)!);
      const known = byValue.get(value);
      if (known) known.push(node);
      else byValue.set(value, [node]);
    }
    for (const nodes of byValue.values()) {
      const version = versionAtEnd(side, nodes[0]!, block)!;
      const contributions = contributionsIn(side, block, version);
      const members = side.head.collective!.members;
      lines.push([
        `  at ${nodesText(nodes)}: ${expressionText(side, block, version)}, of ` +
          count(contributions, "contribution") +
          (contributions > members ? ", some of them twice" : ""),
      ]);
    }
    return lines;
  }

  /** All that the command says on an op, a message or a node. */
  explain(target: Target): Line[] {
    const { side } = this;
    if (target.kind === "op") {
      return [
        ...this.opLines(target.op),
        [],
        ...this.chainLines(chainOf(side, side.messageOf[target.op]!)),
      ];
    }
    if (target.kind === "message") {
      return [
        ...this.opLines(side.send[target.message]!),
        [],
        ...this.opLines(side.recv[target.message]!),
        [],
        ...this.chainLines(chainOf(side, target.message)),
      ];
    }
    if (target.kind === "block" && side.head.collective) return this.blockLines(target.block);
    if (target.kind === "node") {
      const { last } = summarise(side, target.node);
      return [
        ...this.nodeLines(target.node),
        ...(last === NONE ? [] : this.chainLines(chainOf(side, last))),
      ];
    }
    return [];
  }
}
