// SPDX-License-Identifier: Apache-2.0
//
// The link: the whole state in location.hash, so that a page can be shared as it is seen.
import { readZoom } from "./camera";
import { Head } from "./decode";
import { FIELDS, noFilter, parseFilter, withField } from "./filter";
import { onSide } from "./marks";
import { SideHead } from "./model";
import { Clock, SPEEDS, State, Store, Theme, ViewName } from "./store";
import { ENGINES, Target, parseTarget, targetText } from "./targets";
import { Rows } from "./timeline_frame";

/** Only what differs from a page that was just opened. */
export function writeLink(store: Store): string {
  const { state } = store;
  const out = new URLSearchParams();
  out.set("view", state.views.join(","));
  if (state.side !== 0) out.set("side", String(state.side));
  if (state.selected) out.set("at", targetText(store.sideOf(state.selected), state.selected));
  if (state.clock.kind === "time") out.set("time", String(Math.round(state.clock.value)));
  else if (state.clock.value < store.end()) out.set("round", String(state.clock.value));
  for (const name of FIELDS) {
    if (state.filter[name]) out.set(name, state.filter.text[name].replace(/\s+/g, ""));
  }
  if (state.engine !== "") out.set("engine", state.engine);
  if (state.rows !== "nodes") out.set("rows", state.rows);
  if (state.across !== "time") out.set("across", state.across);
  const kept = state.kept && onSide(store.sides, state.kept, state.side);
  if (kept) out.set("keep", targetText(store.side, kept));
  if (state.dims !== null) out.set("dim", state.dims ? "same" : "nothing");
  if (state.speed !== 1) out.set("speed", String(state.speed));
  if (state.theme !== "auto") out.set("theme", state.theme);
  for (const [view, zoom] of Object.entries(state.zoom)) {
    if (zoom) out.set(`zoom.${view}`, zoom);
  }
  return out
    .toString()
    .replace(/%2C/g, ",")
    .replace(/%3A/g, ":")
    .replace(/%2F/g, "/")
    .replace(/%3E/g, ">");
}

export type First = Head<SideHead>["first"];

/** What the flags of `prepost draw` ask for, on a page that is opened without a link. */
export function showFirst(store: Store, first: First, views: ViewName[]): void {
  if (!first) return;
  const names: Record<string, ViewName> = {
    spacetime: "grid",
    graph: "graph",
    tree: "tree",
    queues: "queues",
  };
  const view = names[first.view];
  const [left, right] = store.state.views;
  if (view && views.includes(view) && view !== left) {
    store.set({ views: [view === right ? view : left, view === right ? left : view] });
  }
  const { side } = store;
  const node = first.nodes[0];
  const block = first.blocks[0];
  // One node of a graph or of queues, and one block of a tree, is what it is about.
  const isOne = first.nodes.length === 1 && view !== "grid";
  const isNode = node !== undefined && (isOne || view === "queues");
  const isBlock = block !== undefined && first.blocks.length === 1;
  if (isBlock) store.select({ side: 0, kind: "block", block });
  if (isNode) store.select({ side: 0, kind: "node", node });
  const text = {
    rounds: first.rounds ? first.rounds.join(":") : "",
    nodes: isOne ? "" : first.nodes.join(","),
    blocks: isBlock && view !== "grid" ? "" : first.blocks.join(","),
  };
  store.set({ filter: parseFilter(text, side.header) });
}

const KEYS = [
  ...["view", "side", "at", "time", "round", ...FIELDS, "engine", "theme"],
  ...["rows", "across", "keep", "dim", "speed"],
];

function oneOf<T extends string>(text: string, all: readonly T[]): T {
  const found = all.find((it) => it === text);
  if (found === undefined) throw new Error(`'${text}' is none of ${all.join(", ")}`);
  return found;
}

function atMost(text: string, max: number, noun: string): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : NaN;
  if (!(value <= max)) throw new Error(`'${text}' is no ${noun} from 0 to ${max}`);
  return value;
}

function viewsIn(text: string, views: ViewName[], present: State["views"]): State["views"] {
  const [first, second] = text.split(",").map((name) => oneOf(name, views));
  const other = second ?? (present[1] === first ? present[0] : present[1]);
  if (first === other) throw new Error("no view is in both panes");
  return [first!, other];
}

type Read = <T>(name: string, otherwise: T, parse: (text: string) => T) => T;

function clockIn(store: Store, read: Read): Clock {
  const end = store.end("rounds");
  const round = read("round", end, (text) => atMost(text, end, "round"));
  const atTime = (text: string) => {
    if (!store.hasRun) throw new Error("there is no run");
    return atMost(text, Math.ceil(store.end("time")), "time in ns");
  };
  const time = read("time", -1, atTime);
  if (time < 0) return { kind: "rounds", value: round };
  return { kind: "time", value: Math.min(time, store.end("time")) };
}

/** What cannot be read is as on a page that was just opened; returns what is wrong with it. */
export function readLink(store: Store, hash: string, views: ViewName[]): string[] {
  if (hash.length < 2) return [];
  const link = new URLSearchParams(hash.replace(/^#/, "").replace(/>/g, "%3E"));
  const problems: string[] = [];
  const read: Read = (name, otherwise, parse) => {
    const text = link.get(name);
    if (text === null) return otherwise;
    try {
      return parse(text);
    } catch (error) {
      problems.push(`the link's ${name}: ${(error as Error).message}`);
      return otherwise;
    }
  };
  const { state } = store;
  store.set({ views: read("view", state.views, (text) => viewsIn(text, views, state.views)) });
  const last = store.sides.length - 1;
  store.set({ side: read("side", 0, (text) => atMost(text, last, "side")) });
  const target = (text: string) => parseTarget(store.side, state.side, text);
  let filter = noFilter;
  for (const field of FIELDS) {
    const { header } = store.side;
    filter = read(field, filter, (text) => withField(filter, field, text, header));
  }
  const zoom: State["zoom"] = {};
  for (const key of new Set(link.keys())) {
    const view = views.find((name) => key === `zoom.${name}`);
    const isRead = view !== undefined || KEYS.includes(key);
    if (!isRead) problems.push(`the link's ${key}: this page knows nothing of that name`);
    if (!view) continue;
    zoom[view] = read(key, "", (text) => {
      const numbers = view === "sides" ? text.replace(/^[gt],/, "") : text;
      if (numbers !== "" && !readZoom(numbers)) throw new Error(`'${text}' is no zoom`);
      return text;
    });
  }
  store.set({
    selected: read<Target | null>("at", null, target),
    clock: clockIn(store, read),
    filter,
    zoom,
    engine: read("engine", "", (text) => oneOf(text, Object.keys(ENGINES))),
    theme: read<Theme>("theme", "auto", (text) => oneOf(text, ["light", "dark"])),
    rows: read<Rows>("rows", "nodes", (text) => oneOf(text, ["nodes", "links"])),
    across: read<State["across"]>("across", "time", (text) => oneOf(text, ["time", "rounds"])),
    kept: read<Target | null>("keep", null, target),
    dims: read<boolean | null>("dim", null, (text) => oneOf(text, ["same", "nothing"]) === "same"),
    speed: read("speed", 1, (text) => Number(oneOf(text, SPEEDS.map(String)))),
  });
  return problems;
}
