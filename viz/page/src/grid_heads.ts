// SPDX-License-Identifier: Apache-2.0
//
// The headings of a space-time grid: rounds above; at the left nodes, their racks, and what they
// hold at the clock.
import { ROW_LABEL_HALF, ROW_LABEL_MIN, niceStep } from "./camera";
import { expectedBy, heldBy, isOver } from "./clock";
import { GridFrame } from "./grid_frame";
import { BlockColors, currentTheme, drawBlockEdge } from "./palette";
import { Clock } from "./store";
import { Value, valueOf } from "./values";

/** By Value: of a segment, as a share of the bar. */
export const FILL_HEIGHTS = [0, 0.34, 0.67, 1] as const;

export class GridHeads extends GridFrame {
  protected drawColumnHeads(): void {
    const { context } = this.stage;
    const theme = currentTheme();
    const { x } = this.camera;
    const [round0, round1] = this.columns;
    context.fillStyle = theme.faint;
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.textAlign = "right";
    context.fillText("round", this.left - 8, this.top / 2);
    context.textAlign = "center";
    const step = niceStep(x.scale, 10 + 7 * String(round1).length);
    const { clock } = this.store.state;
    for (let round = Math.ceil(round0 / step) * step; round < round1; round += step) {
      const center = this.left + x.px(round + 0.5);
      if (center > this.left + x.size || center < this.left) continue;
      const half = context.measureText(String(round)).width / 2;
      context.fillText(String(round), Math.min(center, this.stage.width - half), this.top / 2);
    }
    if (clock.kind !== "rounds" || isOver(this.side, clock)) return;
    const center = this.left + x.px(clock.value + 0.5);
    if (center < this.left || center > this.left + x.size) return;
    const half = 4 + 3.6 * String(clock.value).length;
    context.fillStyle = theme.clock;
    context.fillRect(center - half, 3, 2 * half, this.top - 7);
    context.fillStyle = theme.paper;
    context.fillText(String(clock.value), center, this.top / 2);
  }

  protected drawRowHeads(): void {
    const { context } = this.stage;
    const { side } = this;
    const theme = currentTheme();
    const { y } = this.camera;
    const [row0, row1] = this.rows;
    context.save();
    context.beginPath();
    context.rect(0, this.top, this.left, y.size);
    context.clip();
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.textAlign = "right";
    const step = niceStep(y.scale, ROW_LABEL_MIN);
    const fills = Math.max(1, Math.floor(1 / y.scale));
    const bar = this.left - 8 - this.barWidth;
    const { clock } = this.store.state;
    for (let row = row0; row < row1; ++row) {
      const node = side.nodeAt[row]!;
      const middle = this.top + y.px(row + 0.5);
      if (row % step === 0) {
        context.fillStyle = node === side.root ? theme.ink : theme.faint;
        const root = node === side.root ? "root " : "";
        const label = this.top + y.whole(y.px(row + 0.5), ROW_LABEL_HALF);
        context.fillText(`${root}${node}`, bar - 6, label);
      }
      if (row % fills === 0) this.drawFill(node, bar, middle, clock);
    }
    if (side.head.racks) this.drawRackNames(row0, row1);
    context.restore();
  }

  /**
   * What the node holds: a segment per block, as high as its value is far, or where blocks are many,
   * the share. Of a collective that is the share of what the node receives.
   */
  private drawFill(node: number, left: number, middle: number, clock: Clock) {
    const { context } = this.stage;
    const { side } = this;
    const theme = currentTheme();
    const { blocks } = side.header;
    const share = this.cellHeight < 5 ? 1 : 0.5;
    const height = Math.max(1, Math.min(10, this.cellHeight * share));
    const top = middle - height / 2;
    context.fillStyle = theme.cell;
    context.fillRect(left, top, this.barWidth, height);
    if (blocks <= this.barWidth && height >= 3) {
      const colors = BlockColors.of(blocks);
      const part = this.barWidth / blocks;
      for (let block = 0; block < blocks; ++block) {
        const value = valueOf(side, node, block, clock);
        if (value === Value.Nothing) continue;
        context.fillStyle = colors.fill(block);
        const high = Math.max(1, (height * FILL_HEIGHTS[value]) | 0);
        const box = {
          left: left + block * part,
          top: top + height - high,
          width: part + 0.2,
          height: high,
        };
        context.fillRect(box.left, box.top, box.width, box.height);
        drawBlockEdge(context, colors, block, box);
      }
      return;
    }
    context.fillStyle = theme.faint;
    const expected = expectedBy(side, node);
    const held = expected === 0 ? 0 : heldBy(side, node, clock) / expected;
    context.fillRect(left, top, this.barWidth * held, height);
  }

  private drawRackNames(row0: number, row1: number): void {
    const { context } = this.stage;
    const { side } = this;
    const { y } = this.camera;
    const racks = side.head.racks!;
    context.fillStyle = currentTheme().ink;
    context.textAlign = "center";
    let row = row0;
    while (row < row1) {
      const rack = side.rackOf(side.nodeAt[row]!);
      let end = row + 1;
      while (end < row1 && side.rackOf(side.nodeAt[end]!) === rack) ++end;
      const name = racks.names[rack] ?? "";
      if ((end - row) * y.scale >= name.length * 7 + 4) {
        context.save();
        context.translate(9, this.top + y.px((row + end) / 2));
        context.rotate(-Math.PI / 2);
        context.fillText(name, 0, 0);
        context.restore();
      }
      row = end;
    }
  }
}
