// SPDX-License-Identifier: Apache-2.0
//
// Where the cells of a space-time grid are on its canvas, and what is at a point of it.
import { Camera } from "./camera";
import { indicesOf } from "./indices";
import { messageOf } from "./marks";
import { NONE, Side } from "./model";
import { Store } from "./store";
import { Target } from "./targets";
import { Stage } from "./view";

/** Pixels of what a node holds. */
export const BAR_WIDTH = 48;

export class GridFrame {
  left = 90;
  readonly top = 24;
  protected barWidth = 0; // of what a node holds, at the left

  constructor(
    protected readonly store: Store,
    readonly sideIndex: number,
    protected readonly stage: Stage,
    readonly camera: Camera,
  ) {
    const { header } = this.side;
    camera.x.length = Math.max(1, header.rounds);
    camera.y.length = header.nodes;
    camera.x.fitMax = camera.x.scaleMax = this.wordsWidth;
    camera.y.fitMax = 54;
    camera.y.scaleMax = 64;
  }

  get side(): Side {
    return this.store.sides[this.sideIndex]!;
  }
  /** A cell that has room for words. */
  protected get wordsWidth(): number {
    const { header } = this.side;
    const range = this.side.countMax > 1 ? `-${header.blocks - 1}` : "";
    const plus = this.side.combines ? "+" : "";
    return 40 + 7 * `${plus}b from ${header.nodes - 1}${header.blocks - 1}${range}`.length;
  }

  resize(height: number): void {
    this.measure();
    this.camera.resize(this.stage.width - this.left - 8, height - this.top - 4);
  }
  /** Takes what room its headings need. */
  measure(): void {
    const { header } = this.side;
    const digits = String(header.nodes - 1).length;
    this.barWidth = header.rounds === 0 ? 0 : BAR_WIDTH;
    this.left = 24 + Math.max(digits * 8 + 34, 52) + this.barWidth;
  }

  get cellWidth(): number {
    return this.camera.x.scale;
  }
  get cellHeight(): number {
    return this.camera.y.scale;
  }

  protected get rows(): [number, number] {
    const { y } = this.camera;
    const end = Math.min(this.side.header.nodes, Math.ceil(y.unit(y.size)));
    return [Math.max(0, Math.floor(y.unit(0))), end];
  }
  protected get columns(): [number, number] {
    const { x } = this.camera;
    const end = Math.min(this.side.header.rounds, Math.ceil(x.unit(x.size)));
    return [Math.max(0, Math.floor(x.unit(0))), end];
  }

  /** The boxes of a cell, in pixels of the plot. */
  protected cell(row: number, round: number) {
    const { x, y } = this.camera;
    const gap = this.cellWidth > 12 && this.cellHeight > 12 ? 1 : 0.5;
    const left = x.px(round) + gap;
    const top = y.px(row) + gap;
    const width = this.cellWidth - 2 * gap;
    const height = this.cellHeight - 2 * gap;
    const inner = height > 14 ? 1 : 0;
    const above = Math.floor((height - 2 * inner) * 0.58);
    return {
      left,
      top,
      width,
      height,
      in: { left: left + inner, top: top + inner, width: width - 2 * inner, height: above },
      out: {
        left: left + inner,
        top: top + inner + above + inner,
        width: width - 2 * inner,
        height: height - 3 * inner - above,
      },
    };
  }

  /** The box of one of `count` moves of a cell. */
  protected part(isSend: boolean, row: number, round: number, index: number, count: number) {
    const cell = this.cell(row, round);
    const box = isSend ? cell.out : cell.in;
    const width = box.width / count;
    return { left: box.left + index * width, top: box.top, width, height: box.height };
  }

  protected boxOf(message: number, isSend: boolean) {
    const { side } = this;
    const row = side.rowOf[isSend ? side.fromOf(message) : side.toOf(message)]!;
    const cell = this.cell(row, side.roundOf(message));
    return this.cellHeight >= 12 ? (isSend ? cell.out : cell.in) : cell;
  }

  /** What is at a point of the plot, whose top is at 0. */
  find(px: number, py: number): Target | null {
    const { side, sideIndex } = this;
    if (side.header.rounds === 0) return null;
    const { x, y } = this.camera;
    const round = Math.floor(x.unit(px - this.left));
    const row = Math.floor(y.unit(py - this.top));
    const inRounds = px >= this.left && round >= 0 && round < side.header.rounds;
    const inRows = py >= this.top && row >= 0 && row < side.header.nodes;
    if (py < this.top) return inRounds ? { side: sideIndex, kind: "round", round } : null;
    if (!inRows) return null;
    const node = side.nodeAt[row]!;
    if (px < this.left) return { side: sideIndex, kind: "node", node };
    if (!inRounds) return null;
    const indices = indicesOf(side);
    const cell = this.cell(row, round);
    const below = py - this.top > cell.out.top;
    for (const isSend of below && this.cellHeight >= 4 ? [true, false] : [false, true]) {
      const lists = isSend ? indices.sent : indices.received;
      const begin = indices.from(lists, node, round);
      let end = begin;
      while (end < lists.begin[node + 1]! && side.roundOf(lists.list[end]!) === round) ++end;
      if (end === begin) continue;
      const share = (px - this.left - cell.left) / cell.width;
      const index = Math.min(end - begin - 1, Math.max(0, Math.floor(share * (end - begin))));
      return { side: sideIndex, kind: "message", message: lists.list[begin + index]! };
    }
    return { side: sideIndex, kind: "node", node };
  }

  /** Moves the camera so that the target is in view. */
  reveal(target: Target): void {
    const { side } = this;
    const { x, y } = this.camera;
    if (target.kind === "round") x.show(target.round, target.round + 1);
    if (target.kind === "node") y.show(side.rowOf[target.node]!, side.rowOf[target.node]! + 1);
    if (target.side !== this.sideIndex) return;
    const message = messageOf(side, target);
    if (message === NONE) return;
    const round = side.roundOf(message);
    x.show(round, round + 1);
    const rows = [side.rowOf[side.fromOf(message)]!, side.rowOf[side.toOf(message)]!];
    const [low, high] = [Math.min(...rows), Math.max(...rows) + 1];
    if ((high - low) * y.scale < y.size) y.show(low, high);
    else y.show(rows[1]!, rows[1]! + 1);
  }
}
