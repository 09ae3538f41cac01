// SPDX-License-Identifier: Apache-2.0
//
// Store: what all views share: the selection, the clock, the filter, which views are shown. Views
// subscribe; several changes before the next frame arrive as one.
import { Side } from "./model";
import { Target, sameTarget } from "./targets";
import { Filter, noFilter } from "./filter";

export type ViewName = "grid" | "tree" | "graph" | "queues" | "timeline" | "sides";
export type ClockKind = "rounds" | "time";
export type Theme = "auto" | "light" | "dark";

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
  /** How each view is zoomed, as it writes it itself; "" as it comes. */
  zoom: Partial<Record<ViewName, string>>;
}

export type Change = ReadonlySet<keyof State>;

export class Store {
  readonly state: State;
  private readonly listeners: ((change: Change) => void)[] = [];
  private pending = new Set<keyof State>();

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
  /** What tells a side from the other: its plan, or its run if the plans are the same. */
  sideName(index: number): string {
    const { label, run } = this.sides[index]!.head;
    const isShared = this.sides.some((side, i) => i !== index && side.head.label === label);
    return isShared && run ? run.label : run ? `${label}, ${run.label}` : label;
  }
  /** The end of the clock. */
  end(kind: ClockKind = this.state.clock.kind): number {
    if (kind === "rounds") return Math.max(...this.sides.map((side) => side.header.rounds));
    return Math.max(0, ...this.sides.map((side) => side.run?.duration ?? 0));
  }
  get hasRun(): boolean {
    return this.sides.some((side) => side.run !== null);
  }

  on(listener: (change: Change) => void): void {
    this.listeners.push(listener);
  }

  set(patch: Partial<State>): void {
    for (const key of Object.keys(patch) as (keyof State)[]) {
      if (this.state[key] === patch[key]) continue;
      if (this.pending.size === 0) requestAnimationFrame(() => this.flush());
      this.pending.add(key);
    }
    Object.assign(this.state, patch);
  }

  select(target: Target | null): void {
    if (sameTarget(target, this.state.selected)) return;
    this.set(target ? { selected: target, side: target.side } : { selected: null });
  }
  hover(target: Target | null): void {
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

  /** What views mark: what is pointed at, else what is selected. */
  get marked(): Target | null {
    return this.state.hovered ?? this.state.selected;
  }

  private flush(): void {
    const change = this.pending;
    this.pending = new Set();
    for (const listener of this.listeners) listener(change);
  }
}
