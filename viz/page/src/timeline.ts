// SPDX-License-Identifier: Apache-2.0
//
// The timeline view: the run of the side that is shown, and how long sends wait beyond their cause.
import { Camera, attachGestures } from "./camera";
import { timeText } from "./clock";
import { shortText } from "./marks";
import { REASONS } from "./palette";
import { endText, runText } from "./plan_facts";
import { gapsOf } from "./run_bars";
import { Change, Store } from "./store";
import { opText } from "./targets";
import { Rows } from "./timeline_frame";
import { TimelinePlot } from "./timeline_plot";
import { Stage, View, make } from "./view";

export class TimelineView implements View {
  readonly name = "timeline";
  readonly label = "Timeline";
  readonly element = make("div", { class: "view" });
  private readonly stage: Stage;
  private readonly plots: TimelinePlot[];
  private readonly rows = make("select", { "aria-label": "Rows" });
  private readonly about = make("span", { class: "about" });
  private readonly gaps = make("details", { class: "gaps" });
  private shownSide = -1;

  constructor(private readonly store: Store) {
    this.stage = new Stage("Timeline of the run", () => this.plot.draw(0, this.stage.height));
    this.plots = store.sides.map(
      (_, side) => new TimelinePlot(store, side, this.stage, new Camera()),
    );
    this.rows.append(
      make("option", { value: "nodes" }, "nodes"),
      make("option", { value: "links" }, "links"),
    );
    this.rows.onchange = () => {
      for (const plot of this.plots) plot.rows = this.rows.value as Rows;
      this.plot.camera.fit();
      this.resize();
    };
    this.gaps.ontoggle = () => this.resize();
    this.element.append(
      make("div", { class: "bar" }, make("label", {}, "rows", this.rows), this.about),
      make("div", { class: "stage" }, this.stage.canvas),
      this.gaps,
    );
    attachGestures(
      this.stage.canvas,
      () => this.plot.camera,
      () => ({ x: this.plot.left, y: this.plot.top }),
      () => {
        store.set({ zoom: { ...store.state.zoom, timeline: this.zoomText() } });
        this.stage.redraw();
      },
    );
    this.stage.pointing(
      store,
      (x, y) => this.plot.find(x, y),
      (target) => shortText(store.sideOf(target), target),
    );
  }

  private get plot(): TimelinePlot {
    return this.plots[this.store.state.side]!;
  }

  resize(): void {
    this.describe();
    if (!this.stage.resize()) return;
    this.plot.resize(this.stage.height, this.store.end("time"));
    this.stage.redraw();
  }
  changed(change: Change): void {
    const { selected } = this.store.state;
    if (change.has("filter") || change.has("theme")) this.plots.forEach((it) => it.forgetImages());
    if (change.has("side")) this.resize();
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

  /** The run in words, and the table of gaps. */
  private describe(): void {
    const { store } = this;
    if (this.shownSide === store.state.side) return;
    this.shownSide = store.state.side;
    const { side } = store;
    this.gaps.replaceChildren();
    if (!side.run) {
      this.about.textContent = "";
      return;
    }
    const run = side.head.run!;
    const { hosts } = run;
    const { before, during } = this.plot.posts;
    this.about.textContent =
      `${run.label}: ${runText(side)}; ${endText(side)}; ops posted: ` +
      `${before} before the transfer, ${during} during it` +
      (hosts && hosts.length > 0
        ? `; hosts handed work over ${hosts.reduce((sum, host) => sum + host.posts_during, 0)} ` +
          "times during it"
        : "");
    const table = make(
      "table",
      {},
      make(
        "tr",
        {},
        ...["a block's send waited last for", "count", "median gap", "sum", "longest"].map((text) =>
          make("th", {}, text),
        ),
      ),
    );
    for (const gap of gapsOf(side)) {
      const link = make(
        "button",
        { type: "button", class: "link" },
        `${timeText(gap.longest)} (${opText(side, gap.longestOp)})`,
      );
      const target = { side: store.state.side, kind: "op", op: gap.longestOp } as const;
      link.onclick = () => store.select(target);
      table.append(
        make(
          "tr",
          {},
          make("td", {}, gap.kind === null ? "-" : REASONS[gap.kind].name),
          make("td", {}, String(gap.count)),
          make("td", {}, timeText(gap.median)),
          make("td", {}, timeText(gap.sum)),
          make("td", {}, link),
        ),
      );
    }
    this.gaps.append(
      make("summary", {}, "Gaps: from the end of what a send waited for to its start"),
      table,
    );
  }
}
