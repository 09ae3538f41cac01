// SPDX-License-Identifier: Apache-2.0
//
// The tree view: how one block gets from where it is to all who want it, or where a plan combines,
// how its value at one node is made. Filled nodes have it, or have given theirs, at the clock.
import { Camera } from "./camera";
import { CanvasView } from "./canvas_view";
import { Phase, phaseOf, timeText } from "./clock";
import { indicesOf } from "./indices";
import { Mark, blockOf, marksOn, messageOf, nodeOf, nodesOf, widthOf } from "./marks";
import { CREDIT_LANE, NONE } from "./model";
import { BlockColors, CROSSING, currentTheme } from "./palette";
import { Change, Store } from "./store";
import { Target, count } from "./targets";
import { Tree, TreeNode, layOutTree, makerOf } from "./tree_layout";
import { make } from "./view";

const MARGIN = 14;
const FONT = "11px system-ui, sans-serif";
const NAME_RADIUS_MIN = 4.5; // pixels of a node that has its name beside it

/** Of a node, where levels and rows are that many pixels apart. */
const radiusAt = (level: number, row: number) =>
  Math.max(1.2, Math.min(13, row * 0.42, level * 0.3));

export class TreeView extends CanvasView {
  readonly name = "tree";
  readonly label = "Block tree";
  protected readonly camera = new Camera();
  private readonly input = make("input", { type: "number", min: "0", "aria-label": "Block" });
  private readonly note = make("span");
  private readonly names = make("span"); // how to see names that have no room at first
  private block = 0;
  private asked = NONE; // whose value of it
  private tree: Tree | null = null;
  private madeFor = "";

  constructor(store: Store) {
    super(store, "Block tree: the way of one block");
    // At first one that moves: of an alltoall block 0 stays where it is.
    if (!store.side.isPlainMulticast) {
      const { begin } = indicesOf(store.side).receivesByBlock;
      this.block = Math.max(0, begin.findIndex((at) => at > 0) - 1);
    }
    const label = make("label", {}, "block", this.input);
    this.input.onchange = () => {
      const block = Math.min(
        store.side.header.blocks - 1,
        Math.max(0, Number(this.input.value) | 0),
      );
      store.select({ side: store.state.side, kind: "block", block });
    };
    const about = make("span", { class: "about" }, this.note, this.names);
    this.assemble([make("div", { class: "bar" }, label, about)]);
    this.camera.x.centred = this.camera.y.centred = true;
  }

  protected origin() {
    return { x: MARGIN, y: MARGIN };
  }

  private layOut(): Tree {
    const { store } = this;
    const { selected, side } = store.state;
    const wanted = selected && selected.side === side ? blockOf(store.side, selected) : NONE;
    const message = selected && wanted !== NONE ? messageOf(store.side, selected) : NONE;
    const isShown = message !== NONE && store.side.hasBlock(store.side.send[message]!, this.block);
    if (wanted !== NONE && !isShown) this.block = wanted;
    this.block = Math.min(this.block, store.side.header.blocks - 1);
    if (selected?.kind === "node" && selected.side === side) this.asked = selected.node;
    const maker = store.side.combines ? makerOf(store.side, this.block, this.asked) : NONE;
    const key = `${side} ${this.block} ${maker}`;
    if (this.tree && this.madeFor === key) return this.tree;
    this.madeFor = key;
    const tree = (this.tree = layOutTree(store.side, this.block, maker));
    const { x, y } = this.camera;
    x.length = tree.levels;
    y.length = Math.max(1, tree.rows);
    x.fitMax = 150;
    x.scaleMax = 260;
    y.fitMax = 40;
    y.scaleMax = 60;
    if (!this.camera.moved) this.camera.fit();
    this.input.max = String(store.side.header.blocks - 1);
    this.input.value = String(this.block);
    const racks = store.side.head.racks
      ? `; ${count(tree.crossings, "crossing")} between ${store.side.head.racks.word}s`
      : "";
    const hidden =
      tree.hidden > 0
        ? `; the ${tree.nodes.length} nodes that have it first are ` +
          `drawn, ${tree.hidden} are not`
        : "";
    const madeAt = tree.nodes[0]!.node;
    const whose =
      maker === NONE || maker === madeAt
        ? `node ${madeAt}`
        : `node ${maker}, which got it from node ${madeAt},`;
    this.note.textContent =
      (maker === NONE
        ? `${count(tree.levels - 1, "hop")} to the farthest`
        : `how the value at ${whose} is made: each node gives its own to the one at its left; ` +
          `${count(tree.levels - 1, "hop")} from the farthest`) +
      `${racks}${hidden}; on edges when it moves; filled: ` +
      (maker === NONE ? "has it at the clock" : "given on at the clock");
    this.describeNames();
    return tree;
  }
  /** All of a tree is in view at first; where nodes are many, their names have no room there. */
  private describeNames(): void {
    const { x, y } = this.camera;
    const hasNames = radiusAt(x.scaleFit, y.scaleFit) >= NAME_RADIUS_MIN;
    this.names.textContent = hasNames ? "" : "; all is in view, zoom in for names";
  }

  protected fitCanvas(): void {
    this.layOut();
    this.hint();
    const { width, height } = this.stage;
    this.camera.resize(width - 2 * MARGIN - this.rackRoom, height - 2 * MARGIN);
    this.describeNames();
  }
  override changed(change: Change): void {
    this.layOut();
    this.hint();
    super.changed(change);
  }

  protected reveal(target: Target): void {
    const node = nodeOf(this.store.sideOf(target), target);
    const it = this.layOut().nodes.find((one) => one.node === node);
    if (!it) return;
    this.camera.x.show(it.level, it.level + 1);
    this.camera.y.show(it.row, it.row + 1);
  }

  /** Pixels at the right for the racks' names beside the last leaves; short ones fit without. */
  private get rackRoom(): number {
    const { racks } = this.store.side.head;
    if (!racks) return 0;
    const { context } = this.stage;
    context.font = FONT;
    const widthOf = (name: string) => context.measureText(name).width;
    const widest = racks.names.reduce((most, name) => Math.max(most, widthOf(name)), 0);
    return Math.min(Math.max(0, widest - MARGIN), this.stage.width / 4);
  }

  private center(it: TreeNode): [number, number] {
    const { x, y } = this.camera;
    return [MARGIN + x.px(it.level + 0.5), MARGIN + y.px(it.row + 0.5)];
  }
  private get radius(): number {
    return radiusAt(this.camera.x.scale, this.camera.y.scale);
  }

  protected draw(): void {
    const tree = this.layOut();
    const { context } = this.stage;
    const theme = currentTheme();
    const { store } = this;
    const { side } = store;
    const { clock, filter } = store.state;
    const color = BlockColors.of(side.header.blocks).fill(this.block);
    const ink = BlockColors.of(side.header.blocks).ink(this.block);
    const marks = marksOn(store, store.state.side);
    const radius = this.radius;
    const room = this.camera.x.scale - 2 * radius;
    const labels =
      this.camera.y.scale >= 13 && room >= (clock.kind === "time" && side.run ? 54 : 18);
    context.font = FONT;
    context.textBaseline = "middle";
    for (const it of tree.nodes) {
      if (it.parent === NONE) continue;
      const [x0, y0] = this.center(tree.nodes[it.parent]!);
      const [x1, y1] = this.center(it);
      if (Math.max(y0, y1) < -20 || Math.min(y0, y1) > this.stage.height + 20) continue;
      const phase = phaseOf(side, it.message, clock);
      const mark = widthOf(marks, (one) => this.isEdgeOf(one, it.message));
      context.strokeStyle = mark
        ? theme.mark
        : phase === Phase.OnWire
          ? theme.clock
          : side.crosses(it.message)
            ? CROSSING
            : theme.faint;
      context.globalAlpha = phase === Phase.Waiting && !mark ? 0.35 : 1;
      context.lineWidth = mark || (phase === Phase.OnWire ? 2.5 : 1);
      context.setLineDash(side.crosses(it.message) ? [5, 3] : []);
      context.beginPath();
      context.moveTo(x0 + radius, y0);
      const middle = x0 + radius + (x1 - x0 - 2 * radius) * 0.4;
      context.bezierCurveTo(middle, y0, middle, y1, middle + (x1 - middle) * 0.35, y1);
      context.lineTo(x1 - radius, y1);
      context.stroke();
      context.setLineDash([]);
      if (labels) {
        context.fillStyle = phase === Phase.OnWire ? theme.clock : theme.faint;
        context.textAlign = "right";
        const done = side.run ? side.run.completed[side.recv[it.message]!]! : NaN;
        const text =
          clock.kind === "time" && !Number.isNaN(done)
            ? timeText(done)
            : String(side.roundOf(it.message));
        context.fillText(text, x1 - radius - 4, y1 - 7);
      }
      context.globalAlpha = 1;
    }
    for (const it of tree.nodes) {
      const [x, y] = this.center(it);
      if (y < -20 || y > this.stage.height + 20 || x < -20 || x > this.stage.width + 20) continue;
      const phase = this.phaseOf(it);
      context.globalAlpha = filter.nodes && !filter.nodes.has(it.node) ? 0.25 : 1;
      context.beginPath();
      context.arc(x, y, radius, 0, 2 * Math.PI);
      context.fillStyle = phase === Phase.Done ? color : theme.cell;
      context.fill();
      const mark = widthOf(marks, (one) => this.isNodeOf(one, it.node));
      context.strokeStyle = mark ? theme.mark : phase === Phase.OnWire ? theme.clock : theme.faint;
      context.lineWidth = mark || (phase === Phase.OnWire ? 2.5 : 0.75);
      context.stroke();
      this.drawName(it, x, y, phase === Phase.Done ? ink : theme.ink);
      context.globalAlpha = 1;
    }
  }

  /** Whether a node has the block, or has given its value; of the root, whether its value is made. */
  private phaseOf(it: TreeNode): Phase {
    const { side } = this.store;
    const { clock } = this.store.state;
    if (it.message !== NONE) return phaseOf(side, it.message, clock);
    if (!side.combines) return Phase.Done;
    return it.children.every((child) => {
      const { message } = this.tree!.nodes[child]!;
      return phaseOf(side, message, clock) === Phase.Done;
    })
      ? Phase.Done
      : Phase.Waiting;
  }

  /** Whether the edge of `message`, by which a node gets the block, is one of a mark's. */
  private isEdgeOf({ target, message: marked }: Mark, message: number): boolean {
    const { side } = this.store;
    if (target.kind === "round") return side.roundOf(message) === target.round;
    const isCredit = marked !== NONE && side.isCredit(marked);
    if (!isCredit && target.kind !== "link") return message === marked;
    const channel = target.kind === "link" ? target.channel : side.channelOf[marked]!;
    // Credits go against their blocks.
    const [from, to] =
      side.lane[channel] === CREDIT_LANE
        ? [side.to[channel]!, side.from[channel]!]
        : [side.from[channel]!, side.to[channel]!];
    return side.fromOf(message) === from && side.toOf(message) === to;
  }
  /** Whether a node is one of a mark's: of a message of this block its receiver. */
  private isNodeOf(mark: Mark, node: number): boolean {
    const { side } = this.store;
    const { target, message } = mark;
    if (target.kind === "op" && side.nodeOf(target.op) === node) return true;
    const isOfBlock = message !== NONE && side.hasBlock(side.send[message]!, this.block);
    if (isOfBlock) return (side.combines ? side.fromOf(message) : side.toOf(message)) === node;
    return nodesOf(side, mark).includes(node);
  }

  /** The block's field shows which block is pointed at, if that is another one. */
  private hint(): void {
    const { store, input } = this;
    const pointed = marksOn(store, store.state.side).find((it) => it.isHover);
    const block = pointed ? blockOf(store.side, pointed.target) : NONE;
    const isOther = block !== NONE && block !== this.block;
    input.classList.toggle("pointed", isOther || pointed?.target.kind === "block");
    if (input !== document.activeElement) input.value = String(isOther ? block : this.block);
  }

  private drawName(it: TreeNode, x: number, y: number, ink: string): void {
    const { context } = this.stage;
    const theme = currentTheme();
    const { side } = this.store;
    const radius = this.radius;
    const name = String(it.node);
    const inside = radius * 1.75 >= name.length * 6;
    context.textAlign = inside ? "center" : "left";
    const hidden = it.hidden > 0 ? ` (+${it.hidden} not drawn)` : "";
    if (radius >= NAME_RADIUS_MIN) {
      context.fillStyle = inside ? ink : theme.ink;
      context.fillText(name, inside ? x : x + radius + 3, y + 0.5);
    }
    const rack = side.head.racks ? (side.head.racks.names[side.rackOf(it.node)] ?? "") : "";
    const text = `${rack}${hidden}`;
    if (this.camera.y.scale < 11 || text === "") return;
    context.fillStyle = theme.faint;
    if (it.children.length === 0) {
      // a leaf has room at its right
      context.textAlign = "left";
      context.fillText(text, x + radius + 4 + (inside ? 0 : name.length * 7 + 3), y);
    } else if (this.camera.y.scale >= 22) {
      context.textAlign = "center";
      context.fillText(text, x, y + radius + 7);
    }
  }

  protected find(px: number, py: number): Target | null {
    const tree = this.layOut();
    const reach = Math.max(6, this.radius + 2);
    let best: TreeNode | null = null;
    let least = reach * reach;
    for (const it of tree.nodes) {
      const [x, y] = this.center(it);
      const distance = (x - px) ** 2 + (y - py) ** 2;
      if (distance < least) [best, least] = [it, distance];
    }
    if (!best) return null;
    const { side } = this.store.state;
    return best.message === NONE
      ? { side, kind: "node", node: best.node }
      : { side, kind: "message", message: best.message };
  }
}
