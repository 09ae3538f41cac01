// SPDX-License-Identifier: Apache-2.0
//
// The op graph view: what led to the selection and what follows from it. A box is an op, an edge is
// a reason, in the reason's colour and dashes; the chain back to what began it is drawn thick.
import { Camera } from "./camera";
import { CanvasView } from "./canvas_view";
import { isCompleted } from "./clock";
import { isOpen, passes } from "./filter";
import { Graph, GraphEdge, GraphOp, layOutGraph } from "./graph_layout";
import { indicesOf } from "./indices";
import { Mark, isOpOf, marksOn, messageOf, messagesOf, nodesOf, onSide, widthOf } from "./marks";
import { NONE } from "./model";
import { BlockColors, REASONS, cutRect, currentTheme } from "./palette";
import { WaitKind } from "./reasons";
import { Change, State, Store } from "./store";
import { summarise } from "./summary";
import { Target, count, targetText } from "./targets";
import { make } from "./view";

const LEFT = 74;
const TOP = 24;
const BOX = 0.105; // half of a box's width, in units
const SEEDS_MAX = 100; // messages that it is around
const SCALE_MIN = 84; // pixels per unit at first: else boxes say nothing
const FONT_MAX = 11; // pixels
const FONT_FIRST = 9; // of numbers of blocks at first, or more
const FONT_MIN = 7;
const LABEL_AROUND = 4; // pixels of a box that its label leaves free
const LABEL_MAX = 36; // pixels that boxes have for their labels at first; longer ones are smaller

const fontOf = (size: number) => `${size}px system-ui, sans-serif`;

export class GraphView extends CanvasView {
  readonly name = "graph";
  readonly label = "Op graph";
  protected readonly camera = new Camera();
  private readonly about = make("span", { class: "about" });
  private readonly legend = make("div", { class: "bar legend" });
  private readonly scale = make("select", { "aria-label": "Across" });
  private readonly keep = make("input", { type: "checkbox" });
  private graph: Graph | null = null;
  private madeFor = "";
  private seedsMade: number[] = [];

  constructor(store: Store) {
    super(store, "Op graph: causes and consequences of the selection");
    this.scale.append(
      make("option", { value: "time" }, "model time"),
      make("option", { value: "rounds" }, "rounds"),
    );
    this.scale.onchange = () => store.set({ across: this.scale.value as State["across"] });
    this.keep.onchange = () => store.set({ kept: this.keep.checked ? this.around : null });
    this.keep.title = "Keep this graph while other things are selected";
    const bar = make(
      "div",
      { class: "bar" },
      make("label", {}, "across", this.scale),
      make("label", {}, this.keep, "keep"),
      this.about,
    );
    this.assemble([bar], [this.legend]);
  }

  protected origin() {
    return { x: LEFT, y: TOP };
  }

  /** What it is to be around; null: nothing in particular. */
  private get wished(): Target | null {
    const { kept, selected, side } = this.store.state;
    const it = (kept && onSide(this.store.sides, kept, side)) ?? selected;
    return it?.side === side ? it : null;
  }
  /** What it is around, to be kept. */
  private get around(): Target | null {
    if (this.wished || this.seedsMade.length === 0) return this.wished;
    return { side: this.store.state.side, kind: "message", message: this.seedsMade[0]! };
  }
  /** Block messages that pass the filter, of `node` if there is one, the last ones first. */
  private filtered(node: number): number[] {
    const { side } = this.store;
    const { filter } = this.store.state;
    const all = indicesOf(side).blocksByRound.filter((message) => {
      const [from, to] = [side.fromOf(message), side.toOf(message)];
      if (node !== NONE && from !== node && to !== node) return false;
      const blocks = side.countOf(side.send[message]!);
      return passes(filter, from, to, side.blockOf(message), side.roundOf(message), blocks);
    });
    return Array.from(all.subarray(-SEEDS_MAX)).reverse();
  }
  /** The messages in the middle of the graph. */
  private seeds(): { seeds: number[]; text: string } {
    const { store } = this;
    const { side } = store;
    const it = this.wished;
    if (it) {
      const message = messageOf(side, it);
      if (message !== NONE) return { seeds: [message], text: targetText(side, it) };
      if (it.kind === "node") {
        const { filter } = store.state;
        const seeds = filter.rounds ? this.filtered(it.node) : [];
        if (seeds.length > 0) {
          return { seeds, text: `node ${it.node} in rounds ${filter.rounds!.join(" to ")}` };
        }
        const { last } = summarise(side, it.node);
        if (last !== NONE) return { seeds: [last], text: `the last block of node ${it.node}` };
        const { sent } = indicesOf(side);
        const first = sent.list[sent.begin[it.node]!];
        if (sent.begin[it.node] !== sent.begin[it.node + 1]) {
          return { seeds: [first!], text: `the first block that node ${it.node} sends` };
        }
      }
      if (it.kind === "block" || it.kind === "link") {
        const all = messagesOf(side, it);
        all.sort((a, b) => side.delivery[b]! - side.delivery[a]!);
        return { seeds: all.slice(0, SEEDS_MAX), text: targetText(side, it) };
      }
      if (it.kind === "round") {
        const { begin, list } = indicesOf(side).byRound;
        const all = Array.from(list.subarray(begin[it.round]!, begin[it.round + 1]!));
        return {
          seeds: all.filter((m) => !side.isCredit(m)).slice(0, 60),
          text: targetText(side, it),
        };
      }
    }
    if (!isOpen(store.state.filter)) {
      const seeds = this.filtered(NONE);
      if (seeds.length > 0) return { seeds, text: "what the filter shows" };
    }
    let last = NONE;
    for (let m = 0; m < side.messages; ++m) {
      if (last === NONE || side.delivery[m]! > side.delivery[last]!) last = m;
    }
    return { seeds: last === NONE ? [] : [last], text: "the message that arrives last" };
  }

  private layOut(): Graph {
    const { store } = this;
    const { side, across, kept } = store.state;
    this.keep.checked = kept !== null;
    const { wished } = this;
    const isFiltered = wished === null || wished.kind === "node";
    const filter = isFiltered ? store.state.filter.text : null;
    const key = JSON.stringify([side, wished, across, filter]);
    if (this.graph && key === this.madeFor) return this.graph;
    const isSame = this.madeFor.startsWith(`[${side},`) && this.scale.value === across;
    this.madeFor = key;
    this.scale.value = across;
    const { seeds, text } = this.seeds();
    if (this.graph && isSame && String(seeds) === String(this.seedsMade)) {
      this.describe(this.graph, text);
      return this.graph;
    }
    if (this.graph) this.forgetZoom();
    this.seedsMade = seeds;
    const graph = (this.graph = layOutGraph(store.side, seeds, across === "rounds"));
    const { x, y } = this.camera;
    x.length = graph.last - graph.first;
    y.length = graph.height;
    x.fitMax = 200;
    x.scaleMax = 420;
    y.fitMax = 30;
    y.scaleMax = 40;
    this.home();
    this.describe(graph, text);
    this.drawLegend(graph);
    return graph;
  }

  private describe(graph: Graph, text: string): void {
    const rest = graph.leftOut ? "; farther causes and consequences are left out" : "";
    this.about.textContent =
      graph.messages === 0
        ? "nothing is sent"
        : `around ${text}: ${count(graph.messages, "message")}${rest}`;
  }

  private drawLegend(graph: Graph): void {
    const all = [...new Set(graph.edges.map((edge) => edge.kind))].sort((a, b) => a - b);
    const names = all.map((kind) => REASONS[kind].name);
    const kinds = all.filter((_, i) => names.indexOf(names[i]!) === i);
    this.legend.replaceChildren(
      ...kinds.map((kind) => {
        const { name, color, dash } = REASONS[kind];
        const key = make("span", { class: "key" });
        key.innerHTML =
          `<svg width="26" height="8" aria-hidden="true"><path d="M0 4h26" ` +
          `stroke="${color}" stroke-width="2" stroke-dasharray="${dash.join(" ")}"/></svg>`;
        key.append(name);
        return key;
      }),
      ...(graph.ops.some(({ op }) => this.store.side.isCombine(op))
        ? [make("span", { class: "key" }, make("span", { class: "cut" }), "+: combined")]
        : []),
    );
  }

  protected fitCanvas(): void {
    this.layOut();
    this.camera.resize(this.stage.width - LEFT - 6, this.stage.height - TOP - 6);
    if (!this.camera.moved) this.home();
  }

  /** The op around which it is: of a node's, the node's own end of it. */
  private get middle(): number {
    const message = this.seedsMade[0];
    if (message === undefined) return NONE;
    const { side } = this.store;
    const node = this.wished?.kind === "node" ? this.wished.node : NONE;
    const [send, recv] = [side.send[message]!, side.recv[message]!];
    return side.nodeOf(recv) === node ? recv : send;
  }

  /** As large as one can read, around the selection. */
  private home(): void {
    const graph = this.graph!;
    const { x, y } = this.camera;
    this.camera.fit();
    x.scale = Math.max(x.scale, SCALE_MIN, this.scaleOfLabels(graph));
    y.scale = Math.max(y.scale, 14);
    x.clamp();
    y.clamp();
    const middle = graph.at.get(this.middle);
    if (!middle) return;
    x.offset = x.size * 0.6 - (middle.x - graph.first) * x.scale;
    y.offset = y.size / 2 - graph.rowTop[middle.row]! * y.scale;
    x.clamp();
    y.clamp();
  }

  /** The least scale at which each box has room for the number of its block. */
  private scaleOfLabels(graph: Graph): number {
    const { context } = this.stage;
    context.font = fontOf(FONT_FIRST);
    const widths = graph.ops.map(({ op }) => context.measureText(this.labelsOf(op).at(-1)!).width);
    const widest = Math.min(LABEL_MAX, Math.max(0, ...widths));
    return (widest + LABEL_AROUND + 0.5) / (2 * BOX);
  }

  override changed(change: Change): void {
    this.layOut();
    super.changed(change);
  }
  /** The zoom is that of a graph, and so of what the link selects. */
  override setZoom(text: string): void {
    if (text !== "") this.layOut();
    super.setZoom(text);
  }
  protected override applyZoom(text: string): void {
    if (text === "") this.home();
    else super.applyZoom(text);
  }
  protected reveal(target: Target): void {
    const message = messageOf(this.store.sideOf(target), target);
    const it = this.graph!.at.get(this.store.sideOf(target).send[message] ?? NONE);
    if (!it) return;
    const { x, y } = this.camera;
    x.show(it.x - this.graph!.first - BOX, it.x - this.graph!.first + BOX);
    const row = this.graph!.rowTop[it.row]! + it.track;
    y.show(row, row + 1);
  }

  private box(it: GraphOp) {
    const graph = this.graph!;
    const { x, y } = this.camera;
    const width = Math.max(3, Math.min(54, 2 * BOX * x.scale));
    const height = Math.max(2.5, Math.min(24, y.scale * 0.8));
    const middle = TOP + y.px(graph.rowTop[it.row]! + it.track + 0.6);
    const center = LEFT + x.px(it.x - graph.first);
    return { left: center - width / 2, top: middle - height / 2, width, height };
  }

  protected draw(): void {
    const graph = this.layOut();
    const { context } = this.stage;
    const { width, height } = this.stage;
    this.drawAxes(graph);
    context.save();
    context.beginPath();
    context.rect(LEFT, TOP, width - LEFT, height - TOP);
    context.clip();
    const { side } = this.store;
    const marks = marksOn(this.store, this.store.state.side);
    const widthOfOp = new Map(
      graph.ops.map(({ op }) => [op, widthOf(marks, (mark) => isOpOf(side, mark, op))]),
    );
    const someMarked = graph.ops.some(({ op }) => widthOfOp.get(op)! > 0);
    for (const mark of marks) this.drawRows(graph, mark);
    const inChain = (op: number) => graph.chain.has(side.messageOf[op]!);
    for (const edge of graph.edges) {
      const touches = widthOfOp.get(edge.from)! > 0 || widthOfOp.get(edge.to)! > 0;
      this.drawEdge(
        graph,
        edge,
        inChain(edge.from) && inChain(edge.to) && edge.isCause,
        touches,
        someMarked,
      );
    }
    for (const it of graph.ops) this.drawOp(it, widthOfOp.get(it.op)!);
    context.restore();
  }

  /** The row of a node that is marked; with dashes, those of a message or channel not drawn. */
  private drawRows(graph: Graph, mark: Mark): void {
    const { context } = this.stage;
    const { side } = this.store;
    const isNode = nodesOf(side, mark).length === 1;
    if (!isNode && graph.ops.some(({ op }) => isOpOf(side, mark, op))) return;
    context.strokeStyle = currentTheme().mark;
    context.lineWidth = mark.width;
    context.setLineDash(isNode ? [] : [4, 3]);
    for (const node of nodesOf(side, mark)) {
      const row = graph.nodes.indexOf(node);
      if (row < 0) continue;
      const { y } = this.camera;
      const top = TOP + y.px(graph.rowTop[row]!);
      const height = Math.max(2, y.scale * (graph.tracks[row]! + 0.35) - 2);
      context.strokeRect(LEFT + 1.5, top + 1, this.stage.width - LEFT - 3, height);
    }
    context.setLineDash([]);
  }

  private drawAxes(graph: Graph): void {
    const { context } = this.stage;
    const { width, height } = this.stage;
    const theme = currentTheme();
    const { x, y } = this.camera;
    const { side } = this.store;
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    graph.nodes.forEach((node, row) => {
      const top = TOP + y.px(graph.rowTop[row]!);
      const size = y.scale * (graph.tracks[row]! + 0.35);
      if (top + size < TOP || top > height) return;
      if (row % 2 === 0) {
        context.fillStyle = theme.panel;
        context.fillRect(LEFT, Math.max(TOP, top), width - LEFT, top + size - Math.max(TOP, top));
      }
      if (top + size / 2 < TOP) return;
      context.fillStyle = node === side.root ? theme.ink : theme.faint;
      context.textAlign = "right";
      if (size >= 9) {
        context.fillText(
          `${node === side.root ? "root" : "node"} ${node}`,
          LEFT - 8,
          top + size / 2,
        );
      }
    });
    context.textAlign = "center";
    const step = Math.max(1, Math.ceil(34 / x.scale));
    const first = Math.max(0, Math.ceil(graph.first + x.unit(0)));
    const last = Math.min(graph.last, graph.first + x.unit(x.size));
    for (let time = Math.ceil(first / step) * step; time <= last; time += step) {
      const at = LEFT + x.px(time - graph.first);
      context.fillStyle = theme.line;
      context.fillRect(Math.round(at), TOP, 1, height - TOP);
      context.fillStyle = theme.faint;
      context.fillText(String(time), at, TOP / 2);
    }
    context.textAlign = "right";
    context.fillStyle = theme.faint;
    context.fillText(this.store.state.across, LEFT - 8, TOP / 2);
  }

  private drawEdge(
    graph: Graph,
    edge: GraphEdge,
    isChain: boolean,
    touches: boolean,
    someMarked: boolean,
  ): void {
    const { context } = this.stage;
    const from = this.box(graph.at.get(edge.from)!);
    const to = this.box(graph.at.get(edge.to)!);
    const { color, dash } = REASONS[edge.kind];
    const [x0, y0] = [from.left + from.width, from.top + from.height / 2];
    const [x1, y1] = [to.left, to.top + to.height / 2];
    if (Math.max(x0, x1) < LEFT || Math.min(x0, x1) > this.stage.width) return;
    context.strokeStyle = context.fillStyle = color;
    context.lineWidth = isChain ? 2.6 : 1.3;
    context.globalAlpha = touches || isChain ? 1 : someMarked ? 0.35 : edge.isImplied ? 0.5 : 0.8;
    context.setLineDash(dash);
    context.beginPath();
    context.moveTo(x0, y0);
    const reach = Math.max(8, Math.abs(x1 - x0) * 0.45);
    const sag = edge.kind !== WaitKind.Transfer && Math.abs(y1 - y0) < 2 && x1 - x0 > 30 ? 14 : 0;
    context.bezierCurveTo(x0 + reach, y0 - sag, x1 - reach, y1 - sag, x1, y1);
    context.stroke();
    context.setLineDash([]);
    if (from.height >= 6) {
      context.beginPath();
      context.moveTo(x1, y1);
      context.lineTo(x1 - 6, y1 - 3.2);
      context.lineTo(x1 - 6, y1 + 3.2);
      context.fill();
    }
    context.globalAlpha = 1;
  }

  private drawOp(it: GraphOp, mark: number): void {
    const { context } = this.stage;
    const { side } = this.store;
    const theme = currentTheme();
    const box = this.box(it);
    if (box.left > this.stage.width || box.left + box.width < LEFT) return;
    const block = side.block[it.op]!;
    const colors = BlockColors.of(side.header.blocks);
    const { clock, filter } = this.store.state;
    const isDone = isCompleted(side, it.op, clock);
    const isIn = passes(
      filter,
      side.from[side.channel[it.op]!]!,
      side.to[side.channel[it.op]!]!,
      block,
      side.round[it.op]!,
      side.countOf(it.op),
    );
    context.fillStyle = block === NONE ? theme.cell : colors.fill(block);
    context.globalAlpha = !isIn ? 0.12 : isDone ? 1 : 0.4;
    const combines = side.isCombine(it.op);
    context.beginPath();
    if (combines) cutRect(context, box);
    else {
      context.roundRect(
        box.left,
        box.top,
        box.width,
        box.height,
        block === NONE ? box.height / 2 : 2,
      );
    }
    context.fill();
    context.globalAlpha = 1;
    context.strokeStyle = mark ? theme.mark : theme.faint;
    context.lineWidth = mark || 0.8;
    context.stroke();
    const ink = block === NONE || !isDone || !isIn ? theme.ink : colors.ink(block);
    this.drawLabel(box, this.labelsOf(it.op), ink);
  }

  /** What an op's box says, the longest first. */
  private labelsOf(op: number): string[] {
    const { side } = this.store;
    const block = side.block[op]!;
    const peer = `${side.isSend[op] === 1 ? "\u2192" : "\u2190"}${side.peerOf(op)}`;
    if (block === NONE) return [`c${peer}`, "c"];
    const plus = side.isCombine(op) ? "+" : "";
    const blocks = side.blocksText(op);
    // The box of a combine says that it is one, too.
    const first = side.countOf(op) > 1 ? `${block}\u2026` : String(block);
    return [`${plus}b${blocks}${peer}`, plus + blocks, first];
  }

  /** The longest of `labels` that has room in its box; if none has, the last one in smaller type. */
  private drawLabel(box: ReturnType<GraphView["box"]>, labels: string[], ink: string): void {
    const { context } = this.stage;
    const room = box.width - LABEL_AROUND;
    let size = Math.min(FONT_MAX, box.height - 2);
    if (size < FONT_MIN) return;
    context.font = fontOf(size);
    const widthOf = (text: string) => context.measureText(text).width;
    const text = labels.find((it) => widthOf(it) <= room) ?? labels.at(-1)!;
    size = Math.min(size, (size * room) / widthOf(text));
    if (size < FONT_MIN) return;
    context.font = fontOf(size);
    context.fillStyle = ink;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText(text, box.left + box.width / 2, box.top + box.height / 2 + 0.5);
  }

  protected find(px: number, py: number): Target | null {
    const graph = this.layOut();
    const { side } = this.store.state;
    for (const it of graph.ops) {
      const box = this.box(it);
      if (px < box.left - 2 || px > box.left + box.width + 2) continue;
      if (py < box.top - 2 || py > box.top + box.height + 2) continue;
      return { side, kind: "op", op: it.op };
    }
    if (px >= LEFT) return null;
    const unit = this.camera.y.unit(py - TOP);
    const row = graph.rowTop.findIndex(
      (top, i) => unit >= top && unit < top + graph.tracks[i]! + 0.35,
    );
    return row < 0 ? null : { side, kind: "node", node: graph.nodes[row]! };
  }
}
