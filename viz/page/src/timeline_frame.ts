// SPDX-License-Identifier: Apache-2.0
//
// Where the bars of a timeline are on its canvas, and what is at a point of it.
import { Axis, Camera } from "./camera";
import { messageOf, nodeOf } from "./marks";
import { NONE, Side } from "./model";
import { gapAt, gapsOf } from "./run_gaps";
import { Bars, barsOfLinks, barsOfNodes, lowerBound } from "./run_bars";
import { Store } from "./store";
import { Target } from "./targets";
import { Stage } from "./view";

export type Rows = "nodes" | "links";

export const AXIS = 20;

export type StripName = "posts" | "wakeups" | "gaps";

/** Over all nodes and time, above the rows. */
export interface Strip {
  name: StripName;
  label: string;
  top: number;
  height: number;
}

export interface Layer {
  bars: Bars;
  top: number; // within the row, in shares of it
  height: number;
  gaps: { top: number; height: number } | null; // before those that are sends
}

/** The bars of a row that are in view. */
export function barsInView(bars: Bars, row: number, x: Axis): [number, number] {
  const [begin, end] = [bars.begin[row]!, bars.begin[row + 1]!];
  const first = lowerBound(bars.endMax, begin, end, x.unit(0));
  return [first, lowerBound(bars.start, first, end, x.unit(x.size))];
}

export class TimelineFrame {
  left = 90;
  readonly strips: Strip[] = [];
  readonly top: number;
  rows: Rows = "nodes";
  protected channels: number[] = []; // by row, where rows are links
  protected rowOfChannel = new Map<number, number>();
  private layersMade = new Map<Rows, Layer[]>();

  constructor(
    protected readonly store: Store,
    readonly sideIndex: number,
    protected readonly stage: Stage,
    readonly camera: Camera,
  ) {
    let top = 2;
    const add = (name: StripName, label: string, height: number) => {
      this.strips.push({ name, label, top, height });
      top += height + 3;
    };
    add("posts", "posts", 15);
    // Of both sides or of none, so that they stand alike.
    const isKnown = store.sides.some((it) =>
      it.head.run?.hosts?.some((host) => host.wakeups_known !== null),
    );
    if (isKnown) add("wakeups", "wake-ups", 15);
    add("gaps", "gaps", 20);
    this.top = top + AXIS;
  }

  get side(): Side {
    return this.store.sides[this.sideIndex]!;
  }
  protected get layers(): Layer[] {
    let layers = this.layersMade.get(this.rows);
    if (layers) return layers;
    const { side } = this;
    if (this.rows === "nodes") {
      layers = [
        { bars: barsOfNodes(side, false), top: 0.05, height: 0.43, gaps: null },
        {
          bars: barsOfNodes(side, true),
          top: 0.58,
          height: 0.25,
          gaps: { top: 0.5, height: 0.07 },
        },
      ];
    } else {
      const { bars, channels } = barsOfLinks(side);
      this.channels = channels;
      this.rowOfChannel = new Map(channels.map((channel, row) => [channel, row]));
      layers = [{ bars, top: 0.1, height: 0.68, gaps: { top: 0.82, height: 0.12 } }];
    }
    this.layersMade.set(this.rows, layers);
    return layers;
  }

  resize(height: number): void {
    this.measure();
    this.camera.resize(this.stage.width - this.left - 8, height - this.top - 4);
  }
  /** Tells its camera how much there is, and takes what room its headings need. */
  measure(): void {
    const { camera, side } = this;
    if (!side.hasRun) return;
    camera.x.length = this.store.timeShown;
    camera.x.fitMax = Infinity;
    camera.x.scaleMax = 20;
    camera.y.length = Math.max(1, this.layers[0]!.bars.rows);
    camera.y.fitMax = 40;
    camera.y.scaleMax = 80;
    const digits = String(side.header.nodes - 1).length;
    this.left =
      this.rows === "nodes" ? Math.max(68, 42 + digits * 8) : Math.max(68, 26 + 2 * digits * 8);
  }

  get rowCount(): number {
    return this.side.run ? Math.max(1, this.layers[0]!.bars.rows) : 1;
  }

  protected get visibleRows(): [number, number] {
    const { y } = this.camera;
    const end = Math.min(this.layers[0]!.bars.rows, Math.ceil(y.unit(y.size)));
    return [Math.max(0, Math.floor(y.unit(0))), end];
  }

  protected bar(layer: Layer, row: number, at: number) {
    const { x, y } = this.camera;
    const { bars } = layer;
    const trackHeight = (layer.height * y.scale) / bars.tracks[row]!;
    const left = x.px(bars.start[at]!);
    return {
      left,
      width: Math.max(0.75, x.px(bars.end[at]!) - left),
      top: y.px(row) + layer.top * y.scale + bars.track[at]! * trackHeight,
      height: trackHeight,
    };
  }

  protected rowsOf(message: number): number[] {
    const { side } = this;
    if (this.rows === "links") {
      const channel = side.channelOf[message]!;
      // A credit has the row of the blocks that it is for.
      return [
        this.rowOfChannel.get(side.isCredit(message) ? side.partner(channel) : channel) ?? NONE,
      ];
    }
    return [side.rowOf[side.fromOf(message)]!, side.rowOf[side.toOf(message)]!];
  }

  find(px: number, py: number): Target | null {
    const { side, camera, sideIndex } = this;
    if (!side.run) return null;
    const row = Math.floor(camera.y.unit(py - this.top));
    if (py < this.top || row < 0 || row >= this.layers[0]!.bars.rows) return null;
    if (px < this.left) {
      return this.rows === "nodes"
        ? { side: sideIndex, kind: "node", node: side.nodeAt[row]! }
        : { side: sideIndex, kind: "link", channel: this.channels[row]! };
    }
    for (const layer of this.layers) {
      const gap = this.findGap(layer, row, px - this.left, py - this.top);
      if (gap !== NONE) return { side: sideIndex, kind: "message", message: gap };
      const [first, end] = barsInView(layer.bars, row, camera.x);
      const at = lowerBound(layer.bars.endMax, first, end, camera.x.unit(px - this.left - 2));
      for (let i = at; i < Math.min(end, at + 200); ++i) {
        const box = this.bar(layer, row, i);
        if (px - this.left < box.left - 2 || px - this.left > box.left + box.width + 2) continue;
        if (py - this.top < box.top - 1 || py - this.top > box.top + box.height + 1) continue;
        return { side: sideIndex, kind: "message", message: layer.bars.message[i]! };
      }
    }
    return this.rows === "nodes"
      ? { side: sideIndex, kind: "node", node: side.nodeAt[row]! }
      : { side: sideIndex, kind: "link", channel: this.channels[row]! };
  }

  /** The message before whose send a gap is drawn there. */
  private findGap({ bars, gaps }: Layer, row: number, px: number, py: number): number {
    const { x, y } = this.camera;
    if (!gaps) return NONE;
    const top = y.px(row) + gaps.top * y.scale;
    if (py < top - 1 || py > top + gaps.height * y.scale + 1) return NONE;
    const all = gapsOf(this.side);
    const end = bars.begin[row + 1]!;
    // The first bars that start there or later: gaps end where they begin.
    const first = lowerBound(bars.start, bars.begin[row]!, end, x.unit(px - 2));
    for (let i = first; i < Math.min(end, first + 20); ++i) {
      const at = gapAt(this.side, bars.message[i]!);
      if (at !== NONE && x.px(all.from[at]!) <= px + 2 && px - 2 <= x.px(all.to[at]!)) {
        return bars.message[i]!;
      }
    }
    return NONE;
  }

  reveal(target: Target): void {
    if (target.side !== this.sideIndex || !this.side.run) return;
    const { side, camera } = this;
    const message = messageOf(side, target);
    if (message !== NONE) {
      void this.layers; // which says what rows there are
      const row = this.rowsOf(message).at(-1)!;
      if (row >= 0) camera.y.show(row, row + 1);
      const time = side.run!.completed[side.recv[message]!]!;
      if (!Number.isNaN(time)) camera.x.show(time, time);
    } else if (this.rows === "nodes") {
      const node = nodeOf(side, target);
      if (node !== NONE) camera.y.show(side.rowOf[node]!, side.rowOf[node]! + 1);
    }
  }
}
