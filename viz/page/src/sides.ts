// SPDX-License-Identifier: Apache-2.0
//
// Both sides, one above the other on one scale and one clock: their grids or their timelines, a
// line of figures of each, and what differs.
import { Camera, attachGestures } from "./camera";
import { timeText } from "./clock";
import { Differs, Difference, differenceOf } from "./diff";
import { GridPlot } from "./grid_plot";
import { onSide, shortText } from "./marks";
import { NONE, Side } from "./model";
import { REASONS, currentTheme } from "./palette";
import { endText, runText } from "./plan_facts";
import { gapsOf, postsOf } from "./run_bars";
import { Change, Store } from "./store";
import { Target, count } from "./targets";
import { TimelinePlot } from "./timeline_plot";
import { Stage, View, make } from "./view";

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

export class SidesView implements View {
  readonly name = "sides";
  readonly label = "Both sides";
  readonly element = make("div", { class: "view" });
  private readonly stage: Stage;
  private readonly gridCamera = new Camera();
  private readonly timeCamera = new Camera();
  private readonly grids: GridPlot[];
  private readonly timelines: TimelinePlot[];
  private readonly what = make("select", { "aria-label": "What is compared" });
  private readonly only = make("input", { type: "checkbox" });
  private readonly about = make("span", { class: "about" });
  private difference: Difference | null = null;
  /** What it shows first: "g", grids, or "t". */
  private readonly usual: string;

  constructor(private readonly store: Store) {
    this.stage = new Stage("Both sides, one above the other", () => this.draw());
    const { stage } = this;
    this.grids = store.sides.map((_, i) => new GridPlot(store, i, stage, this.gridCamera));
    this.timelines = store.sides.map((_, i) => new TimelinePlot(store, i, stage, this.timeCamera));
    this.gridCamera.x.length = Math.max(1, store.end("rounds"));
    this.gridCamera.y.length = Math.max(...store.sides.map((side) => side.header.nodes));
    this.what.append(make("option", { value: "grids" }, "grids"));
    if (store.hasRun) this.what.append(make("option", { value: "timelines" }, "timelines"));
    if (store.sides.every((side) => side.run)) this.what.value = "timelines";
    this.usual = this.isGrids ? "g" : "t";
    this.what.onchange = () => {
      this.store.set({ zoom: { ...this.store.state.zoom, sides: this.zoomText() } });
      this.resize();
    };
    this.only.onchange = () => this.applyDims();
    this.element.append(
      make(
        "div",
        { class: "bar" },
        make("label", {}, "show", this.what),
        make("label", {}, this.only, "dim what is the same"),
        this.about,
      ),
      make("div", { class: "figures" }, this.figures()),
      make("div", { class: "stage" }, stage.canvas),
    );
    attachGestures(
      stage.canvas,
      () => this.camera,
      (_, y) => {
        const plot = this.plots[y > this.half ? 1 : 0]!;
        return { x: plot.left, y: (y > this.half ? this.half : 0) + GAP + plot.top };
      },
      () => {
        store.set({ zoom: { ...store.state.zoom, sides: this.zoomText() } });
        stage.redraw();
      },
    );
    stage.pointing(
      store,
      (x, y) => {
        const index = y > this.half ? 1 : 0;
        return this.plots[index]!.find(x, y - index * this.half - GAP);
      },
      (target) =>
        `${"AB"[target.side]}: ${shortText(store.sideOf(target), target)}` + this.otherText(target),
    );
  }

  private get isGrids(): boolean {
    return this.what.value === "grids";
  }
  private get camera(): Camera {
    return this.isGrids ? this.gridCamera : this.timeCamera;
  }
  private get plots(): (GridPlot | TimelinePlot)[] {
    return this.isGrids ? this.grids : this.timelines;
  }
  private get half(): number {
    return this.stage.height / 2;
  }

  /** A line of figures for each side; those that differ are bold, those that say nothing absent. */
  private figures(): HTMLElement {
    const names = [
      "",
      "nodes",
      "blocks",
      "rounds",
      "model time",
      "completes",
      "posts before",
      "posts during",
      "wake-ups",
      "hosts' processor time",
      "gaps before sends, by what they waited for:",
    ];
    const rows = this.store.sides.map((side, i) => this.figuresOf(side, i)) as [string[], string[]];
    const shown = names
      .map((_, i) => i)
      .filter((i) => i === 0 || i === 3 || rows[0][i] !== rows[1][i]);
    const lines = make("div", {});
    for (const row of rows) {
      const line = make("p", { class: "figures-line" }, make("b", {}, row[0]!));
      for (const i of shown.slice(1)) {
        const value = make("span", { class: "value" }, row[i]!);
        if (rows[0][i] !== rows[1][i]) value.classList.add("differs");
        line.append(make("span", {}, `${names[i]} `, value));
      }
      lines.append(line);
    }
    return lines;
  }
  private figuresOf(side: Side, index: number): string[] {
    const { header, head } = side;
    const run = head.run;
    const posts = side.run ? postsOf(side) : null;
    const how = run ? ` (${runText(side)})` : "";
    const hosts = run?.hosts ?? [];
    const opsText = (ops?: number) => (ops === undefined ? "-" : count(ops, "op"));
    const sum = (of: "posts" | "posts_during" | "wakeups" | "cpu_ns") => hosts.reduce((all, host) => all + host[of], 0);
    const gaps = side.run ? gapsOf(side) : [];
    const gapText = gaps.map(
      (gap) => `${gap.kind === null ? "-" : REASONS[gap.kind].name} ${timeText(gap.sum)}`,
    );
    return [
      `${"AB"[index]}: ${this.store.sideName(index)}${how}`,
      String(header.nodes),
      String(header.blocks),
      String(header.rounds),
      String(head.length),
      run ? endText(side).replace("complete after ", "") : "no run",
      hosts.length > 0 ? String(sum("posts") - sum("posts_during")) : opsText(posts?.before),
      hosts.length > 0 ? String(sum("posts_during")) : opsText(posts?.during),
      hosts.length > 0 ? String(sum("wakeups")) : "-",
      hosts.length > 0 ? timeText(sum("cpu_ns")) : "-",
      gapText.length > 0 ? gapText.join(", ") : "-",
    ];
  }

  private compare(): Difference {
    if (this.difference) return this.difference;
    const [a, b] = this.store.sides as [Side, Side];
    const it = (this.difference = differenceOf(a, b));
    const differing = it.otherRound + it.only[0];
    if (!it.comparable) {
      this.about.textContent = "other nodes, blocks or root: messages are not compared";
    } else if (differing + it.only[1] === 0) {
      this.about.textContent = `${count(it.same, "block message")}, the same in the same rounds`;
    } else {
      this.about.textContent =
        `${count(it.same, "message")} the same; ${it.otherRound} in another ` +
        `round; ${it.only[0]} only in A, ${it.only[1]} only in B`;
    }
    const headers = headerDifferences(a, b);
    if (headers !== "") this.about.textContent += `; other ${headers}`;
    this.only.checked = it.same > 0 && differing > 0;
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
    const { of } = this.compare();
    this.grids.forEach((grid, i) => {
      grid.dims = this.only.checked ? (message) => of[i]![message] === Differs.Same : null;
      grid.forgetImages();
    });
    this.stage.redraw();
  }

  resize(): void {
    this.compare();
    if (!this.stage.resize()) return;
    const height = this.half - GAP;
    this.plots.forEach((plot) => {
      if (plot instanceof GridPlot) plot.resize(height);
      else if (plot.side.run) plot.resize(height, this.store.end("time"));
    });
    // One scale: the headings of both are as wide.
    this.timeCamera.y.length = Math.max(...this.timelines.map((plot) => plot.rowCount));
    const left = Math.max(...this.plots.map((plot) => plot.left));
    this.plots.forEach((plot) => (plot.left = left));
    this.camera.resize(this.stage.width - left - 8, height - this.plots[0]!.top - 4);
    this.stage.redraw();
  }
  changed(change: Change): void {
    if (change.has("filter") || change.has("theme")) {
      this.plots.forEach((plot) => plot.forgetImages());
    }
    const { selected } = this.store.state;
    if (change.has("selected") && selected) this.plots[selected.side]!.reveal(selected);
    this.stage.redraw();
  }
  /** "g" or "t" says of what, and stands alone where all of it is shown. */
  zoomText(): string {
    const { text } = this.camera;
    const kind = this.isGrids ? "g" : "t";
    return text === "" && kind === this.usual ? "" : `${kind},${text}`;
  }
  setZoom(text: string): void {
    const found = /^([gt]),(.*)$/.exec(text);
    const kind = found ? found[1]! : this.usual;
    this.what.value = kind === "t" && this.store.hasRun ? "timelines" : "grids";
    this.camera.text = found ? found[2]! : "";
    this.stage.redraw();
  }

  private draw(): void {
    const { context, width } = this.stage;
    this.plots.forEach((plot, i) => {
      const top = i * this.half;
      context.fillStyle = currentTheme().ink;
      context.font = "600 12px system-ui, sans-serif";
      context.textAlign = "left";
      context.textBaseline = "middle";
      context.fillText(`${"AB"[i]}: ${this.store.sideName(i)}`, 10, top + GAP / 2 + 1, width - 20);
      plot.draw(top + GAP, this.half - GAP);
    });
  }
}
