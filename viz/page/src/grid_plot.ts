// SPDX-License-Identifier: Apache-2.0
//
// The space-time grid of one side on a canvas: a row per node, a column per round; in a cell the
// blocks that the node receives above, without a corner where it combines them, and those that it
// sends below. Small cells come from an
// image made once; larger ones are drawn one by one, only those in view.
import { Phase, isOver, onWire, phaseOf, receivedBy } from "./clock";
import { passes } from "./filter";
import { GridHeads } from "./grid_heads";
import { indicesOf } from "./indices";
import { Mark, marksOn, messagesOf } from "./marks";
import { CREDIT_LANE, NONE } from "./model";
import { Overview, drawOverview } from "./overview";
import { BlockColors, CROSSING, currentTheme, cutRect, drawBlockEdge, drawRange } from "./palette";

const CELL_MIN = 6; // pixels; smaller cells come from the image

/** How pixels `from` to `to` of an image come to `drawn` pixels along one axis: smoothed where they
 * shrink, into `length` pixels, and then enlarged, but not smoothed, as one cell would run into the
 * next. */
function inTwoSteps(from: number, to: number, drawn: number) {
  if (drawn < to - from) {
    const length = Math.max(1, Math.round(drawn * window.devicePixelRatio));
    return { from, size: to - from, length, then: { from: 0, size: length } };
  }
  const first = Math.floor(from);
  const length = Math.max(1, Math.ceil(to) - first);
  return { from: first, size: length, length, then: { from: from - first, size: to - from } };
}

export class GridPlot extends GridHeads {
  /** Messages to dim besides those that the filter leaves out; null: none. */
  dims: ((message: number) => boolean) | null = null;
  private images = new Map<boolean, Overview>();
  private readonly shrunk = document.createElement("canvas");

  forgetImages(): void {
    this.images.clear();
  }

  private image(both: boolean): Overview {
    let image = this.images.get(both);
    if (!image) {
      image = drawOverview(this.side, this.store.state.filter, both, this.dims);
      this.images.set(both, image);
    }
    return image;
  }

  /** Draws with the plot's top at `y0` of the canvas. */
  draw(y0: number, height: number): void {
    const { context } = this.stage;
    context.save();
    context.beginPath();
    context.rect(0, y0, this.stage.width, height);
    context.clip();
    context.translate(0, y0);
    if (this.side.header.rounds === 0) this.drawNothing();
    else this.drawAll();
    context.restore();
  }

  /** Whether cells are drawn one by one. */
  private get isFine(): boolean {
    return this.cellWidth >= CELL_MIN && this.cellHeight >= CELL_MIN;
  }

  private drawNothing(): void {
    const { context } = this.stage;
    context.fillStyle = currentTheme().ink;
    context.font = "14px system-ui, sans-serif";
    context.fillText("One node: it has the whole message and nothing is sent.", 24, 48);
  }

  private drawAll(): void {
    const { context } = this.stage;
    const { camera, left, top } = this;
    const width = Math.min(camera.x.size, camera.x.px(this.side.header.rounds));
    const height = Math.min(camera.y.size, camera.y.px(this.side.header.nodes));
    context.save();
    context.beginPath();
    context.rect(left, top, camera.x.size, camera.y.size);
    context.clip();
    context.translate(left, top);
    if (this.isFine) this.drawCells();
    else this.drawImage(width, height);
    this.drawFilter(width, height);
    this.drawClock(width, height);
    this.drawRacks(width);
    this.drawMarks(width, height);
    context.restore();
    this.drawColumnHeads();
    this.drawRowHeads();
  }

  private drawImage(width: number, height: number): void {
    const { context } = this.stage;
    const { x, y } = this.camera;
    const image = this.image(y.scale >= 4);
    const { rounds, nodes } = this.side.header;
    const perColumn = image.canvas.width / rounds;
    const [x0, x1] = [Math.max(0, x.unit(0)), Math.min(rounds, x.unit(width))];
    const [y0, y1] = [Math.max(0, y.unit(0)), Math.min(nodes, y.unit(height))];
    const across = inTwoSteps(x0 * perColumn, x1 * perColumn, (x1 - x0) * x.scale);
    const down = inTwoSteps(y0 * image.perNode, y1 * image.perNode, (y1 - y0) * y.scale);
    this.shrunk.width = across.length;
    this.shrunk.height = down.length;
    const step = this.shrunk.getContext("2d")!;
    step.imageSmoothingQuality = "medium";
    step.drawImage(
      image.canvas,
      across.from,
      down.from,
      across.size,
      down.size,
      0,
      0,
      across.length,
      down.length,
    );
    context.imageSmoothingEnabled = false;
    context.drawImage(
      this.shrunk,
      across.then.from,
      down.then.from,
      across.then.size,
      down.then.size,
      x.px(x0),
      y.px(y0),
      (x1 - x0) * x.scale,
      (y1 - y0) * y.scale,
    );
  }

  private drawCells(): void {
    const { context } = this.stage;
    const { side } = this;
    const theme = currentTheme();
    const indices = indicesOf(side);
    const [row0, row1] = this.rows;
    const [round0, round1] = this.columns;
    const { clock } = this.store.state;
    for (let row = row0; row < row1; ++row) {
      const node = side.nodeAt[row]!;
      context.fillStyle = theme.cell;
      for (let round = round0; round < round1; ++round) {
        context.globalAlpha = clock.kind === "rounds" && round > clock.value ? 0.4 : 1;
        const cell = this.cell(row, round);
        context.fillRect(cell.left, cell.top, cell.width, cell.height);
      }
      context.globalAlpha = 1;
      for (const isSend of [false, true]) {
        const lists = isSend ? indices.sent : indices.received;
        const end = lists.begin[node + 1]!;
        let i = indices.from(lists, node, round0);
        while (i < end) {
          const round = side.roundOf(lists.list[i]!);
          if (round >= round1) break;
          let next = i + 1;
          while (next < end && side.roundOf(lists.list[next]!) === round) ++next;
          for (let k = i; k < next; ++k) {
            this.drawMove(lists.list[k]!, isSend, row, round, k - i, next - i);
          }
          i = next;
        }
      }
    }
  }

  /** `text` in the middle of a box behind `indent`, if there is room for it. */
  private write(
    box: ReturnType<GridPlot["part"]>,
    text: string,
    ink: string,
    indent: number,
  ): void {
    const { context } = this.stage;
    const size = Math.min(12, box.height - 1);
    if (size < 8.5 || box.width < text.length * size * 0.6 + 2 + indent) return;
    context.fillStyle = ink;
    context.font = `${size}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText(text, box.left + (box.width + indent) / 2, box.top + box.height / 2 + 0.5);
  }

  private drawMove(
    message: number,
    isSend: boolean,
    row: number,
    round: number,
    index: number,
    count: number,
  ): void {
    const { context } = this.stage;
    const { side } = this;
    const block = side.blockOf(message);
    const blocks = side.blocksText(side.send[message]!);
    const combines = !isSend && side.isCombine(side.recv[message]!);
    const colors = BlockColors.of(side.header.blocks);
    const box = this.part(isSend, row, round, index, count);
    const { clock, filter } = this.store.state;
    const isOut =
      !passes(
        filter,
        side.fromOf(message),
        side.toOf(message),
        block,
        round,
        side.countOf(side.send[message]!),
      ) ||
      (this.dims?.(message) ?? false);
    const alpha = isOut ? 0.12 : phaseOf(side, message, clock) === Phase.Waiting ? 0.25 : 1;
    context.globalAlpha = alpha;
    const words = box.width >= this.wordsWidth - 22 && box.height >= 14;
    const theme = currentTheme();
    let ink = colors.ink(block);
    if (isSend && words) {
      // a strip of its colour, so that sent and received differ in shape
      context.fillStyle = theme.paper;
      context.fillRect(box.left, box.top, box.width, box.height);
      context.fillStyle = colors.fill(block);
      context.fillRect(box.left, box.top, 7, box.height);
      ink = theme.ink;
      drawBlockEdge(context, colors, block, { ...box, width: 7 });
    } else {
      context.fillStyle = colors.fill(block);
      if (combines) {
        context.beginPath();
        cutRect(context, box);
        context.fill();
      } else {
        context.fillRect(box.left, box.top, box.width, box.height);
        drawBlockEdge(context, colors, block, box);
      }
    }
    const last = block + side.countOf(side.send[message]!) - 1;
    if (last > block && box.height >= 8) drawRange(context, colors, block, last, box);
    // What is pale has words that are not.
    context.globalAlpha = 1;
    if (alpha < 1) ink = theme.faint;
    const peer = isSend ? side.toOf(message) : side.fromOf(message);
    const plus = combines ? "+" : "";
    const text = words ? `${plus}b${blocks} ${isSend ? "to" : "from"} ${peer}` : plus + blocks;
    this.write(box, text, ink, isSend && words ? 6 : 0);
    context.globalAlpha = alpha;
    if (side.head.racks && side.crosses(message) && box.height >= 6) {
      context.strokeStyle = CROSSING;
      context.lineWidth = 1.5;
      context.setLineDash([3, 2]);
      context.strokeRect(box.left + 1, box.top + 1, box.width - 2, box.height - 2);
      context.setLineDash([]);
    }
    context.globalAlpha = 1;
  }

  private drawFilter(width: number, height: number): void {
    const { filter } = this.store.state;
    if (this.isFine) return;
    const { context } = this.stage;
    const { x } = this.camera;
    if (!filter.rounds) return;
    context.fillStyle = currentTheme().paper;
    context.globalAlpha = 0.7;
    const from = x.px(filter.rounds[0]);
    const to = x.px(filter.rounds[1] + 1);
    if (from > 0) context.fillRect(0, 0, from, height);
    if (to < width) context.fillRect(to, 0, width - to, height);
    context.globalAlpha = 1;
  }

  /** What has not happened yet is veiled, but cells, which are pale themselves; what is on the wire is marked. */
  private drawClock(width: number, height: number): void {
    const { context } = this.stage;
    const { side } = this;
    const { clock } = this.store.state;
    if (isOver(side, clock)) return;
    const theme = currentTheme();
    const { x, y } = this.camera;
    context.fillStyle = theme.paper;
    if (clock.kind === "rounds") {
      const from = Math.max(0, x.px(clock.value + 1));
      context.globalAlpha = 0.78;
      if (!this.isFine) context.fillRect(from, 0, Math.max(0, width - from), height);
      context.globalAlpha = 1;
      context.strokeStyle = theme.clock;
      context.lineWidth = 1.5;
      context.strokeRect(x.px(clock.value), -4, Math.max(1.5, x.scale), height + 8);
    } else if (!this.isFine) {
      this.veilByTime();
    }
    const wire = onWire(side, clock, 400);
    if (wire.total > 400) return;
    for (const message of wire.list) this.outline(message, theme.clock, 1.5);
    if (wire.total > 24 || y.scale < 12 || x.scale < 20) return;
    wire.list.forEach((message, i) =>
      this.arrow(message, theme.clock, (i + 0.5) / wire.list.length),
    );
  }

  /** In time the front is ragged: per row, from the round after the last one that has arrived. */
  private veilByTime(): void {
    const { context } = this.stage;
    const { side } = this;
    const { clock } = this.store.state;
    const { received } = indicesOf(side);
    const [row0, row1] = this.rows;
    context.globalAlpha = 0.78;
    for (let row = row0; row < row1; ++row) {
      const node = side.nodeAt[row]!;
      if (side.isPlainMulticast && node === side.root) continue;
      const at = received.begin[node]! + receivedBy(side, node, clock);
      if (at >= received.begin[node + 1]!) continue;
      const from = this.camera.x.px(side.roundOf(received.list[at]!));
      const top = Math.round(this.camera.y.px(row));
      const bottom = Math.round(this.camera.y.px(row + 1));
      context.fillRect(from, top, this.camera.x.size - from, bottom - top);
    }
    context.globalAlpha = 1;
  }

  private drawRacks(width: number): void {
    const { side } = this;
    if (!side.head.racks || this.cellHeight < 1.5) return;
    const { context } = this.stage;
    const [row0, row1] = this.rows;
    context.fillStyle = currentTheme().ink;
    for (let row = Math.max(1, row0); row < row1; ++row) {
      if (side.rackOf(side.nodeAt[row]!) === side.rackOf(side.nodeAt[row - 1]!)) continue;
      context.fillRect(0, Math.round(this.camera.y.px(row)) - 0.5, width, 1);
    }
  }

  // ---- Marks ----------------------------------------------------------------------------------

  private outline(message: number, color: string, lineWidth: number): void {
    const { context } = this.stage;
    const { block, send } = this.side;
    if (block[send[message]!] === NONE) return;
    context.strokeStyle = color;
    context.lineWidth = lineWidth;
    for (const isSend of [false, true]) {
      const box = this.boxOf(message, isSend);
      const grow = lineWidth / 2 + (this.cellWidth < 4 ? 1.5 : 0);
      context.strokeRect(
        box.left - grow,
        box.top - grow,
        box.width + 2 * grow,
        box.height + 2 * grow,
      );
    }
  }

  /** From the sent block to the received one, at `share` of the cell's width. */
  private arrow(message: number, color: string, share = 0.5): void {
    const { context } = this.stage;
    const from = this.boxOf(message, true);
    const to = this.boxOf(message, false);
    const up = to.top < from.top;
    const x = from.left + from.width * (0.1 + 0.8 * share);
    const y0 = up ? from.top : from.top + from.height;
    const y1 = up ? to.top + to.height : to.top;
    if (Math.abs(y1 - y0) < 4) return;
    context.strokeStyle = context.fillStyle = color;
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(x, y0);
    context.lineTo(x, y1);
    context.stroke();
    const tip = up ? 6 : -6;
    context.beginPath();
    context.moveTo(x, y1);
    context.lineTo(x + 3.5, y1 + tip);
    context.lineTo(x - 3.5, y1 + tip);
    context.fill();
    context.fillRect(x - 2, y0 - 2, 4, 4);
  }

  private drawMarks(width: number, height: number): void {
    for (const mark of marksOn(this.store, this.sideIndex)) this.drawMark(mark, width, height);
  }

  /** Credits have no cells of their own: their cells are marked with dashes. */
  private drawCreditMark(message: number): void {
    const { context } = this.stage;
    const { side } = this;
    context.setLineDash([4, 3]);
    for (const node of [side.fromOf(message), side.toOf(message)]) {
      const cell = this.cell(side.rowOf[node]!, side.roundOf(message));
      context.strokeRect(cell.left, cell.top, Math.max(2, cell.width), Math.max(2, cell.height));
    }
    context.setLineDash([]);
  }

  private drawMark(mark: Mark, width: number, height: number): void {
    const { context } = this.stage;
    const theme = currentTheme();
    const { x, y } = this.camera;
    const { side } = this;
    const { target, message: single } = mark;
    context.strokeStyle = theme.mark;
    context.lineWidth = mark.width;
    if (single === NONE && (target.kind === "node" || target.kind === "entry")) {
      const top = y.px(side.rowOf[target.node]!);
      context.strokeRect(1, top, width - 2, Math.max(2, y.scale));
      return;
    }
    if (single !== NONE && side.isCredit(single)) return this.drawCreditMark(single);
    if (target.kind === "round") {
      context.strokeRect(x.px(target.round), 1, Math.max(2, x.scale), height - 2);
      return;
    }
    const messages = messagesOf(side, target);
    if (target.kind === "link" && side.lane[target.channel] === CREDIT_LANE) {
      messages.forEach((message) => this.drawCreditMark(message));
      return;
    }
    if (messages.length > 1 && !mark.isHover) {
      context.fillStyle = theme.paper;
      context.globalAlpha = 0.5;
      context.fillRect(0, 0, width, height);
      context.globalAlpha = 1;
      const colors = BlockColors.of(side.header.blocks);
      for (const message of messages) {
        const block = side.blockOf(message);
        if (block === NONE) continue;
        for (const isSend of [true, false]) {
          const box = this.boxOf(message, isSend);
          const combines = !isSend && side.isCombine(side.recv[message]!);
          context.fillStyle = colors.fill(block);
          context.beginPath();
          const [width, height] = [Math.max(2, box.width), Math.max(2, box.height)];
          if (combines) cutRect(context, { ...box, width, height });
          else context.rect(box.left, box.top, width, height);
          context.fill();
          const text = (combines ? "+" : "") + side.blocksText(side.send[message]!);
          this.write(box, text, colors.ink(block), 0);
        }
      }
    }
    const lineWidth = messages.length > 1 && this.cellWidth < 18 ? 1 : mark.width;
    if (messages.length <= 4096) {
      for (const message of messages) this.outline(message, theme.mark, lineWidth);
    }
    if (single !== NONE && side.blockOf(single) !== NONE) this.arrow(single, theme.mark);
  }
}
