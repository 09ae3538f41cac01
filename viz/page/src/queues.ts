// SPDX-License-Identifier: Apache-2.0
//
// The queues view: what is in the queues of one node, per engine, a column per queue. Pointing at
// an entry shows what it waits for and what it enables; marks show where each queue stands.
import { isCompleted, isOver, isStarted } from "./clock";
import { passes } from "./filter";
import { Mark, isOpOf, marksOn, nodeOf, nodesOf } from "./marks";
import { NONE, Side } from "./model";
import { BlockColors } from "./palette";
import { NodeQueues, QueueEntry } from "./queue_table";
import { Change, Store } from "./store";
import { ENGINES, Target } from "./targets";
import { View, make } from "./view";

const ENTRIES_MAX = 1500; // of a queue that are drawn: around where it stands, or what is selected
// Queues stand in several rows if none has more entries than the first, or all no more than the
// second: then it takes less to scroll down than sideways.
const WRAP_MAX = 20;
const WRAP_SUM_MAX = 160;

/** Whose queues its run was on. */
function engineOf(side: Side): string {
  const { run } = side.head;
  if (!run) return "";
  if (run.executor === "cpu") return "cpu";
  return run.detail.includes("fabric:") ? "deferred" : "nic";
}

export class QueuesView implements View {
  readonly name = "queues";
  readonly label = "Queues";
  readonly element = make("div", { class: "view" });
  private readonly engine = make("select", { "aria-label": "Engine" });
  private readonly nodeInput = make("input", { type: "number", min: "0", "aria-label": "Node" });
  private readonly note = make("span", { class: "about" });
  private readonly body = make("div", { class: "queues", tabindex: "0" });
  private readonly arrows = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  private node = 0;
  private shown: NodeQueues | null = null;
  private rows: HTMLElement[][] = [];
  private columns: HTMLElement[] = [];
  private first: number[] = []; // by queue: the first entry that is drawn
  private madeFor = "";

  constructor(private readonly store: Store) {
    this.engine.onchange = () => {
      const { selected } = store.state;
      // An entry is one engine's; its node is all engines'.
      if (selected?.kind === "entry") {
        store.select({ side: selected.side, kind: "node", node: selected.node });
      }
      store.set({ engine: this.engine.value });
    };
    this.nodeInput.onchange = () => {
      const node = Math.min(
        store.side.header.nodes - 1,
        Math.max(0, Number(this.nodeInput.value) | 0),
      );
      store.select({ side: store.state.side, kind: "node", node });
    };
    this.arrows.setAttribute("class", "arrows");
    this.arrows.setAttribute("aria-hidden", "true");
    this.element.append(
      make(
        "div",
        { class: "bar" },
        make("label", {}, "node", this.nodeInput),
        make("label", {}, "engine", this.engine),
        this.note,
      ),
      this.body,
    );
  }

  resize(): void {
    this.build();
  }
  setZoom(): void {}

  changed(change: Change): void {
    this.build();
    if (change.has("clock")) this.markClock();
    if (change.has("filter")) this.markFilter();
    if (change.has("hovered")) this.markTarget(true);
    if (change.has("selected")) {
      this.markTarget(false);
      this.reveal();
    }
  }

  /** Makes the columns, if another node or engine is shown than before. */
  private build(): void {
    const { store } = this;
    const { selected } = store.state;
    if (selected && selected.side === store.state.side) {
      const node = this.nodeOfSelection(selected);
      if (node !== NONE) this.node = node;
    }
    this.node = Math.min(this.node, store.side.header.nodes - 1);
    const { queues } = store.side;
    const own = queues.enginesOf(this.node);
    const wished =
      selected?.kind === "entry" ? selected.engine : store.state.engine || engineOf(store.side);
    const engine = own.includes(wished) ? wished : (own[0] ?? "");
    const key = JSON.stringify([store.state.side, this.node, engine]);
    if (key === this.madeFor) return;
    this.madeFor = key;
    const shown = queues.find(engine, this.node) ?? null;
    this.shown = shown;
    this.first = [];
    this.nodeInput.max = String(store.side.header.nodes - 1);
    this.nodeInput.value = String(this.node);
    const { engines } = store.side.queues;
    this.engine.replaceChildren(
      ...engines.map((engine) => make("option", { value: engine }, ENGINES[engine] ?? engine)),
    );
    if (shown) this.engine.value = shown.engine;
    this.engine.disabled = engines.length < 2;
    this.rows = [];
    this.columns = [];
    this.body.replaceChildren();
    this.arrows.replaceChildren();
    if (!shown) {
      this.note.textContent =
        store.side.head.queues_note || `there are no queues of node ${this.node}`;
      return;
    }
    const entries = shown.queues.reduce((sum, queue) => sum + queue.entries.length, 0);
    this.note.textContent = `${shown.queues.length} queues, ${entries} entries`;
    const most = Math.max(0, ...shown.queues.map((queue) => queue.entries.length));
    const isShort = most <= WRAP_MAX || entries <= WRAP_SUM_MAX;
    const columns = make("div", { class: isShort ? "columns wrap" : "columns" });
    shown.queues.forEach((queue, index) => columns.append(this.column(shown, index, queue)));
    columns.append(this.arrows);
    this.body.append(columns);
    this.markClock();
    this.markFilter();
    this.markTarget(true);
    this.markTarget(false);
    this.reveal();
  }

  private markFilter(): void {
    const { shown, store } = this;
    if (!shown) return;
    const { side } = store;
    const { filter } = store.state;
    shown.queues.forEach((queue, q) =>
      this.rows[q]!.forEach((row, i) => {
        const id = queue.entries[i]!.op;
        const op = typeof id === "number" ? side.opBegin[shown.node]! + id : NONE;
        const isOut =
          op !== NONE &&
          !passes(
            filter,
            side.from[side.channel[op]!]!,
            side.to[side.channel[op]!]!,
            side.block[op]!,
            side.round[op]!,
            side.countOf(op),
          );
        row.classList.toggle("out", isOut);
      }),
    );
  }

  /** Of a message or channel that the shown node takes part in, the node stays. */
  private nodeOfSelection(selected: Target): number {
    const { side } = this.store;
    if (selected.kind === "message" && side.fromOf(selected.message) === this.node)
      return this.node;
    if (selected.kind === "link" && side.from[selected.channel] === this.node) return this.node;
    return nodeOf(side, selected);
  }

  private column(shown: NodeQueues, index: number, queue: NodeQueues["queues"][0]): HTMLElement {
    const list = make("ol", { class: "entries" });
    const rows: HTMLElement[] = []; // with holes, for those that are not drawn
    const first = (this.first[index] ??= 0);
    const end = Math.min(queue.entries.length, first + ENTRIES_MAX);
    for (let at = first; at < end; ++at) {
      const row = this.entry(shown, index, at, queue.entries[at]!);
      rows[at] = row;
      list.append(row);
    }
    this.rows[index] = rows;
    const note = (count: number, where: string) =>
      count > 0 ? [make("p", { class: "note" }, `${count} more ${where}`)] : [];
    const column = make(
      "section",
      { class: "queue" },
      make("h3", {}, queue.title),
      make("p", { class: "note" }, queue.detail),
      ...note(first, "before these"),
      list,
      ...note(queue.entries.length - end, "behind these"),
    );
    this.columns[index]?.replaceWith(column);
    this.columns[index] = column;
    return column;
  }
  /** Draws other entries of a queue, if the one at `at` is not drawn. */
  private bringIn(queue: number, at: number): void {
    const entries = this.shown!.queues[queue]!.entries;
    if (at >= entries.length || this.rows[queue]![at]) return;
    this.first[queue] = Math.max(0, Math.min(at - ENTRIES_MAX / 2, entries.length - ENTRIES_MAX));
    this.column(this.shown!, queue, this.shown!.queues[queue]!);
    this.markFilter();
    this.markTarget(true);
    this.markTarget(false);
  }

  private entry(shown: NodeQueues, queue: number, index: number, entry: QueueEntry): HTMLElement {
    const { store } = this;
    const { side } = store;
    const target: Target = {
      side: store.state.side,
      kind: "entry",
      engine: shown.engine,
      node: shown.node,
      queue,
      index,
    };
    const button = make(
      "button",
      { type: "button", class: "entry" },
      make("span", { class: "what" }, entry.what),
    );
    if (entry.detail) button.append(make("span", { class: "detail" }, entry.detail));
    if (entry.fields) button.title = entry.fields;
    const row = make("li", { "data-class": entry.class }, button);
    if (entry.rearm) row.dataset["rearm"] = String(entry.rearm);
    if (typeof entry.op === "number" && entry.class !== "wait") {
      const block = side.block[side.opBegin[shown.node]! + entry.op]!;
      if (block !== NONE && block !== undefined) {
        button.style.setProperty("--block", BlockColors.of(side.header.blocks).fill(block));
      }
    }
    button.onclick = () => store.select(target);
    button.onpointerenter = button.onfocus = () => {
      store.hover(target);
      this.point(queue, index);
    };
    button.onpointerleave = button.onblur = () => {
      store.hover(null);
      this.point(NONE, NONE);
    };
    return row;
  }

  /** Arrows from what the entry waits for, and to what it enables. */
  private point(queue: number, index: number): void {
    this.arrows.replaceChildren();
    for (const row of this.body.querySelectorAll(".linked")) row.classList.remove("linked");
    const entry = this.shown?.queues[queue]?.entries[index];
    const row = this.rows[queue]?.[index];
    if (!entry || !row) return;
    if (entry.waits_for) this.arrow(entry.waits_for, [queue, index], "wait");
    if (entry.enables) this.arrow([queue, index], entry.enables, "enable");
    this.shown!.queues.forEach((other, q) =>
      other.entries.forEach((it, i) => {
        if (it.waits_for?.[0] === queue && it.waits_for[1] === index) {
          this.arrow([queue, index], [q, i], "wait");
        }
      }),
    );
  }

  private arrow(from: [number, number], to: [number, number], kind: string): void {
    const start = this.rows[from[0]]?.[from[1]];
    const end = this.rows[to[0]]?.[to[1]];
    if (!start || !end) return;
    start.classList.add("linked");
    end.classList.add("linked");
    const origin = this.arrows.parentElement!.getBoundingClientRect();
    const a = start.getBoundingClientRect();
    const b = end.getBoundingClientRect();
    const toRight = b.left >= a.right - 1;
    const same = from[0] === to[0];
    const x0 = (same || !toRight ? a.left : a.right) - origin.left;
    const x1 = (same || toRight ? b.left : b.right) - origin.left;
    const y0 = (a.top + a.bottom) / 2 - origin.top;
    const y1 = (b.top + b.bottom) / 2 - origin.top;
    const reach = same ? -18 : toRight ? 30 : -30;
    const back = same ? -18 : toRight ? -30 : 30;
    const tip = x1 > x1 + back ? -6 : 6;
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("class", kind);
    path.setAttribute(
      "d",
      `M${x0} ${y0}C${x0 + reach} ${y0} ${x1 + back} ${y1} ${x1} ${y1}` +
        `m${tip} -4L${x1} ${y1}l${tip} 4`,
    );
    this.arrows.append(path);
  }

  /** Whether what an entry stands for has happened, so that what waits for it may go on. */
  private hasHappened([queue, index]: [number, number]): boolean {
    const { shown, store } = this;
    const entry = shown!.queues[queue]?.entries[index];
    if (!entry) return true;
    if (typeof entry.op === "number" && entry.class !== "wait" && entry.class !== "enable") {
      const op = store.side.opBegin[shown!.node]! + entry.op;
      return isCompleted(store.side, op, store.state.clock);
    }
    return entry.waits_for ? this.hasHappened(entry.waits_for) : true;
  }
  /** Whether its queue stands behind an entry. */
  private isPassed(entry: QueueEntry): boolean {
    const { side } = this.store;
    const { clock } = this.store.state;
    const op = typeof entry.op === "number" ? side.opBegin[this.shown!.node]! + entry.op : NONE;
    if (entry.class === "nop") return false;
    if (entry.class === "wait" || entry.class === "enable") {
      if (entry.waits_for) return this.hasHappened(entry.waits_for);
      return entry.class === "enable" || op === NONE || isStarted(side, op, clock);
    }
    if (op === NONE) return true;
    return side.isSend[op] ? isStarted(side, op, clock) : isCompleted(side, op, clock);
  }

  /** Where each queue stands: at the first entry that is not passed. */
  private markClock(): void {
    const { shown, store } = this;
    if (!shown) return;
    const { side } = store;
    const { clock } = store.state;
    shown.queues.forEach((queue, q) => {
      // Where no entry has an op, nothing says where the queue stands.
      const isKnown = queue.entries.some((entry) => typeof entry.op === "number");
      let at = queue.entries.length;
      if (isKnown && !isOver(side, clock)) {
        const first = queue.entries.findIndex((entry) => !this.isPassed(entry));
        if (first >= 0) at = first;
      }
      this.bringIn(q, at);
      this.rows[q]!.forEach((row, i) => {
        row.classList.toggle("done", isKnown && i < at && !isOver(side, clock));
        row.classList.toggle("now", i === at);
      });
      const row = this.rows[q]![at];
      if (row && store.state.playing) row.scrollIntoView({ block: "nearest" });
    });
  }

  /** Whether an entry is one of a mark's; of another node, whatever goes there or comes from there. */
  private isEntryOf(mark: Mark, queue: number, index: number, op: number): boolean {
    const { side } = this.store;
    const { target } = mark;
    const { engine, node } = this.shown!;
    if (target.kind === "entry" && target.engine === engine && target.node === node) {
      return target.queue === queue && target.index === index;
    }
    if (op === NONE) return false;
    if (target.kind === "node") return target.node !== node && side.peerOf(op) === target.node;
    return isOpOf(side, mark, op);
  }

  /** Marks what is pointed at, or else what is selected. */
  private markTarget(isHover: boolean): void {
    const { store, shown } = this;
    if (!shown) return;
    const { side } = store;
    const name = isHover ? "hovered" : "selected";
    for (const row of this.body.querySelectorAll(`li.${name}`)) row.classList.remove(name);
    const mark = marksOn(store, store.state.side).find((it) => it.isHover === isHover);
    if (isHover) {
      const isNode = mark !== undefined && nodesOf(side, mark).includes(shown.node);
      this.nodeInput.classList.toggle("pointed", isNode);
    }
    if (!mark) return;
    shown.queues.forEach((queue, q) =>
      this.rows[q]!.forEach((row, i) => {
        const id = queue.entries[i]!.op;
        const op = typeof id === "number" ? side.opBegin[shown.node]! + id : NONE;
        if (this.isEntryOf(mark, q, i, op)) row.classList.add(name);
      }),
    );
  }

  private reveal(): void {
    const { selected } = this.store.state;
    if (selected?.kind === "entry" && this.shown?.node === selected.node) {
      if (selected.engine === this.shown.engine) this.bringIn(selected.queue, selected.index);
    }
    this.body.querySelector("li.selected")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
}
