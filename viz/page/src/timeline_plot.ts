// SPDX-License-Identifier: Apache-2.0
//
// The timeline of one side's run on a canvas: a row per node (what it receives above, what it sends
// below, between them the gap before each send, ticks where its host posted and where it woke up) or
// per link; above, over all nodes, what hosts posted, their wake-ups, and how many sends are in a gap.
import { scaleLinear } from "d3-scale";
import { ROW_LABEL_HALF, ROW_LABEL_MIN, niceStep } from "./camera";
import { Phase, phaseOf, tickText, timeText } from "./clock";
import { passes } from "./filter";
import { indicesOf } from "./indices";
import { Mark, marksOn, messagesOf } from "./marks";
import { CREDIT_LANE, NONE } from "./model";
import { BlockColors, REASONS, currentTheme, drawBlockEdge } from "./palette";
import { WaitKind } from "./reasons";
import { ActivityCounts, Moments, activityOf, activityText } from "./run_activity";
import { lowerBound, wireOf } from "./run_bars";
import { gapAt, gapSumsOf, gapsOf } from "./run_gaps";
import { linkText } from "./targets";
import { AXIS, Layer, Strip, TimelineFrame, barsInView } from "./timeline_frame";
import { BarImages, paintBars } from "./timeline_image";

const BARS_MAX = 6000; // that are drawn one by one
const PART = 3; // pixels of a strip that are counted together
const MARKED_MAX = 2000; // bars of a mark
const GAP_TEXT_MIN = 9; // pixels that a gap is high with its reason in it

/** What strips show, of a part of the time each. */
interface Counts {
  posts: Float64Array;
  wakeups: Float64Array;
  gaps: { kind: WaitKind; level: Float64Array }[];
  /** Of each strip, the most of a part. */
  most: Record<Strip["name"], number>;
}

export class TimelinePlot extends TimelineFrame {
  /** Those that are beside it on the same camera: their strips have one scale. */
  peers: TimelinePlot[] = [];
  private readonly activity = new ActivityCounts(this.side, this.store.timeShown);
  private counted: Counts | null = null;
  private countedFor = "";
  private readonly images = new BarImages(() => this.stage.redraw());
  private imagesFor = "";

  forgetImages(): void {
    this.images.forget();
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
    for (const strip of this.strips) this.drawStrip(strip);
    context.save();
    context.beginPath();
    context.rect(left, top, camera.x.size, camera.y.size);
    context.clip();
    context.translate(left, top);
    this.drawBars();
    this.drawClock();
    for (const mark of marksOn(this.store, this.sideIndex)) this.drawMark(mark);
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
      context.fillRect(Math.round(at), this.top - 4, 1, this.camera.y.size + 4);
      context.fillStyle = theme.faint;
      const text = tickText(tick);
      if (at + text.length * 3.2 > this.stage.width) continue;
      context.fillText(text, at, this.top - AXIS / 2 - 2);
    }
  }

  private counts(): Counts {
    const { x } = this.camera;
    const key = `${x.scale} ${x.offset} ${x.size}`;
    if (this.counted && this.countedFor === key) return this.counted;
    this.countedFor = key;
    const parts = Math.max(1, Math.ceil(x.size / PART));
    const [from, step] = [x.unit(0), PART / x.scale];
    const hasWakeups = activityOf(this.side).wakeups !== null;
    const posts = this.activity.moments("posts", from, step, parts);
    const wakeups = hasWakeups
      ? this.activity.moments("wakeups", from, step, parts)
      : new Float64Array(0);
    const gaps = this.activity.gaps(from, step, parts);
    const most = (values: Float64Array) => values.reduce((a, b) => Math.max(a, b), 0);
    const levels = new Float64Array(parts);
    for (const { level } of gaps) level.forEach((it, i) => (levels[i]! += it));
    this.counted = {
      posts,
      wakeups,
      gaps,
      most: { posts: most(posts), wakeups: most(wakeups), gaps: most(levels) },
    };
    return this.counted;
  }

  private drawStrip(strip: Strip): void {
    const { context } = this.stage;
    const { side, camera, left } = this;
    const theme = currentTheme();
    const bottom = strip.top + strip.height;
    context.fillStyle = theme.faint;
    context.textAlign = "right";
    context.textBaseline = "middle";
    context.font = "11px system-ui, sans-serif";
    context.fillText(strip.label, left - 8, strip.top + strip.height / 2);
    context.fillStyle = theme.line;
    context.fillRect(left, bottom, camera.x.size, 1);
    if (strip.name === "wakeups" && !activityOf(side).wakeups) {
      context.fillStyle = theme.faint;
      context.textAlign = "left";
      context.fillText("the trace does not say when", left + 6, strip.top + strip.height / 2);
      return;
    }
    const counts = this.counts();
    const all = [this, ...this.peers].filter((it) => it.side.hasRun);
    const most = Math.max(1e-9, ...all.map((it) => it.counts().most[strip.name]));
    const scale = strip.height / most;
    if (strip.name !== "gaps") {
      context.fillStyle = theme.faint;
      counts[strip.name].forEach((count, i) => {
        if (count === 0) return;
        const height = Math.max(1.5, count * scale);
        context.fillRect(left + i * PART, bottom - height, PART - 0.5, height);
      });
      return;
    }
    const below = new Float64Array(counts.posts.length);
    for (const { kind, level } of counts.gaps) {
      context.fillStyle = REASONS[kind].color;
      level.forEach((count, i) => {
        const height = count * scale;
        if (height > 0)
          context.fillRect(left + i * PART, bottom - below[i]! - height, PART, height);
        below[i]! += height;
      });
    }
  }

  /** What the strips say at a point of the plot, whose top is at 0; null where there are none. */
  stripText(px: number, py: number): string | null {
    const last = this.strips.at(-1)!;
    const isInside = py >= 0 && py < last.top + last.height && px >= this.left;
    if (!this.side.hasRun || !isInside) return null;
    const { x } = this.camera;
    const first = Math.floor((px - this.left) / PART) * PART;
    const [from, to] = [x.unit(first), x.unit(first + PART)];
    if (from > this.store.timeShown) return null;
    return (
      `${timeText(from)} to ${timeText(to)}\n` +
      activityText(this.activity, this.side, from, to, (kind) => REASONS[kind].name)
    );
  }
  /** The kinds of its gaps, in the order in which they are drawn. */
  get gapKinds(): WaitKind[] {
    return this.side.hasRun ? gapSumsOf(this.side).map(({ kind }) => kind) : [];
  }

  private drawBars(): void {
    const [row0, row1] = this.visibleRows;
    let count = 0;
    for (const { bars } of this.layers) {
      for (let row = row0; row < row1 && count <= BARS_MAX; ++row) {
        const [first, end] = barsInView(bars, row, this.camera.x);
        count += end - first;
      }
    }
    if (count > BARS_MAX) this.drawImage();
    else this.drawEach(row0, row1);
    if (this.rows !== "nodes" || this.camera.y.scale < 14) return;
    const { posts, wakeups } = activityOf(this.side);
    this.drawTicks(posts, row0, row1, currentTheme().ink, 0.92, 0.07);
    if (wakeups) this.drawTicks(wakeups, row0, row1, currentTheme().clock, 0.85, 0.07);
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
        const [first, end] = barsInView(bars, row, this.camera.x);
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
            side.countOf(side.send[message]!),
          );
          const waits = clock.kind === "rounds" && phaseOf(side, message, clock) === Phase.Waiting;
          context.globalAlpha = shown ? (waits ? 0.25 : 1) : 0.1;
          context.fillStyle = colors.fill(block);
          context.fillRect(box.left, box.top, box.width, Math.max(0.75, box.height - 0.5));
          drawBlockEdge(context, colors, block, {
            ...box,
            width: box.width - 0.5,
            height: box.height - 0.5,
          });
          if (box.width > 2.5) {
            // a seam between bars that touch
            context.fillStyle = theme.paper;
            context.fillRect(box.left + box.width - 0.6, box.top, 0.6, box.height);
          }
          if (layer.gaps && shown) this.drawGap(layer, row, message);
          const combines = !layer.gaps && side.isCombine(side.recv[message]!);
          const plus = combines ? "+" : "";
          const blocks = side.blocksText(side.send[message]!);
          const fits = (it: string) => box.width >= it.length * 7 + 4;
          const text = [plus + blocks, blocks, String(block)].find(fits);
          if (box.height >= 10 && text !== undefined) {
            context.globalAlpha = 1;
            context.fillStyle = shown && !waits ? colors.ink(block) : theme.faint;
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

  /** How long its send waited beyond its cause, in the colour of what that was. */
  private drawGap(layer: Layer, row: number, message: number): void {
    const { x, y } = this.camera;
    const at = gapAt(this.side, message);
    const height = layer.gaps!.height * y.scale;
    if (at === NONE || height < 1) return;
    const gaps = gapsOf(this.side);
    const { context } = this.stage;
    const left = Math.max(0, x.px(gaps.from[at]!));
    const width = Math.min(x.size, x.px(gaps.to[at]!)) - left;
    if (width < 0.5) return;
    const top = y.px(row) + layer.gaps!.top * y.scale;
    const { color, name } = REASONS[gaps.kind[at]! as WaitKind];
    context.fillStyle = color;
    context.fillRect(left, top, width, height);
    if (height < GAP_TEXT_MIN || width < name.length * 6.5 + 4) return;
    context.fillStyle = "#000";
    context.font = "9px system-ui, sans-serif";
    context.fillText(name, left + width / 2, top + height / 2);
  }
  private drawImage(): void {
    const { filter } = this.store.state;
    const key = JSON.stringify([this.rows, filter.text, currentTheme().paper]);
    if (key !== this.imagesFor) this.images.forget();
    this.imagesFor = key;
    this.images.draw(this.stage.context, this.camera, (camera) =>
      paintBars(this.side, camera, this.layers, filter),
    );
  }

  private drawTicks(
    { begin, times }: Moments,
    row0: number,
    row1: number,
    color: string,
    top: number,
    height: number,
  ): void {
    const { context } = this.stage;
    const { x, y } = this.camera;
    context.fillStyle = color;
    for (let row = row0; row < row1; ++row) {
      const node = this.side.nodeAt[row]!;
      const end = begin[node + 1]!;
      let at = lowerBound(times, begin[node]!, end, x.unit(0));
      while (at < end) {
        const px = x.px(times[at]!);
        if (px > x.size) break;
        context.fillRect(px, y.px(row) + top * y.scale, 1, Math.max(2, height * y.scale));
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

  private drawMark(mark: Mark): void {
    const { context } = this.stage;
    const { side, camera } = this;
    const { target } = mark;
    context.strokeStyle = currentTheme().mark;
    context.lineWidth = mark.width;
    const markRow = (row: number) =>
      context.strokeRect(1, camera.y.px(row), camera.x.size - 2, Math.max(2, camera.y.scale));
    if (target.kind === "node" && this.rows === "nodes") return markRow(side.rowOf[target.node]!);
    if (target.kind === "node") {
      this.channels.forEach((channel, row) => {
        const isItsOwn = [side.from[channel], side.to[channel]].includes(target.node);
        if (isItsOwn && row >= this.visibleRows[0] && row < this.visibleRows[1]) markRow(row);
      });
      return;
    }
    if (target.kind === "link" && this.rows === "links") {
      const isCredit = side.lane[target.channel] === CREDIT_LANE;
      const channel = isCredit ? side.partner(target.channel) : target.channel;
      const row = this.rowOfChannel.get(channel);
      if (row !== undefined) markRow(row);
      return;
    }
    const all = target.kind === "round" ? this.messagesOfRound(target.round) : null;
    const messages = (all ?? messagesOf(side, target)).slice(0, MARKED_MAX);
    if (messages.length === 0 && target.kind === "entry" && this.rows === "nodes") {
      return markRow(side.rowOf[target.node]!);
    }
    const [row0, row1] = this.visibleRows;
    for (const message of messages) {
      const rows = this.rowsOf(message);
      for (const row of rows) {
        if (row < row0 || row >= row1) continue;
        if (side.isCredit(message)) this.markCredit(message, row);
        else this.layers.forEach((layer) => this.markBar(layer, message, row));
      }
    }
  }
  private markBar(layer: Layer, message: number, row: number): void {
    const at = layer.bars.at[message]!;
    if (at < layer.bars.begin[row]! || at >= layer.bars.begin[row + 1]!) return;
    const box = this.bar(layer, row, at);
    const { context } = this.stage;
    context.strokeRect(box.left - 1, box.top - 1, box.width + 2, box.height + 2);
  }
  /** Credits have no bars: their time is marked, dashed, in the rows of their ends. */
  private markCredit(message: number, row: number): void {
    const { context } = this.stage;
    const { x, y } = this.camera;
    const [from, to] = wireOf(this.side, message);
    if (Number.isNaN(to)) return;
    const left = x.px(Number.isNaN(from) ? to : from);
    context.setLineDash([3, 2]);
    context.strokeRect(left - 2, y.px(row) + 1, Math.max(4, x.px(to) - left + 4), y.scale - 2);
    context.setLineDash([]);
  }
  private messagesOfRound(round: number): number[] {
    const { begin, list } = indicesOf(this.side).byRound;
    return Array.from(list.subarray(begin[round]!, begin[round + 1]!));
  }

  private drawRowHeads(): void {
    const { context } = this.stage;
    const theme = currentTheme();
    const { y } = this.camera;
    const { side } = this;
    const [row0, row1] = this.visibleRows;
    const step = niceStep(y.scale, ROW_LABEL_MIN);
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
          ? `${node === side.root ? "root" : "node"} ${node}`
          : linkText(side, this.channels[row]!);
      context.fillStyle = node === side.root ? theme.ink : theme.faint;
      const middle = this.top + y.whole(y.px(row + 0.5), ROW_LABEL_HALF);
      context.fillText(text, this.left - 8, middle);
    }
    context.restore();
  }
}
