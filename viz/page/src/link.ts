// SPDX-License-Identifier: Apache-2.0
//
// The link: the whole state in location.hash, so that a page can be shared as it is seen.
import { Head } from "./decode";
import { noFilter, parseFilter } from "./filter";
import { SideHead } from "./model";
import { Store, Theme, ViewName } from "./store";
import { parseTarget, targetText } from "./targets";

/** Only what differs from a page that was just opened. */
export function writeLink(store: Store): string {
  const { state } = store;
  const out = new URLSearchParams();
  out.set("view", state.views.join(","));
  if (state.side !== 0) out.set("side", String(state.side));
  if (state.selected) out.set("at", targetText(store.sideOf(state.selected), state.selected));
  if (state.clock.kind === "time") out.set("time", String(Math.round(state.clock.value)));
  else if (state.clock.value < store.end()) out.set("round", String(state.clock.value));
  for (const name of ["rounds", "nodes", "blocks"] as const) {
    if (state.filter[name]) out.set(name, state.filter.text[name].replace(/\s+/g, ""));
  }
  if (state.engine !== "") out.set("engine", state.engine);
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

/** What cannot be read is left as it is. */
export function readLink(store: Store, hash: string, views: ViewName[]): void {
  if (hash.length < 2) return;
  const link = new URLSearchParams(hash.replace(/^#/, "").replace(/>/g, "%3E"));
  const { state } = store;
  const asked = (link.get("view") ?? "").split(",") as ViewName[];
  const [first, second] = [asked[0] ?? state.views[0], asked[1] ?? state.views[1]];
  if (first !== second && views.includes(first) && views.includes(second)) {
    store.set({ views: [first, second] });
  }
  const side = Number(link.get("side") ?? 0);
  if (store.sides[side]) store.set({ side });
  const at = link.get("at");
  try {
    store.set({ selected: at ? parseTarget(store.side, state.side, at) : null });
  } catch {
    store.set({ selected: null });
  }
  const time = link.get("time");
  const round = link.get("round");
  if (time !== null && store.hasRun) {
    store.set({ clock: { kind: "time", value: 0 } });
    store.setClock(Number(time) || 0);
  } else {
    store.set({ clock: { kind: "rounds", value: store.end("rounds") } });
    if (round !== null) store.setClock(Number(round) || 0);
  }
  const text = {
    rounds: link.get("rounds") ?? "",
    nodes: link.get("nodes") ?? "",
    blocks: link.get("blocks") ?? "",
  };
  try {
    store.set({ filter: parseFilter(text, store.side.header) });
  } catch {
    store.set({ filter: noFilter });
  }
  const theme = link.get("theme") as Theme | null;
  if (theme === "light" || theme === "dark") store.set({ theme });
  store.set({ engine: link.get("engine") ?? "" });
  const zoom: Partial<Record<ViewName, string>> = {};
  for (const view of views) {
    const text = link.get(`zoom.${view}`);
    if (text) zoom[view] = text;
  }
  store.set({ zoom });
}
