// SPDX-License-Identifier: Apache-2.0
//
// Both sides, one above the other on one scale and one clock: their grids or their timelines, a
// line of figures of each, and what differs.
import { Camera } from "./camera";
import { CanvasView } from "./canvas_view";
import { Differs, Difference, differenceOf } from "./diff";
import { GridPlot } from "./grid_plot";
import { onSide } from "./marks";
import { NONE, Side } from "./model";
import { currentTheme } from "./palette";
import { sidesFigures } from "./sides_figures";
import { Change, Store } from "./store";
import { Target, count } from "./targets";
import { applyRows, rowsSelect } from "./timeline";
import { TimelinePlot } from "./timeline_plot";
import { make, shortened } from "./view";

const GAP = 22; // above each plot, for its name

/** What two plans do not have in common beside their block messages: "message bytes (5 and 6)". */
function headerDifferences(a: Side, b: Side): string {
  const ready = ({ header: { ready } }: Side) =>
    ready.mode === "window" ? `window=${ready.window}` : ready.mode;
  const credits = (side: Side) => {
    let all = 0;
    for (let message = 0; message < side.messages; ++message) if (side.isCredit(message)) ++all;
    return all;
  };
  const parts: [string, (side: Side) => unknown][] = [
    ["message bytes", (side) => side.header.bytes],
    ["bytes of a block", (side) => side.header.block_bytes],
    ["ready mode", ready],
    ["send window", (side) => side.header.send_window ?? "none"],
    ["credits", credits],
  ];
  return parts
    .filter(([, of]) => of(a) !== of(b))
    .map(([name, of]) => `${name} (${of(a)} and ${of(b)})`)
    .join(", ");
}

export class SidesView extends CanvasView {
  readonly name = "sides";
  readonly label = "Both sides";
  private readonly gridCamera = new Camera();
  private readonly timeCamera = new Camera();
  private readonly grids: GridPlot[];
  private readonly timelines: TimelinePlot[];
  private readonly what = make("select", { "aria-label": "What is compared" });
  private readonly rows: HTMLSelectElement;
  private readonly rowsLabel = make("label", {}, "rows");
  private readonly only = make("input", { type: "checkbox" });
  private readonly about = make("span", { class: "about" });
  private readonly figures = make("div", { class: "figures" });
  private difference: Difference | null = null;
  /** What it shows first: "g", grids, or "t". */
  private readonly usual: string;

  constructor(store: Store) {
    super(store, "Both sides, one above the other");
    const { stage } = this;
    this.grids = store.sides.map((_, i) => new GridPlot(store, i, stage, this.gridCamera));
    this.timelines = store.sides.map((_, i) => new TimelinePlot(store, i, stage, this.timeCamera));
    this.timelines.forEach((plot) => (plot.peers = this.timelines.filter((it) => it !== plot)));
    this.gridCamera.x.length = Math.max(1, store.end("rounds"));
    this.gridCamera.y.length = Math.max(...store.sides.map((side) => side.header.nodes));
    this.what.append(make("option", { value: "grids" }, "grids"));
    if (store.hasRun) this.what.append(make("option", { value: "timelines" }, "timelines"));
    if (store.sides.every((side) => side.hasRun)) this.what.value = "timelines";
    this.usual = this.isGrids ? "g" : "t";
    this.what.onchange = () => {
      this.noteZoom();
      this.resize();
    };
    this.rows = rowsSelect(store);
    this.rowsLabel.append(this.rows);
    this.only.onchange = () => store.set({ dims: this.only.checked });
    this.assemble([
      make(
        "div",
        { class: "bar" },
        make("label", {}, "show", this.what),
        this.rowsLabel,
        make("label", {}, this.only, "dim what is the same"),
        this.about,
      ),
      this.figures,
    ]);
  }

  private get isGrids(): boolean {
    return this.what.value === "grids";
  }
  protected get camera(): Camera {
    return this.isGrids ? this.gridCamera : this.timeCamera;
  }
  private get plots(): (GridPlot | TimelinePlot)[] {
    return this.isGrids ? this.grids : this.timelines;
  }
  private get half(): number {
    return this.stage.height / 2;
  }

  /** Of the side at a height of the canvas. */
  private indexAt(y: number): number {
    return y > this.half ? 1 : 0;
  }
  protected origin(_: number, y: number) {
    const index = this.indexAt(y);
    const plot = this.plots[index]!;
    return { x: plot.left, y: index * this.half + GAP + plot.top };
  }
  protected find(x: number, y: number): Target | null {
    const index = this.indexAt(y);
    return this.plots[index]!.find(x, y - index * this.half - GAP);
  }
  protected override hintAt(x: number, y: number): string | null {
    const index = this.indexAt(y);
    const plot = this.plots[index]!;
    if (plot instanceof GridPlot) return null;
    const text = plot.stripText(x, y - index * this.half - GAP);
    return text && `${"AB"[index]}: ${text}`;
  }
  protected reveal(target: Target): void {
    this.plots[target.side]!.reveal(target);
  }
  protected override tipOf(target: Target): string {
    return `${"AB"[target.side]}: ${super.tipOf(target)}${this.otherText(target)}`;
  }

  private compare(): Difference {
    if (this.difference) return this.difference;
    const [a, b] = this.store.sides as [Side, Side];
    const it = (this.difference = differenceOf(a, b));
    const differing = it.otherRound + it.only[0];
    if (!it.comparable) {
      this.about.textContent = "other nodes, blocks, root or collective: messages are not compared";
    } else if (differing + it.only[1] === 0) {
      this.about.textContent = `${count(it.same, "block message")}, the same in the same rounds`;
    } else {
      this.about.textContent =
        `${count(it.same, "message")} the same; ${it.otherRound} in another ` +
        `round; ${it.only[0]} only in A, ${it.only[1]} only in B`;
    }
    const headers = headerDifferences(a, b);
    if (headers !== "") this.about.textContent += `; other ${headers}`;
    this.only.disabled = !it.comparable || differing + it.only[1] === 0;
    this.applyDims();
    return it;
  }
  /** What a message is to the other side, for its tooltip. */
  private otherText(target: Target): string {
    const message = target.kind === "message" ? target.message : NONE;
    if (message === NONE || !this.compare().comparable) return "";
    const other = "BA"[target.side];
    const differs = this.compare().of[target.side]![message];
    if (differs === Differs.Only) return `\n${other} has no such message`;
    const same = onSide(this.store.sides, target, 1 - target.side);
    if (same?.kind !== "message") return "";
    const side = this.store.sides[1 - target.side]!;
    return differs === Differs.Same
      ? `\nas in ${other}`
      : `\nin ${other} in round ${side.roundOf(same.message)}`;
  }
  private applyDims(): void {
    const { of, same, only, otherRound } = this.compare();
    const usual = same > 0 && only[0] + otherRound > 0;
    this.only.checked = this.store.state.dims ?? usual;
    this.grids.forEach((grid, i) => {
      grid.dims = this.only.checked ? (message) => of[i]![message] === Differs.Same : null;
      grid.forgetImages();
    });
    this.stage.redraw();
  }

  override resize(): void {
    if (this.element.clientWidth === 0) return;
    if (!this.figures.hasChildNodes()) this.figures.append(sidesFigures(this.store));
    this.compare();
    super.resize();
  }
  protected fitCanvas(): void {
    const figures = this.figures.firstElementChild as HTMLElement;
    const isCut = figures.offsetHeight > this.figures.clientHeight;
    this.figures.classList.toggle("more", isCut);
    this.rowsLabel.hidden = this.isGrids;
    if (applyRows(this.store, this.timelines, this.rows)) this.noteZoom();
    const height = this.half - GAP;
    for (const plot of this.plots) plot.measure();
    // One scale: the headings of both are as wide.
    this.timeCamera.y.length = Math.max(...this.timelines.map((plot) => plot.rowCount));
    const left = Math.max(...this.plots.map((plot) => plot.left));
    this.plots.forEach((plot) => (plot.left = left));
    this.camera.resize(this.stage.width - left - 8, height - this.plots[0]!.top - 4);
  }
  override changed(change: Change): void {
    if (change.has("dims")) this.applyDims();
    if (change.has("rows")) this.resize();
    if (change.has("filter") || change.has("theme")) {
      [...this.grids, ...this.timelines].forEach((plot) => plot.forgetImages());
    }
    super.changed(change);
  }
  /** "g" or "t" says of what, and stands alone where all of it is shown. */
  protected override zoomText(): string {
    const text = super.zoomText();
    const kind = this.isGrids ? "g" : "t";
    return text === "" && kind === this.usual ? "" : `${kind},${text}`;
  }
  override setZoom(text: string): void {
    const found = /^([gt]),(.*)$/.exec(text);
    const kind = found ? found[1]! : this.usual;
    this.what.value = kind === "t" && this.store.hasRun ? "timelines" : "grids";
    super.setZoom(text);
  }
  protected override applyZoom(text: string): void {
    super.applyZoom(text.replace(/^[gt],/, ""));
  }

  protected draw(): void {
    const { context, width } = this.stage;
    this.plots.forEach((plot, i) => {
      const top = i * this.half;
      context.fillStyle = currentTheme().ink;
      context.font = "600 12px system-ui, sans-serif";
      context.textAlign = "left";
      context.textBaseline = "middle";
      const name = shortened(context, `${"AB"[i]}: ${this.store.sideName(i)}`, width - 20);
      context.fillText(name, 10, top + GAP / 2 + 1);
      plot.draw(top + GAP, this.half - GAP);
    });
  }
}
