// SPDX-License-Identifier: Apache-2.0
//
// Numbers of the page, for tests: what it holds, and what is so at the clock.
import { heldBy, onWire } from "./clock";
import { differenceOf } from "./diff";
import { WaitKind } from "./reasons";
import { gapsOf, postsOf } from "./run_bars";
import { Store } from "./store";

export function figuresOf(store: Store): unknown {
  const { clock } = store.state;
  const [a, b] = store.sides;
  const difference = b ? differenceOf(a!, b) : null;
  return {
    clock,
    // Of (sender, receiver, block, round), those that only one side has.
    different: difference && difference.only[0] + difference.only[1] + 2 * difference.otherRound,
    sides: store.sides.map((side) => {
      const held: number[] = [];
      for (let node = 0; node < side.header.nodes; ++node) held.push(heldBy(side, node, clock));
      const credits = side.block.reduce(
        (n, block, op) => n + (block < 0 && side.isSend[op] ? 1 : 0),
        0,
      );
      return {
        ops: side.ops,
        messages: side.messages,
        blocks: side.messages - credits,
        credits,
        channels: side.from.length,
        length: side.head.length,
        rounds: side.header.rounds,
        held,
        onWire: onWire(side, clock, 0).total,
        run: side.head.run && {
          executor: side.head.run.executor,
          duration: side.head.run.duration_ns,
          posts: postsOf(side).during,
          gaps: gapsOf(side).map((gap) => ({ ...gap, kind: WaitKind[gap.kind!] })),
        },
      };
    }),
  };
}
