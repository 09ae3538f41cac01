// SPDX-License-Identifier: Apache-2.0
//
// Numbers of the page, for tests: what it holds, and what is so at the clock.
import { heldBy, onWire } from "./clock";
import { differenceOf } from "./diff";
import { Side } from "./model";
import { WaitKind } from "./reasons";
import { ActivityCounts, activityOf } from "./run_activity";
import { gapSumsOf } from "./run_gaps";
import { Clock, Store } from "./store";
import { valueOf } from "./values";

const VALUES_MAX = 1 << 14;

/** How many times of each kind are known, and their sum, each op's with a weight of 1 to 97. */
function timesOf(side: Side): Record<string, [number, number]> {
  const { posted, started, completed } = side.run!;
  const of = (times: Float64Array): [number, number] => {
    let [count, sum] = [0, 0];
    times.forEach((time, op) => {
      if (Number.isNaN(time)) return;
      ++count;
      sum += time * ((op % 97) + 1);
    });
    return [count, sum];
  };
  return { posted: of(posted), started: of(started), completed: of(completed) };
}

/** What strips above a timeline show of all of the time, in 100 parts: moments, and ns in gaps. */
function stripsOf(store: Store, side: Side, exactMax?: number): Record<string, number> {
  const counts = new ActivityCounts(side, store.timeShown, exactMax);
  const step = store.timeShown / 100;
  const sum = (values: Float64Array) => values.reduce((all, it) => all + it, 0);
  return {
    posts: sum(counts.moments("posts", 0, step, 100)),
    wakeups: activityOf(side).wakeups ? sum(counts.moments("wakeups", 0, step, 100)) : 0,
    gaps: counts.gaps(0, step, 100).reduce((all, { level }) => all + step * sum(level), 0),
  };
}

function valuesOf(side: Side, clock: Clock): string[] {
  const { nodes, blocks } = side.header;
  const of = (node: number) =>
    Array.from({ length: blocks }, (_, block) => valueOf(side, node, block, clock)).join("");
  return Array.from({ length: nodes }, (_, node) => of(node));
}

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
        // Of small plans: by node, a digit for each block.
        values: side.header.nodes * side.header.blocks > VALUES_MAX ? null : valuesOf(side, clock),
        onWire: onWire(side, clock, 0).total,
        run: side.head.run && {
          executor: side.head.run.executor,
          duration: side.head.run.duration_ns,
          posts: activityOf(side).posts.times.length,
          wakeups: activityOf(side).wakeups?.times.length ?? null,
          strips: stripsOf(store, side),
          roughStrips: stripsOf(store, side, 0),
          step: side.head.run.step_ns,
          times: timesOf(side),
          gaps: gapSumsOf(side).map((gap) => ({ ...gap, kind: WaitKind[gap.kind] })),
        },
      };
    }),
  };
}
