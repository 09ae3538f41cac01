// SPDX-License-Identifier: Apache-2.0
//
// The timeline of one side's run on a canvas: a row per node (what it receives above, what it sends
// below, ticks where its host posted) or per link; above, how often hosts posted. Many bars are
// drawn pixel by pixel into an image that is kept while the camera rests.
import { scaleLinear } from "d3-scale";
import { Phase, phaseOf, tickText } from "./clock";
import { passes } from "./filter";
import { messagesOf, onSide } from "./marks";
import { NONE } from "./model";
import { BlockColors, currentTheme } from "./palette";
import { Posts, lowerBound, postsOf } from "./run_bars";
import { Target, linkText } from "./targets";
import { AXIS, STRIP, TimelineFrame } from "./timeline_frame";
import { paintBars } from "./timeline_image";

const BARS_MAX = 6000; // that are drawn one by one

export class TimelinePlot extends TimelineFrame {
  private postsMade: Posts | null = null;
  private image: HTMLCanvasElement | null = null;
  private imageKey = "";

  get posts(): Posts {
    return (this.postsMade ??= postsOf(this.side));
  }
  forgetImages(): void {
    this.imageKey = "";
  }

  draw(y0: number, height: number): void {
    const { context } = this.stage;
    const { camera, left, top } = this;
    context.save();
    context.beginPath();
    context.rect(0, y0, this.stage.width, height);
    context.clip();
    context.translate(0, y0);
    if (!this.side.run) {
      context.fillStyle = currentTheme().faint;
      context.font = "13px system-ui, sans-serif";
      context.fillText(`${this.side.head.label} has no run: nothing is known of its time`, 20, 30);
      context.restore();
      return;
    }
    this.drawAxis();
    this.drawPosts();
    context.save();
    context.beginPath();
    context.rect(left, top, camera.x.size, camera.y.size);
    context.clip();
    context.translate(left, top);
    this.drawBars();
    this.drawClock();
    for (const target of [this.store.state.selected, this.store.state.hovered]) {
      const here = target && onSide(this.store.sides, target, this.sideIndex);
      if (here) this.drawMark(here);
    }
    context.restore();
    this.drawRowHeads();
    context.restore();
  }

  private drawAxis(): void {
    const { context } = this.stage;
    const theme = currentTheme();
    const { x } = this.camera;
    const ticks = scaleLinear()
      .domain([x.unit(0), x.unit(x.size)])
      .ticks(Math.max(2, Math.floor(x.size / 95)));
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (const tick of ticks) {
      const at = this.left + x.px(tick);
      context.fillStyle = theme.line;
      context.fillRect(Math.round(at), STRIP + AXIS - 4, 1, this.camera.y.size + 4);
      context.fillStyle = theme.faint;
      const text = tickText(tick);
      if (at + text.length * 3.2 > this.stage.width) continue;
      context.fillText(text, at, STRIP + AXIS / 2 - 2);
    }
  }

  /** How many ops are posted in each three pixels. */
  private drawPosts(): void {
    const { context } = this.stage;
    const theme = currentTheme();
    const { x } = this.camera;
    const { all } = this.posts;
    const width = 3;
    const counts: number[] = [];
    let i = lowerBound(all, 0, all.length, x.unit(0));
    for (let px = 0; px < x.size; px += width) {
      const end = lowerBound(all, i, all.length, x.unit(px + width));
      counts.push(end - i);
      i = end;
    }
    const most = Math.max(1, ...counts);
    context.fillStyle = theme.faint;
    counts.forEach((count, at) => {
      if (count === 0) return;
      const height = Math.max(1.5, (count / most) * (STRIP - 8));
      context.fillRect(this.left + at * width, STRIP - 3 - height, width - 0.5, height);
    });
    context.textAlign = "right";
    context.textBaseline = "middle";
    context.font = "11px system-ui, sans-serif";
    context.fillText("posts", this.left - 8, STRIP - 12);
    context.fillStyle = theme.line;
    context.fillRect(this.left, STRIP - 3, x.size, 1);
  }

  private drawBars(): void {
    const [row0, row1] = this.visibleRows;
    let count = 0;
    for (const { bars } of this.layers) {
      for (let row = row0; row < row1 && count <= BARS_MAX; ++row) {
        const [first, end] = this.range(bars, row);
        count += end - first;
      }
    }
    if (count > BARS_MAX) this.drawImage();
    else this.drawEach(row0, row1);
    if (this.rows === "nodes" && this.camera.y.scale >= 14) this.drawTicks(row0, row1);
  }

  private drawEach(row0: number, row1: number): void {
    const { context } = this.stage;
    const { side } = this;
    const { filter, clock } = this.store.state;
    const theme = currentTheme();
    const colors = BlockColors.of(side.header.blocks);
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (const layer of this.layers) {
      const { bars } = layer;
      for (let row = row0; row < row1; ++row) {
        const [first, end] = this.range(bars, row);
        for (let at = first; at < end; ++at) {
          const message = bars.message[at]!;
          const box = this.bar(layer, row, at);
          const block = side.blockOf(message);
          const shown = passes(
            filter,
            side.fromOf(message),
            side.toOf(message),
            block,
            side.roundOf(message),
          );
          const waits = clock.kind === "rounds" && phaseOf(side, message, clock) === Phase.Waiting;
          context.globalAlpha = shown ? (waits ? 0.25 : 1) : 0.1;
          context.fillStyle = colors.fill(block);
          context.fillRect(box.left, box.top, box.width, Math.max(0.75, box.height - 0.5));
          if (box.width > 2.5) {
            // a seam between bars that touch
            context.fillStyle = theme.paper;
            context.fillRect(box.left + box.width - 0.6, box.top, 0.6, box.height);
          }
          const text = String(block);
          if (box.height >= 10 && box.width >= text.length * 7 + 4) {
            context.fillStyle = colors.ink(block);
            context.font = `${Math.min(11, box.height - 1)}px system-ui, sans-serif`;
            const visible = Math.max(0, box.left);
            const right = Math.min(this.camera.x.size, box.left + box.width);
            context.fillText(text, (visible + right) / 2, box.top + box.height / 2);
          }
        }
      }
    }
    context.globalAlpha = 1;
  }

  private drawImage(): void {
    const { camera, store } = this;
    const { x, y } = camera;
    const key = [
      x.scale,
      x.offset,
      y.scale,
      y.offset,
      x.size,
      y.size,
      this.rows,
      JSON.stringify(store.state.filter.text),
      currentTheme().paper,
    ].join(" ");
    if (!this.image || this.imageKey !== key) {
      this.imageKey = key;
      this.image = paintBars(this.side, camera, this.layers, store.state.filter, (bars, row) =>
        this.range(bars, row),
      );
    }
    this.stage.context.drawImage(this.image, 0, 0);
  }

  private drawTicks(row0: number, row1: number): void {
    const { context } = this.stage;
    const { x, y } = this.camera;
    const { begin, times } = this.posts;
    context.fillStyle = currentTheme().ink;
    for (let row = row0; row < row1; ++row) {
      const node = this.side.nodeAt[row]!;
      const end = begin[node + 1]!;
      let at = lowerBound(times, begin[node]!, end, x.unit(0));
      while (at < end) {
        const px = x.px(times[at]!);
        if (px > x.size) break;
        context.fillRect(px, y.px(row) + 0.87 * y.scale, 1, Math.max(2, 0.11 * y.scale));
        at = Math.max(at + 1, lowerBound(times, at, end, x.unit(px + 1.5)));
      }
    }
  }

  private drawClock(): void {
    const { clock } = this.store.state;
    if (clock.kind !== "time") return;
    const { context } = this.stage;
    const theme = currentTheme();
    const { x, y } = this.camera;
    const at = x.px(clock.value);
    context.fillStyle = theme.paper;
    context.globalAlpha = 0.6;
    context.fillRect(at, 0, Math.max(0, x.size - at), y.size);
    context.globalAlpha = 1;
    context.fillStyle = theme.clock;
    context.fillRect(at - 0.75, 0, 1.5, y.size);
  }

  private drawMark(target: Target): void {
    const { context } = this.stage;
    const { side, camera } = this;
    context.strokeStyle = currentTheme().mark;
    context.lineWidth = 2;
    if (target.kind === "node" && this.rows === "nodes") {
      const top = camera.y.px(side.rowOf[target.node]!);
      context.strokeRect(1, top, camera.x.size - 2, Math.max(2, camera.y.scale));
      return;
    }
    if (target.kind === "link" && this.rows === "links") {
      const row = this.channels.indexOf(target.channel);
      if (row >= 0) {
        context.strokeRect(1, camera.y.px(row), camera.x.size - 2, Math.max(2, camera.y.scale));
      }
      return;
    }
    if (target.kind === "round" || target.kind === "node") return;
    const wanted = new Set(messagesOf(side, target).slice(0, 2000));
    const rowsWanted = new Set<number>();
    for (const message of wanted) {
      for (const row of this.rowsOf(message)) rowsWanted.add(row);
    }
    const [row0, row1] = this.visibleRows;
    for (const layer of this.layers) {
      for (const row of rowsWanted) {
        if (row < row0 || row >= row1) continue;
        const [first, end] = this.range(layer.bars, row);
        for (let at = first; at < end; ++at) {
          if (!wanted.has(layer.bars.message[at]!)) continue;
          const box = this.bar(layer, row, at);
          context.strokeRect(box.left - 1, box.top - 1, box.width + 2, box.height + 2);
        }
      }
    }
  }

  private drawRowHeads(): void {
    const { context } = this.stage;
    const theme = currentTheme();
    const { y } = this.camera;
    const { side } = this;
    const [row0, row1] = this.visibleRows;
    const step = Math.max(1, Math.ceil(11 / y.scale));
    context.save();
    context.beginPath();
    context.rect(0, this.top, this.left, y.size);
    context.clip();
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (let row = Math.ceil(row0 / step) * step; row < row1; row += step) {
      const node = this.rows === "nodes" ? side.nodeAt[row]! : NONE;
      const text =
        this.rows === "nodes"
          ? `${node === side.header.root ? "root" : "node"} ${node}`
          : linkText(side, this.channels[row]!);
      context.fillStyle = node === side.header.root ? theme.ink : theme.faint;
      const middle = this.top + y.px(row + 0.5);
      context.fillText(text, this.left - 8, row === 0 ? Math.max(this.top + 6, middle) : middle);
    }
    context.restore();
  }
}
