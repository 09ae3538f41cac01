// SPDX-License-Identifier: Apache-2.0
//
// What two sides do differently: by message, whether the other side has the same one, in another
// round, or not at all. A message is the same by its sender, receiver and block.
import { indicesOf } from "./indices";
import { NONE, Side } from "./model";

export enum Differs {
  Same,
  Round,
  Only,
}

export interface Difference {
  comparable: boolean; // as many nodes and blocks, the same root
  of: [Uint8Array, Uint8Array]; // by message: Differs
  only: [number, number];
  otherRound: number;
  same: number;
}

export function differenceOf(a: Side, b: Side): Difference {
  const of: [Uint8Array, Uint8Array] = [new Uint8Array(a.messages), new Uint8Array(b.messages)];
  const out: Difference = { comparable: true, of, only: [0, 0], otherRound: 0, same: 0 };
  const { nodes, blocks, root } = a.header;
  if (nodes !== b.header.nodes || blocks !== b.header.blocks || root !== b.header.root) {
    return { ...out, comparable: false };
  }
  const [inA, inB] = [indicesOf(a).arrivals, indicesOf(b).arrivals];
  for (let i = 0; i < inA.length; ++i) {
    const [x, y] = [inA[i]!, inB[i]!];
    if (x === NONE && y === NONE) continue;
    if (x !== NONE && y !== NONE && a.fromOf(x) === b.fromOf(y)) {
      if (a.roundOf(x) === b.roundOf(y)) ++out.same;
      else {
        ++out.otherRound;
        of[0][x] = of[1][y] = Differs.Round;
      }
      continue;
    }
    if (x !== NONE) {
      of[0][x] = Differs.Only;
      ++out.only[0];
    }
    if (y !== NONE) {
      of[1][y] = Differs.Only;
      ++out.only[1];
    }
  }
  return out;
}
