// SPDX-License-Identifier: Apache-2.0
//
// Store: what all views share: the selection, the clock, the filter, which views are shown. Views
// subscribe; several changes before the next frame arrive as one.
import { Filter, noFilter } from "./filter";
import { atNextFrame } from "./later";
import { Side } from "./model";
import { Target, sameTarget } from "./targets";
import { Rows } from "./timeline_frame";

export type ViewName = "grid" | "tree" | "graph" | "queues" | "timeline" | "sides";
export type ClockKind = "rounds" | "time";
export type Theme = "auto" | "light" | "dark";

export const SPEEDS = [0.25, 0.5, 1, 2, 4, 16, 64];

/**
 * Rounds: the round that happens now; as many as the plan has rounds: all is over. Time: ns since
 * the start of the transfer.
 */
export interface Clock {
  kind: ClockKind;
  value: number;
}

export interface State {
  views: [ViewName, ViewName];
  side: number;
  selected: Target | null;
  hovered: Target | null;
  clock: Clock;
  playing: boolean;
  speed: number;
  filter: Filter;
  theme: Theme;
  engine: string;
  rows: Rows; // of timelines
  across: "time" | "rounds"; // of the op graph
  /** What the op graph is around, whatever else is selected; null: the selection. */
  kept: Target | null;
  /** Both sides dim what is the same; null: as it comes. */
  dims: boolean | null;
  /** How each view is zoomed, as it writes it itself; "" as it comes. */
  zoom: Partial<Record<ViewName, string>>;
}

export type Change = ReadonlySet<keyof State>;

export class Store {
  readonly state: State;
  private readonly listeners: ((change: Change) => void)[] = [];
  private pending = new Set<keyof State>();
  /** Where it was pointed last: the panel does not follow its own links. */
  hoveredIn: "view" | "panel" = "view";

  constructor(readonly sides: Side[]) {
    const rounds = Math.max(...sides.map((side) => side.header.rounds));
    this.state = {
      views: ["grid", "tree"],
      side: 0,
      selected: null,
      hovered: null,
      clock: { kind: "rounds", value: rounds },
      playing: false,
      speed: 1,
      filter: noFilter,
      theme: "auto",
      engine: "",
      rows: "nodes",
      across: "time",
      kept: null,
      dims: null,
      zoom: {},
    };
  }

  /** The side that single views show. */
  get side(): Side {
    return this.sides[this.state.side]!;
  }
  sideOf(target: Target): Side {
    return this.sides[target.side]!;
  }
  /** What tells a side from the other: its plan, or its run if the plans have one name. */
  sideName(index: number): string {
    const { label } = this.sides[index]!.head;
    const isShared = this.sides.some((side, i) => i !== index && side.head.label === label);
    const nameOf = ({ head: { label, run } }: Side) =>
      isShared && run ? run.label : run ? `${label}, ${run.label}` : label;
    const names = [
      this.sides.map(nameOf),
      this.sides.map((side) => `${nameOf(side)}, ${side.header.algorithm}`),
    ];
    const telling = names.find((all) => new Set(all).size === all.length);
    const name = nameOf(this.sides[index]!);
    return telling?.[index] ?? (index === 0 ? name : `${name} (${index + 1})`);
  }
  /** The end of the clock. */
  end(kind: ClockKind = this.state.clock.kind): number {
    if (kind === "rounds") return Math.max(...this.sides.map((side) => side.header.rounds));
    return Math.max(0, ...this.sides.map((side) => side.duration));
  }
  /** Until when something is shown: hosts may wake up after the last op. */
  get timeShown(): number {
    const ends = this.sides.map((side) => side.head.run?.wakeups_until_ns ?? 0);
    return Math.max(1.02 * this.end("time"), 1.005 * Math.max(...ends));
  }
  get hasRun(): boolean {
    return this.sides.some((side) => side.hasRun);
  }

  on(listener: (change: Change) => void): void {
    this.listeners.push(listener);
  }

  set(patch: Partial<State>): void {
    for (const key of Object.keys(patch) as (keyof State)[]) {
      if (this.state[key] === patch[key]) continue;
      if (this.pending.size === 0) atNextFrame(() => this.flush());
      this.pending.add(key);
    }
    Object.assign(this.state, patch);
  }

  select(target: Target | null): void {
    if (sameTarget(target, this.state.selected)) return;
    this.set(target ? { selected: target, side: target.side } : { selected: null });
  }
  hover(target: Target | null, where: "view" | "panel" = "view"): void {
    this.hoveredIn = where;
    if (!sameTarget(target, this.state.hovered)) this.set({ hovered: target });
  }
  setClock(value: number): void {
    const { kind } = this.state.clock;
    const clamped = Math.min(this.end(), Math.max(0, value));
    const at = kind === "rounds" ? Math.round(clamped) : clamped;
    if (at !== this.state.clock.value) this.set({ clock: { kind, value: at } });
  }
  setClockKind(kind: ClockKind): void {
    if (kind === this.state.clock.kind || (kind === "time" && !this.hasRun)) return;
    const share = this.state.clock.value / Math.max(1, this.end());
    const value = share * this.end(kind);
    this.set({ clock: { kind, value: kind === "rounds" ? Math.round(value) : value } });
  }

  private flush(): void {
    const change = this.pending;
    this.pending = new Set();
    for (const listener of this.listeners) listener(change);
  }
}
