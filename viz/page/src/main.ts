// SPDX-License-Identifier: Apache-2.0
//
// Starts the page: decodes its data, makes the store and the views, and wires keys, link and the
// handle for tests, window.prepost.
import { Controls } from "./controls";
import { decode } from "./decode";
import { Details } from "./details";
import { figuresOf } from "./figures";
import { Filter, noFilter, parseFilter } from "./filter";
import { GraphView } from "./graph";
import { GridView } from "./grid";
import { after, finishWaiting } from "./later";
import { First, readLink, showFirst, writeLink } from "./link";
import { Side, SideHead } from "./model";
import { forgetTheme } from "./palette";
import { isWhole } from "./plan_facts";
import { Panes } from "./panes";
import { Player } from "./player";
import { QueuesView } from "./queues";
import { SidesView } from "./sides";
import { Change, Store, ViewName } from "./store";
import { parseTarget, targetText, textOf } from "./targets";
import { TimelineView } from "./timeline";
import { TreeView } from "./tree";
import { Stage, View } from "./view";
import { Words } from "./words";

function viewsOf(store: Store): View[] {
  const views: View[] = [new GridView(store), new TreeView(store), new GraphView(store)];
  // Queues are of plain multicasts.
  if (store.sides.some((side) => side.isPlainMulticast)) views.push(new QueuesView(store));
  if (store.hasRun) views.push(new TimelineView(store));
  if (store.sides.length > 1) views.push(new SidesView(store));
  return views;
}

class Page {
  private readonly store: Store;
  private readonly views: View[];
  private readonly panes: Panes;
  private readonly player: Player;
  private readonly controls: Controls;
  private readonly details: Details;
  private cancelLink = () => {};
  private linkWritten = "";

  constructor(sides: Side[], first: First) {
    this.store = new Store(sides);
    const { store } = this;
    this.views = viewsOf(store);
    const names = this.views.map((view) => view.name);
    const second: ViewName = sides.length > 1 ? "sides" : sides[0]!.hasRun ? "timeline" : "tree";
    store.set({ views: [names[0]!, names.includes(second) ? second : (names[1] ?? names[0]!)] });
    // Of a run that is not whole the plan's rounds would say too much.
    if (sides.some((side) => side.hasRun && !isWhole(side))) {
      store.set({ clock: { kind: "time", value: store.end("time") } });
    }
    showFirst(store, first, names);
    const problems = readLink(store, location.hash, names);
    this.applyTheme();
    this.controls = new Controls(store);
    this.controls.sayOfLink(problems);
    this.details = new Details(store);
    this.player = new Player(store);
    const main = document.querySelector("main")!;
    this.panes = new Panes(store, this.views);
    main.replaceChildren(this.panes.element, this.details.element);
    main.before(this.controls.element);
    main.after(this.player.element);
    this.applyZoom();
    this.panes.visible().forEach((view) => view.resize());
    store.on((change) => this.changed(change));
    document.addEventListener("keydown", (event) => this.key(event));
    window.addEventListener("hashchange", () => {
      if (location.hash.slice(1) === this.linkWritten) return;
      this.controls.sayOfLink(readLink(store, location.hash, names));
      this.applyZoom();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolor());
    window.addEventListener("beforeprint", () => this.printing(true));
    window.addEventListener("afterprint", () => this.printing(false));
  }

  /** Shows what takes longer than the first picture. */
  openAll(): void {
    this.panes.openAll();
  }

  private applyZoom(): void {
    for (const view of this.views) view.setZoom(this.store.state.zoom[view.name] ?? "");
  }

  private applyTheme(): void {
    const { theme } = this.store.state;
    if (theme === "auto") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme;
    forgetTheme();
  }

  private recolor(): void {
    forgetTheme();
    this.panes.changed(new Set(["theme"]));
  }

  /** On paper all is light. */
  private printing(begins: boolean): void {
    if (begins) document.documentElement.dataset["theme"] = "light";
    else this.applyTheme();
    this.recolor();
    Stage.paintAll();
  }

  private changed(change: Change): void {
    if (change.has("theme")) this.applyTheme();
    this.controls.changed(change);
    this.details.changed(change);
    this.player.changed(change);
    this.panes.changed(change);
    this.cancelLink();
    this.cancelLink = after(this.store.state.playing ? 1000 : 200, () => this.writeLink());
  }

  private writeLink(): void {
    const link = writeLink(this.store);
    if (link === this.linkWritten) return;
    this.linkWritten = link;
    try {
      history.replaceState(null, "", `#${link}`);
    } catch {
      location.replace(`#${link}`); // some browsers refuse the other on a file
    }
    this.linkWritten = location.hash.slice(1);
  }

  private key(event: KeyboardEvent): void {
    const element = event.target as HTMLElement;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      this.store.select(null);
      element.blur();
      return;
    }
    const isSlider = element instanceof HTMLInputElement && element.type === "range";
    const typing =
      (element instanceof HTMLInputElement && !isSlider) || element instanceof HTMLSelectElement;
    if (typing) return;
    const onButton = element instanceof HTMLButtonElement;
    const { player, store } = this;
    if (event.key === " " && !onButton) player.toggle();
    else if (isSlider)
      return; // the others are its own
    else if (event.key === "ArrowLeft" && !event.shiftKey) player.step(-1);
    else if (event.key === "ArrowRight" && !event.shiftKey) player.step(1);
    else if (event.key === "Home") player.go(0);
    else if (event.key === "End") player.go(store.end());
    else if (event.key === "/") this.controls.focus();
    else return;
    event.preventDefault();
  }

  // ---- For tests --------------------------------------------------------------------------------

  state(): unknown {
    const { state } = this.store;
    const text = (target: typeof state.selected) =>
      target ? targetText(this.store.sideOf(target), target) : null;
    return {
      ...state,
      selected: text(state.selected),
      hovered: text(state.hovered),
      kept: text(state.kept),
      filter: state.filter.text,
      link: writeLink(this.store),
    };
  }
  /** What is wrong with `text`, or "". */
  search(text: string): string {
    return this.controls.find(text);
  }
  /** Does at once what waits for a frame or some time: all is then as it will be shown. */
  finish(): void {
    if (!finishWaiting()) return;
    this.panes.show(); // texts have changed their size
    finishWaiting();
  }
  /** Points at what `text` names; "": at nothing. */
  point(text: string): void {
    const { store } = this;
    store.hover(text === "" ? null : parseTarget(store.side, store.state.side, text));
  }
  play(): void {
    if (!this.store.state.playing) this.player.toggle();
  }
  pause(): void {
    this.store.set({ playing: false });
  }
  setFilter(text: Partial<Filter["text"]>): void {
    const filter = parseFilter({ ...noFilter.text, ...text }, this.store.side.header);
    this.store.set({ filter });
  }
  setClock(value: number): void {
    this.store.setClock(value);
  }
  setView(name: string): void {
    if (!this.views.some((view) => view.name === name)) throw new Error(`there is no view ${name}`);
    this.panes.choose(0, name as ViewName);
  }
  explain(text: string): string {
    const { side } = this.store.state;
    return textOf(
      new Words(this.store.side, side).explain(parseTarget(this.store.side, side, text)),
    );
  }
  figures(): unknown {
    return figuresOf(this.store);
  }
}

/** The next frame has been drawn. */
const drawn = () =>
  new Promise<void>((resolve) => {
    requestAnimationFrame(() => requestAnimationFrame(() => resolve())); // the first of them draws
    window.setTimeout(resolve, 500); // there are none while nobody looks
  });

async function start(): Promise<Page> {
  performance.mark("prepost-begin");
  const element = document.getElementById("prepost-data")!;
  const text = element.textContent!.trim();
  const { head, columns } = await decode<SideHead>(text);
  element.remove(); // megabytes that nobody needs any more
  const sides = head.sides.map((side, index) => new Side(side, columns, index));
  const page = new Page(sides, head.first);
  await drawn();
  performance.mark("prepost-first-picture");
  page.openAll();
  await drawn();
  performance.mark("prepost-ready");
  return page;
}

const page = start();
page.catch((error: unknown) => {
  const main = document.querySelector("main")!;
  const text = error instanceof Error ? error.message : String(error);
  const problem = document.createElement("p");
  problem.className = "message";
  problem.setAttribute("role", "alert");
  problem.textContent = `The plan cannot be shown: ${text}.`;
  main.replaceChildren(problem);
});

const handle: Record<string, unknown> = {
  ready: page.then(
    () => true,
    () => false,
  ),
};
const calls = [
  "state",
  "finish",
  "search",
  "point",
  "setFilter",
  "setClock",
  "setView",
  "play",
  "pause",
  "explain",
  "figures",
] as const;
for (const name of calls) {
  handle[name] = () => {
    throw new Error("the page is not ready");
  };
}
void page.then(
  (it) => {
    for (const name of calls) handle[name] = (it[name] as (text: never) => unknown).bind(it);
  },
  () => undefined,
);
(window as unknown as { prepost: unknown }).prepost = handle;
