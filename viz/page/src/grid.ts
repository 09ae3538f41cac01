// SPDX-License-Identifier: Apache-2.0
//
// The grid view: the space-time grid of the side that is shown.
import { Camera } from "./camera";
import { CanvasView } from "./canvas_view";
import { BAR_WIDTH } from "./grid_frame";
import { FILL_HEIGHTS } from "./grid_heads";
import { GridPlot } from "./grid_plot";
import { Side } from "./model";
import { BlockColors } from "./palette";
import { Change, Store } from "./store";
import { Target } from "./targets";
import { Value, valueText } from "./values";
import { make } from "./view";

/** What stands left of the rows: by the height of a segment, or as a share where blocks are many. */
function leftKeys(side: Side): HTMLElement[] {
  const text = (words: string) => make("span", {}, words);
  if (side.isPlainMulticast) return [text("left: the blocks that a node holds at the clock")];
  if (side.header.blocks > BAR_WIDTH)
    return [text("left: of what a node receives, the share that is there at the clock")];
  const key = (value: Value) => {
    const fill = make("span", { class: "fill", style: `--share: ${FILL_HEIGHTS[value]}` });
    return make("span", { class: "key" }, fill, valueText(side, value));
  };
  return [text("left, at the clock:"), key(Value.Own), key(Value.Partly), key(Value.Final)];
}

/** What colours and places mean. */
function gridLegend(store: Store): HTMLElement {
  const { blocks } = store.side.header;
  const colors = BlockColors.of(blocks);
  const steps = Array.from({ length: 10 }, (_, i) => Math.round((i * (blocks - 1)) / 9));
  const stops =
    blocks === 1
      ? `${colors.fill(0)}, ${colors.fill(0)}`
      : steps.map((block) => colors.fill(block)).join(", ");
  const legend = make(
    "div",
    { class: "bar" },
    make(
      "span",
      { class: "key" },
      "block 0",
      make("span", { class: "ramp", style: `background: linear-gradient(90deg, ${stops})` }),
      String(blocks - 1),
    ),
    make("span", {}, "in a cell: received above, sent below"),
  );
  const { side } = store;
  if (side.combines) {
    const cut = make("span", { class: "cut" });
    legend.append(make("span", { class: "key" }, cut, "+: combined with its own"));
  }
  legend.append(...leftKeys(side));
  const racks = store.side.head.racks;
  if (racks) legend.append(make("span", { class: "crossing" }, `between ${racks.word}s`));
  return legend;
}

export class GridView extends CanvasView {
  readonly name = "grid";
  readonly label = "Grid";
  private readonly plots: GridPlot[];
  private legend: HTMLElement;

  constructor(store: Store) {
    super(store, "Space-time grid: a row per node, a column per round");
    this.legend = gridLegend(store);
    this.assemble([this.legend]);
    this.plots = store.sides.map((_, side) => new GridPlot(store, side, this.stage, new Camera()));
  }

  private get plot(): GridPlot {
    return this.plots[this.store.state.side]!;
  }
  protected get camera(): Camera {
    return this.plot.camera;
  }
  protected origin() {
    return { x: this.plot.left, y: this.plot.top };
  }
  protected fitCanvas(): void {
    this.plot.resize(this.stage.height);
  }
  protected draw(): void {
    this.plot.draw(0, this.stage.height);
  }
  protected find(x: number, y: number): Target | null {
    return this.plot.find(x, y);
  }
  protected reveal(target: Target): void {
    this.plot.reveal(target);
  }

  override changed(change: Change): void {
    if (change.has("filter") || change.has("theme")) this.plots.forEach((it) => it.forgetImages());
    if (change.has("side")) {
      const legend = gridLegend(this.store);
      this.legend.replaceWith(legend);
      this.legend = legend;
    }
    super.changed(change);
  }
}
