// SPDX-License-Identifier: Apache-2.0
//
// The timeline view: the run of the side that is shown, and how long sends wait beyond their cause.
import { Camera } from "./camera";
import { CanvasView } from "./canvas_view";
import { timeText } from "./clock";
import { after } from "./later";
import { REASONS } from "./palette";
import { endText, runText } from "./plan_facts";
import { WaitKind } from "./reasons";
import { activityOf } from "./run_activity";
import { gapSumsOf } from "./run_gaps";
import { latenessText } from "./run_words";
import { Change, Store } from "./store";
import { Target, opText } from "./targets";
import { Rows } from "./timeline_frame";
import { TimelinePlot } from "./timeline_plot";
import { make } from "./view";

const LATENESS_AFTER_MS = 400;

/** What the rows of timelines are, to be chosen. */
export function rowsSelect(store: Store): HTMLSelectElement {
  const rows = make("select", { "aria-label": "Rows" });
  for (const value of ["nodes", "links"]) rows.append(make("option", { value }, value));
  rows.onchange = () => store.set({ rows: rows.value as Rows });
  return rows;
}

/** Gives plots the rows that are chosen; they show all, if that is new to them. */
export function applyRows(store: Store, plots: TimelinePlot[], select: HTMLSelectElement): boolean {
  const { rows } = store.state;
  select.value = rows;
  const changed = plots.filter((plot) => plot.rows !== rows);
  for (const plot of changed) {
    plot.rows = rows;
    plot.camera.fit();
  }
  return changed.length > 0;
}

/** The name of a reason with its colour. */
export function reasonKey(kind: WaitKind): HTMLElement {
  const { name, color } = REASONS[kind];
  return make(
    "span",
    { class: "key" },
    make("span", { class: "swatch", style: `background: ${color}` }),
    name,
  );
}

export class TimelineView extends CanvasView {
  readonly name = "timeline";
  readonly label = "Timeline";
  private readonly plots: TimelinePlot[];
  private readonly rows: HTMLSelectElement;
  private readonly about = make("span", { class: "about" });
  private readonly gaps = make("details", { class: "gaps" });
  private readonly keys = make("div", { class: "bar legend" });
  private shownSide = -1;

  constructor(store: Store) {
    super(store, "Timeline of the run");
    this.rows = rowsSelect(store);
    this.plots = store.sides.map(
      (_, side) => new TimelinePlot(store, side, this.stage, new Camera()),
    );
    this.gaps.ontoggle = () => this.resize();
    this.assemble(
      [make("div", { class: "bar" }, make("label", {}, "rows", this.rows), this.about), this.keys],
      [this.gaps],
    );
  }

  private get plot(): TimelinePlot {
    return this.plots[this.store.state.side]!;
  }
  protected get camera(): Camera {
    return this.plot.camera;
  }
  protected origin() {
    return { x: this.plot.left, y: this.plot.top };
  }
  protected fitCanvas(): void {
    if (applyRows(this.store, this.plots, this.rows)) this.noteZoom();
    this.plot.resize(this.stage.height);
  }
  protected draw(): void {
    this.plot.draw(0, this.stage.height);
  }
  protected find(x: number, y: number): Target | null {
    return this.plot.find(x, y);
  }
  protected override hintAt(x: number, y: number): string | null {
    return this.plot.stripText(x, y);
  }
  protected reveal(target: Target): void {
    this.plot.reveal(target);
  }

  override resize(): void {
    if (this.element.clientWidth > 0) this.describe();
    super.resize();
  }
  override changed(change: Change): void {
    if (change.has("rows")) this.resize();
    if (change.has("filter") || change.has("theme")) this.plots.forEach((it) => it.forgetImages());
    super.changed(change);
  }

  /** The run in words, and the table of gaps. */
  private describe(): void {
    const { store } = this;
    if (this.shownSide === store.state.side) return;
    this.shownSide = store.state.side;
    const { side } = store;
    this.gaps.replaceChildren();
    this.keys.replaceChildren();
    if (!side.hasRun) {
      this.about.textContent = "";
      return;
    }
    const run = side.head.run!;
    const { hosts } = run;
    const { posts } = activityOf(side);
    this.about.textContent =
      `${run.label}: ${runText(side)}; ${endText(side)}; ops posted: ` +
      `${posts.before} before the transfer, ${posts.times.length} during it` +
      (hosts && hosts.length > 0
        ? `; hosts handed work over ${hosts.reduce((sum, host) => sum + host.posts_during, 0)} ` +
          "times during it"
        : "") +
      (run.step_ns > 1 ? `; times here are rounded down to ${timeText(run.step_ns)}` : "");
    const late = make("span");
    this.about.append(late);
    // Of a million blocks it takes longer than what is drawn may wait for.
    after(LATENESS_AFTER_MS, () => {
      const text = latenessText(side);
      if (text !== "") late.textContent = `; ${text}`;
    });
    const kinds = this.plot.gapKinds;
    this.keys.append(
      ...(kinds.length > 0 ? ["gaps before sends, after:"] : []),
      ...kinds.map(reasonKey),
      make("span", { class: "key" }, make("span", { class: "tick" }), "posted"),
      ...(activityOf(side).wakeups
        ? [make("span", { class: "key" }, make("span", { class: "tick woken" }), "woke up")]
        : []),
    );
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
    for (const gap of gapSumsOf(side)) {
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
          make("td", {}, reasonKey(gap.kind)),
          make("td", {}, String(gap.count)),
          make("td", {}, timeText(gap.median)),
          make("td", {}, timeText(gap.sum)),
          make("td", {}, link),
        ),
      );
    }
    this.gaps.append(
      make(
        "summary",
        {},
        "Gaps: how long sends start after the last that they waited for, by what that was",
      ),
      table,
    );
  }
}
