// SPDX-License-Identifier: Apache-2.0
//
// What two sides do differently: by message, whether the other side has the same one, in another
// round, or not at all. A message is the same by its sender, receiver and blocks.
import { indicesOf } from "./indices";
import { NONE, Side } from "./model";

export enum Differs {
  Same,
  Round,
  Only,
}

export interface Difference {
  comparable: boolean; // the same collective, as many nodes and blocks, the same root
  of: [Uint8Array, Uint8Array]; // by message: Differs
  only: [number, number];
  otherRound: number;
  same: number;
}

export function differenceOf(a: Side, b: Side): Difference {
  const of: [Uint8Array, Uint8Array] = [new Uint8Array(a.messages), new Uint8Array(b.messages)];
  const out: Difference = { comparable: true, of, only: [0, 0], otherRound: 0, same: 0 };
  const { nodes, blocks } = a.header;
  const kind = ({ head }: Side) => head.collective?.kind ?? "multicast";
  if (
    nodes !== b.header.nodes ||
    blocks !== b.header.blocks ||
    a.root !== b.root ||
    kind(a) !== kind(b)
  )
    return { ...out, comparable: false };
  const met = new Uint8Array(b.messages); // of b; what looks alike is met in order
  const list = indicesOf(b).receivesByBlock.list;
  const alikeOf = (message: number): number => {
    const send = a.send[message]!;
    const block = a.block[send]!;
    const [begin, end] = indicesOf(b).receives(a.toOf(message), block);
    for (let i = begin; i < end; ++i) {
      const it = b.messageOf[list[i]!]!;
      const other = b.send[it]!;
      const isAlike = b.block[other] === block && b.countOf(other) === a.countOf(send);
      if (isAlike && !met[it] && b.fromOf(it) === a.fromOf(message)) return it;
    }
    return NONE;
  };
  for (let message = 0; message < a.messages; ++message) {
    if (a.isCredit(message)) continue;
    const other = alikeOf(message);
    if (other === NONE) {
      of[0][message] = Differs.Only;
      ++out.only[0];
      continue;
    }
    met[other] = 1;
    if (a.roundOf(message) === b.roundOf(other)) ++out.same;
    else {
      ++out.otherRound;
      of[0][message] = of[1][other] = Differs.Round;
    }
  }
  for (let message = 0; message < b.messages; ++message) {
    if (met[message] || b.isCredit(message)) continue;
    of[1][message] = Differs.Only;
    ++out.only[1];
  }
  return out;
}
