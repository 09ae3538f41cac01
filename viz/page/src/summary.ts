// SPDX-License-Identifier: Apache-2.0
//
// One node's part in a plan: whom it receives from and sends to, and how tight its times are.
import { NONE, Side } from "./model";

export interface PeerBlocks {
  peer: number;
  blocks: number;
}

export interface NodeSummary {
  blocksIn: number;
  blocksOut: number;
  creditsIn: number;
  creditsOut: number;
  from: PeerBlocks[]; // most blocks first, then by peer
  to: PeerBlocks[];
  critical: number[]; // ops of blocks without slack
  slackMin: number;
  slackMax: number;
  first: number; // the message that arrives first; NONE where nothing arrives
  last: number;
}

function sorted(blocks: Map<number, number>): PeerBlocks[] {
  return [...blocks]
    .map(([peer, count]) => ({ peer, blocks: count }))
    .sort((a, b) => b.blocks - a.blocks || a.peer - b.peer);
}

/** Linear in the node's ops. */
export function summarise(side: Side, node: number): NodeSummary {
  const from = new Map<number, number>();
  const to = new Map<number, number>();
  const out: NodeSummary = {
    blocksIn: 0,
    blocksOut: 0,
    creditsIn: 0,
    creditsOut: 0,
    from: [],
    to: [],
    critical: [],
    slackMin: Infinity,
    slackMax: 0,
    first: NONE,
    last: NONE,
  };
  const begin = side.opBegin[node]!;
  for (let op = begin; op < begin + side.opCount[node]!; ++op) {
    const isSend = side.isSend[op] === 1;
    if (side.block[op] === NONE) {
      ++out[isSend ? "creditsOut" : "creditsIn"];
      continue;
    }
    ++out[isSend ? "blocksOut" : "blocksIn"];
    const peers = isSend ? to : from;
    const peer = side.peerOf(op);
    peers.set(peer, (peers.get(peer) ?? 0) + 1);
    const message = side.messageOf[op]!;
    const slack = side.slack[message]!;
    out.slackMin = Math.min(out.slackMin, slack);
    out.slackMax = Math.max(out.slackMax, slack);
    if (slack === 0) out.critical.push(op);
    if (isSend) continue;
    const delivery = side.delivery[message]!;
    if (out.first === NONE || delivery < side.delivery[out.first]!) out.first = message;
    if (out.last === NONE || delivery >= side.delivery[out.last]!) out.last = message;
  }
  out.from = sorted(from);
  out.to = sorted(to);
  return out;
}
