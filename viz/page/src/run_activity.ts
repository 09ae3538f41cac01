// SPDX-License-Identifier: Apache-2.0
//
// What hosts did in a run and when: ops that they posted and wake-ups, by node; and over all nodes
// how many there were, and how many sends were in a gap, in each part of the time.
import { Side } from "./model";
import { WaitKind } from "./reasons";
import { lowerBound } from "./run_bars";
import { gapSumsOf, gapsOf } from "./run_gaps";

const BINS = 16384; // over all of the time that is shown
const EXACT_MAX = 50000; // moments or gaps that are counted anew for what is in view

/** Moments during the transfer, by node: those of i are times[begin[i]] .. times[begin[i + 1]]. */
export interface Moments {
  begin: Int32Array;
  times: Float64Array;
  /** Ops that were posted before the transfer began. */
  before: number;
}

export interface Activity {
  posts: Moments;
  /** Null where nothing says when hosts woke up. */
  wakeups: Moments | null;
}

function momentsOf(side: Side, timesOf: (node: number) => Float64Array): Moments {
  const { nodes } = side.header;
  const begin = new Int32Array(nodes + 1);
  let total = 0;
  for (let node = 0; node < nodes; ++node) total += timesOf(node).length;
  const times = new Float64Array(total);
  let count = 0;
  let before = 0;
  for (let node = 0; node < nodes; ++node) {
    for (const time of timesOf(node)) {
      if (time > 0) times[count++] = time;
      else if (time <= 0) ++before; // not what is unknown
    }
    begin[node + 1] = count;
    times.subarray(begin[node]!, count).sort();
  }
  return { begin, times: times.slice(0, count), before };
}

const made = new WeakMap<Side, Activity>();

/** Its side has a run. */
export function activityOf(side: Side): Activity {
  let it = made.get(side);
  if (it) return it;
  const { posted, wakeups } = side.run!;
  it = {
    posts: momentsOf(side, (node) => {
      const begin = side.opBegin[node]!;
      return posted.subarray(begin, begin + side.opCount[node]!);
    }),
    wakeups: wakeups && momentsOf(side, (node) => wakeups[node] ?? new Float64Array(0)),
  };
  made.set(side, it);
  return it;
}

/** Counts over the whole run, for what is too much to count for each picture. */
class Binned {
  private readonly bins: Float64Array;

  constructor(
    private readonly until: number,
    add: (bin: (time: number) => number, bins: Float64Array) => void,
  ) {
    this.bins = new Float64Array(BINS);
    add((time) => Math.min(BINS - 1, Math.max(0, Math.floor((time / until) * BINS))), this.bins);
  }
  /** The sum, or of levels the mean, from `from` to `to`; of a part of a bin, its share. */
  over(from: number, to: number, isLevel: boolean): number {
    const scale = BINS / this.until;
    const first = Math.max(0, from * scale);
    const last = Math.min(BINS, to * scale);
    let sum = 0;
    for (let bin = Math.floor(first); bin < last; ++bin) {
      sum += this.bins[bin]! * (Math.min(last, bin + 1) - Math.max(first, bin));
    }
    return isLevel ? sum / ((to - from) * scale) : sum;
  }
}

/** In each of `count` parts of what is in view. */
export class ActivityCounts {
  private readonly binned = new Map<string, Binned>();

  /** `until`: the time that is shown at most, ns. */
  constructor(
    private readonly side: Side,
    private readonly until: number,
    private readonly exactMax = EXACT_MAX,
  ) {}

  /** Whether what it says of a part may be a share of a larger one. */
  get isRough(): boolean {
    const { posts, wakeups } = activityOf(this.side);
    return Math.max(posts.times.length, wakeups?.times.length ?? 0) > this.exactMax;
  }

  private once(name: string, add: ConstructorParameters<typeof Binned>[1]): Binned {
    let it = this.binned.get(name);
    if (!it) this.binned.set(name, (it = new Binned(this.until, add)));
    return it;
  }

  /** How many of the moments are in each part. */
  moments(name: "posts" | "wakeups", from: number, step: number, count: number): Float64Array {
    const out = new Float64Array(count);
    const { begin, times } = activityOf(this.side)[name]!;
    const to = from + step * count;
    if (times.length > this.exactMax && this.inView(begin, times, from, to) > this.exactMax) {
      const bins = this.once(name, (bin, into) => {
        for (const time of times) ++into[bin(time)]!;
      });
      return out.map((_, i) => bins.over(from + i * step, from + (i + 1) * step, false));
    }
    for (let node = 0; node + 1 < begin.length; ++node) {
      let at = lowerBound(times, begin[node]!, begin[node + 1]!, from);
      for (; at < begin[node + 1]! && times[at]! < to; ++at) {
        ++out[Math.min(count - 1, Math.floor((times[at]! - from) / step))]!;
      }
    }
    return out;
  }
  /** Counted only until it is too many. */
  private inView(begin: Int32Array, times: Float64Array, from: number, to: number): number {
    let sum = 0;
    for (let node = 0; node + 1 < begin.length; ++node) {
      const first = lowerBound(times, begin[node]!, begin[node + 1]!, from);
      sum += lowerBound(times, first, begin[node + 1]!, to) - first;
    }
    return sum;
  }

  /** By kind, in the order of the sums: how many sends are in a gap, in the mean of each part. */
  gaps(from: number, step: number, count: number): { kind: WaitKind; level: Float64Array }[] {
    const gaps = gapsOf(this.side);
    const isMany = gaps.op.length > this.exactMax;
    return gapSumsOf(this.side).map(({ kind }) => {
      const level = new Float64Array(count);
      if (isMany) {
        const bins = this.once(`gaps ${kind}`, (_, into) => {
          addLevels(this.side, kind, 0, this.until / BINS, BINS, into);
        });
        level.forEach((_, i) => {
          level[i] = bins.over(from + i * step, from + (i + 1) * step, true);
        });
      } else {
        addLevels(this.side, kind, from, step, count, level);
      }
      return { kind, level };
    });
  }
}

/** Adds to each part the share of it that each gap takes. */
function addLevels(
  side: Side,
  kind: WaitKind,
  begin: number,
  step: number,
  count: number,
  into: Float64Array,
): void {
  const { kind: kinds, from, to } = gapsOf(side);
  // Levels at whole parts as differences, and the shares of the first and the last.
  const change = new Float64Array(count + 1);
  for (let i = 0; i < kinds.length; ++i) {
    if (kinds[i] !== kind) continue;
    const first = Math.max(0, (from[i]! - begin) / step);
    const last = Math.min(count, (to[i]! - begin) / step);
    if (last <= first) continue;
    const [a, b] = [Math.floor(first), Math.min(count - 1, Math.floor(last))];
    if (a === b) {
      into[a]! += last - first;
      continue;
    }
    into[a]! += a + 1 - first;
    into[b]! += last - b;
    change[a + 1]! += 1;
    change[b]! -= 1;
  }
  let level = 0;
  for (let i = 0; i < count; ++i) {
    level += change[i]!;
    into[i]! += level;
  }
}

/** In words, from `from` to `to`: what a strip of them shows there. */
export function activityText(
  counts: ActivityCounts,
  side: Side,
  from: number,
  to: number,
  nameOf: (kind: WaitKind) => string,
): string {
  const step = to - from;
  const whole = (name: "posts" | "wakeups") => Math.round(counts.moments(name, from, step, 1)[0]!);
  const about = counts.isRough ? "about " : "";
  const lines = [`ops posted: ${about}${whole("posts")}`];
  if (activityOf(side).wakeups) lines.push(`wake-ups: ${about}${whole("wakeups")}`);
  const gaps = counts
    .gaps(from, step, 1)
    .filter(({ level }) => level[0]! >= 0.005)
    .map(({ kind, level }) => `${nameOf(kind)} ${level[0]!.toFixed(level[0]! < 10 ? 2 : 0)}`);
  lines.push(`sends in a gap: ${gaps.length > 0 ? gaps.join(", ") : "none"}`);
  return lines.join("\n");
}
