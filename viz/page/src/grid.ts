// SPDX-License-Identifier: Apache-2.0
//
// The grid view: the space-time grid of the side that is shown.
import { Camera, attachGestures } from "./camera";
import { GridPlot } from "./grid_plot";
import { shortText } from "./marks";
import { BlockColors } from "./palette";
import { Change, Store } from "./store";
import { Stage, View, make } from "./view";

/** What colours and places mean. */
export function gridLegend(store: Store): HTMLElement {
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
    make("span", {}, "left: the blocks that a node holds at the clock"),
  );
  if (store.side.head.racks) legend.append(make("span", { class: "crossing" }, "between racks"));
  return legend;
}

export class GridView implements View {
  readonly name = "grid";
  readonly label = "Grid";
  readonly element = make("div", { class: "view" });
  private readonly stage: Stage;
  private readonly plots: GridPlot[];
  private legend: HTMLElement;

  constructor(private readonly store: Store) {
    this.stage = new Stage("Space-time grid: a row per node, a column per round", () =>
      this.plot.draw(0, this.stage.height),
    );
    this.legend = gridLegend(store);
    this.element.append(this.legend, make("div", { class: "stage" }, this.stage.canvas));
    this.plots = store.sides.map((_, side) => new GridPlot(store, side, this.stage, new Camera()));
    attachGestures(
      this.stage.canvas,
      () => this.plot.camera,
      () => ({ x: this.plot.left, y: this.plot.top }),
      () => this.zoomed(),
    );
    this.stage.pointing(
      store,
      (x, y) => this.plot.find(x, y),
      (target) => shortText(store.sideOf(target), target),
    );
  }

  private get plot(): GridPlot {
    return this.plots[this.store.state.side]!;
  }
  private zoomed(): void {
    this.store.set({ zoom: { ...this.store.state.zoom, grid: this.zoomText() } });
    this.stage.redraw();
  }

  resize(): void {
    if (!this.stage.resize()) return;
    this.plot.resize(this.stage.height);
    this.stage.redraw();
  }

  changed(change: Change): void {
    const { selected } = this.store.state;
    if (change.has("filter") || change.has("theme")) this.plots.forEach((it) => it.forgetImages());
    if (change.has("side")) {
      const legend = gridLegend(this.store);
      this.legend.replaceWith(legend);
      this.legend = legend;
      this.resize();
    }
    if (change.has("selected") && selected) this.plot.reveal(selected);
    this.stage.redraw();
  }

  zoomText(): string {
    return this.plot.camera.text;
  }
  setZoom(text: string): void {
    this.plot.camera.text = text;
    this.stage.redraw();
  }
}
