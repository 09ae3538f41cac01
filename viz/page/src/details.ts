// SPDX-License-Identifier: Apache-2.0
//
// The details panel: all that is known of what is pointed at, or else of what is selected, in the
// words of `prepost explain`. Whatever a line names can be clicked.
import { Phase, phaseOf } from "./clock";
import { indicesOf } from "./indices";
import { after } from "./later";
import { messageOf, messagesOf } from "./marks";
import { NONE, Side } from "./model";
import { planFacts } from "./plan_facts";
import { runLines } from "./run_words";
import { Change, Clock, Store } from "./store";
import { Line, Target, count, linkText, sameTarget, targetText } from "./targets";
import { Value, valueOf, valueText } from "./values";
import { make } from "./view";
import { Words } from "./words";

const LIST_MAX = 60;
const NODES_MAX = 24;
const REST_MS = 120; // on a target, before the panel turns to it
const LEAVE_MS = 300; // on the way to the panel

/** Two parts with an empty line between them. */
const above = (first: Line[], second: Line[]): Line[] =>
  first.length === 0 ? second : [...first, [], ...second];

const OF_THE_MODEL: Line = ["Times without a unit are the model's: a block takes 1."];

function messageLine(side: Side, words: Words, message: number): Line {
  return [
    "  ",
    words.message(message),
    `, round ${side.roundOf(message)}, arrives at ${side.delivery[message]}` +
      (side.isCombine(side.recv[message]!) ? " and is combined" : "") +
      (side.slack[message] === 0 ? "" : `, slack ${side.slack[message]}`),
  ];
}

function listLines(side: Side, words: Words, messages: number[]): Line[] {
  const lines = messages.slice(0, LIST_MAX).map((message) => messageLine(side, words, message));
  if (messages.length > LIST_MAX) lines.push([`  ... and ${messages.length - LIST_MAX} more`]);
  return lines;
}

/** Nodes with links, up to a number. */
function nodesLine(side: number, nodes: number[]): Line {
  const line: Line = [];
  nodes
    .slice(0, NODES_MAX)
    .forEach((node, i) =>
      line.push(i === 0 ? "" : ", ", { text: String(node), target: { side, kind: "node", node } }),
    );
  if (nodes.length > NODES_MAX) line.push(", ...");
  return line;
}

/** Who has a block at the clock. */
function ownersLine(side: Side, target: Target & { kind: "block" }, clock: Clock): Line {
  const owners = nodesWith(side, target.block, clock, Value.Final);
  const all = owners.length === side.header.nodes;
  return [
    `at the clock ${owners.length} of ${count(side.header.nodes, "node")} ` +
      `${owners.length === 1 ? "has" : "have"} it${all || owners.length === 0 ? "" : ": "}`,
    ...(all ? [] : nodesLine(target.side, owners)),
  ];
}

function nodesWith(side: Side, block: number, clock: Clock, value: Value): number[] {
  const out: number[] = [];
  for (let node = 0; node < side.header.nodes; ++node)
    if (valueOf(side, node, block, clock) === value) out.push(node);
  return out;
}

/** What nodes have of a block at the clock, those first that are through. */
function valueLines(side: Side, target: Target & { kind: "block" }, clock: Clock): Line[] {
  const lines: Line[] = [["at the clock"]];
  for (const value of [Value.Final, Value.Partly, Value.Own]) {
    const nodes = nodesWith(side, target.block, clock, value);
    if (nodes.length === 0) continue;
    const where = nodes.length === 1 ? "node" : `${nodes.length} nodes:`;
    lines.push([`  ${valueText(side, value)} at ${where} `, ...nodesLine(target.side, nodes)]);
  }
  return lines;
}

function blockLines(store: Store, side: Side, words: Words, target: Target): Line[] {
  if (target.kind !== "block") return [];
  const { block } = target;
  const { clock } = store.state;
  const messages = messagesOf(side, target);
  messages.sort((a, b) => side.roundOf(a) - side.roundOf(b) || side.toOf(a) - side.toOf(b));
  const lines: Line[] = side.head.collective
    ? [...words.blockLines(block), ...valueLines(side, target, clock)]
    : [[`block ${block}, ${count(side.blockBytes(block), "byte")}`]];
  if (messages.length === 0) return lines;
  const first = messages.reduce((a, b) => (side.delivery[b]! < side.delivery[a]! ? b : a));
  const last = messages.reduce((a, b) => (side.delivery[b]! >= side.delivery[a]! ? b : a));
  lines.push([
    "first arrives at ",
    `${side.delivery[first]}: `,
    words.message(first),
    ", last at ",
    `${side.delivery[last]}: `,
    words.message(last),
  ]);
  const moving = messages.filter((message) => phaseOf(side, message, clock) === Phase.OnWire);
  const where: Line = side.head.collective ? [] : ownersLine(side, target, clock);
  if (moving.length > 0) {
    where.push(where.length > 0 ? "; on the wire: " : "on the wire at the clock: ");
    moving.slice(0, 8).forEach((m, i) => where.push(i === 0 ? "" : ", ", words.message(m)));
    if (moving.length > 8) where.push(", ...");
  }
  if (where.length > 0) lines.push(where);
  lines.push(
    [],
    [`its way: ${count(messages.length, "message")}`],
    ...listLines(side, words, messages),
  );
  return lines;
}

function roundLines(side: Side, words: Words, round: number): Line[] {
  const { begin, list } = indicesOf(side).byRound;
  const all = Array.from(list.subarray(begin[round]!, begin[round + 1]!));
  const blocks = all.filter((message) => !side.isCredit(message));
  return [
    [
      `round ${round}: ${count(blocks.length, side.countMax > 1 ? "message" : "block")}, ` +
        `${count(all.length - blocks.length, "credit")}`,
    ],
    ...listLines(side, words, blocks),
  ];
}

function entryLines(store: Store, side: Side, words: Words, target: Target): Line[] {
  if (target.kind !== "entry") return [];
  const all = side.queues.find(target.engine, target.node)?.queues;
  const queue = all?.[target.queue];
  const entry = queue?.entries[target.index];
  if (!all || !queue || !entry) return [];
  const lines: Line[] = [
    [`${entry.what}${entry.detail ? `: ${entry.detail}` : ""}`],
    [`entry ${target.index} of ${queue.title}, node ${target.node} (${target.engine})`],
    ...(entry.fields ? [[`its bytes: ${entry.fields}`]] : []),
  ];
  const refer = (text: string, at: [number, number]) => {
    const other = all[at[0]]?.entries[at[1]];
    if (!other) return;
    lines.push([
      `${text}: `,
      {
        text: `${other.what} (entry ${at[1]} of ${all[at[0]]!.title})`,
        target: { ...target, queue: at[0], index: at[1] },
      },
    ]);
  };
  if (entry.waits_for) refer("waits for", entry.waits_for);
  if (entry.enables) refer("enables up to", entry.enables);
  if (entry.rearm) lines.push([`the ring is written again here: part ${entry.rearm}`]);
  const message = messageOf(store.sideOf(target), target);
  if (message !== NONE) {
    const op = side.opBegin[target.node]! + entry.op!;
    lines.push(
      ...runLines(store, { side: target.side, kind: "op", op }, "its op in the run"),
      [],
      ...words.explain({ side: target.side, kind: "op", op }),
    );
  }
  return lines;
}

/** All lines on a target. */
function linesOn(store: Store, target: Target): Line[] {
  const side = store.sideOf(target);
  const words = new Words(side, target.side);
  switch (target.kind) {
    case "block":
      return blockLines(store, side, words, target);
    case "round":
      return roundLines(side, words, target.round);
    case "entry":
      return entryLines(store, side, words, target);
    case "link": {
      const messages = messagesOf(side, target);
      return [
        [`channel ${linkText(side, target.channel)}: ${count(messages.length, "message")}`],
        ...listLines(side, words, messages),
      ];
    }
    case "op":
    case "message":
      return [...above(runLines(store, target), words.explain(target)), [], OF_THE_MODEL];
    case "node": {
      const roles = side.head.collective ? words.roleLines(target.node) : [];
      const rest = above(runLines(store, target), words.explain(target));
      return [...above(roles, rest), [], OF_THE_MODEL];
    }
  }
}

export class Details {
  readonly element = make("aside", { class: "details", "aria-label": "Details" });
  private pointed: Target | null = null; // that it is about, instead of the selection
  private isInside = false; // the pointer
  private cancelRest = () => {};
  private scrolled = 0; // where the selection's text was left
  private shown = "";

  constructor(private readonly store: Store) {
    this.element.addEventListener("pointerenter", () => {
      this.isInside = true;
      this.cancelRest();
    });
    this.element.addEventListener("pointerleave", () => {
      this.isInside = false;
      store.hover(null);
      this.follow();
    });
    this.render();
  }

  changed(change: Change): void {
    if (change.has("hovered")) this.follow();
    if (change.has("selected") || change.has("side")) {
      this.point(null);
      this.element.scrollTop = 0;
    } else if (change.has("clock")) {
      this.render();
    }
  }

  /**
   * Turns to what the pointer rests on. It stays while the pointer is here, so that its links can
   * be reached; what these point at is marked in the views and changes nothing here.
   */
  private follow(): void {
    this.cancelRest();
    const { hovered } = this.store.state;
    if (this.store.hoveredIn === "panel" || sameTarget(hovered, this.pointed)) return;
    if (this.isInside && !hovered) return;
    const rest = hovered ? REST_MS : LEAVE_MS;
    this.cancelRest = after(rest, () => this.point(hovered));
  }
  private point(target: Target | null): void {
    this.cancelRest();
    if (!this.pointed) this.scrolled = this.element.scrollTop;
    this.pointed = sameTarget(target, this.store.state.selected) ? null : target;
    this.render();
    this.element.scrollTop = this.pointed ? 0 : this.scrolled;
  }

  private render(): void {
    const { selected, clock } = this.store.state;
    const target = this.pointed ?? selected;
    // Only a block's lines change with the clock.
    const key = JSON.stringify([
      target,
      selected,
      target?.kind === "block" ? clock : 0,
      this.store.state.side,
    ]);
    if (key === this.shown) return;
    this.shown = key;
    this.element.replaceChildren();
    if (this.pointed && selected) this.element.append(this.selectedLine(selected));
    if (!target) this.renderPlan();
    else this.element.append(this.heading(target), this.renderLines(linesOn(this.store, target)));
  }

  private nameOf(target: Target): string {
    const kind = target.kind === "op" || target.kind === "message" ? `${target.kind} ` : "";
    return `${kind}${targetText(this.store.sideOf(target), target)}`;
  }
  private closeButton(): HTMLElement {
    const close = make(
      "button",
      { type: "button", class: "close", "aria-label": "Clear the selection" },
      "\u00d7",
    );
    close.onclick = () => this.store.select(null);
    return close;
  }
  /** It stays while something else is pointed at. */
  private selectedLine(selected: Target): HTMLElement {
    const name = make("button", { type: "button", class: "link" }, this.nameOf(selected));
    name.onclick = () => this.point(null);
    const text = make("span", {}, "selected: ", name);
    return make("div", { class: "details-top selected" }, text, this.closeButton());
  }
  private heading(target: Target): HTMLElement {
    const heading = make("h2", {}, this.nameOf(target));
    const top = make("div", { class: "details-top" }, heading);
    if (this.pointed) top.append(make("span", { class: "note" }, "pointed at"));
    if (this.store.sides.length > 1) {
      top.append(make("span", { class: "note" }, this.store.sideName(target.side)));
    }
    if (!this.pointed) top.append(this.closeButton());
    return top;
  }

  private renderLines(lines: Line[]): HTMLElement {
    const body = make("div", { class: "lines" });
    for (const line of lines) {
      const row = make("div", { class: "line" });
      if (line.length === 0) row.append("\u00a0");
      for (const piece of line) {
        if (typeof piece === "string") {
          row.append(piece);
          continue;
        }
        const link = make("button", { type: "button", class: "link" }, piece.text);
        link.onclick = () => {
          // the link goes away and will not say that it is left
          this.store.hover(null, "panel");
          this.store.select(piece.target);
        };
        link.onpointerenter = link.onfocus = () => this.store.hover(piece.target, "panel");
        link.onpointerleave = link.onblur = () => this.store.hover(null, "panel");
        row.append(link);
      }
      body.append(row);
    }
    return body;
  }

  /** Nothing is selected: the plan as a whole, and what can be done. */
  private renderPlan(): void {
    const { side } = this.store;
    const list = make("dl", { class: "facts" });
    for (const [name, value] of planFacts(side))
      list.append(make("dt", {}, name), make("dd", {}, value));
    this.element.append(
      make("div", { class: "details-top" }, make("h2", {}, side.head.label)),
      list,
      make(
        "p",
        { class: "note" },
        "Point at anything, or click it to keep it here. Wheel or pinch " +
          "zooms, a drag moves, a double click shows all again. Keys: space plays, left and " +
          "right step, home and end go to the ends, + - 0 zoom, / searches, Esc clears.",
      ),
    );
  }
}
