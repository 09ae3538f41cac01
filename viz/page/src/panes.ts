// SPDX-License-Identifier: Apache-2.0
//
// Two panes beside each other (one on a narrow window), each with tabs for its view. No view is in
// both: to choose the other pane's view exchanges the two.
import { Change, State, Store, ViewName } from "./store";
import { View, make } from "./view";

export class Panes {
  readonly element = make("div", { class: "panes" });
  private readonly hosts: HTMLElement[] = [];
  private readonly tabs: HTMLElement[] = [];
  private open = 1; // of panes that show their views
  private readonly missed = new Map<View, Set<keyof State>>(); // by those that are hidden

  constructor(
    private readonly store: Store,
    private readonly views: View[],
  ) {
    for (const pane of [0, 1] as const) {
      const tabs = make("div", {
        class: "tabs",
        role: "tablist",
        "aria-label": pane === 0 ? "First view" : "Second view",
      });
      const host = make("div", { class: "host", role: "tabpanel" });
      for (const view of views) {
        const tab = make(
          "button",
          { type: "button", role: "tab", "data-view": view.name },
          view.label,
        );
        tab.onclick = () => this.choose(pane, view.name);
        tabs.append(tab);
      }
      tabs.addEventListener("keydown", (event) => this.tabKey(event, pane));
      this.tabs.push(tabs);
      this.hosts.push(host);
      this.element.append(make("section", { class: "pane" }, tabs, host));
    }
    const observer = new ResizeObserver(() => this.show());
    this.hosts.forEach((host) => observer.observe(host));
    this.place();
  }

  /** Shows the second pane's view, too: until then it has cost nothing. */
  openAll(): void {
    this.open = this.hosts.length;
    this.place();
  }
  choose(pane: 0 | 1, name: ViewName): void {
    const views: [ViewName, ViewName] = [...this.store.state.views];
    if (views[1 - pane] === name) views[1 - pane] = views[pane]!;
    views[pane] = name;
    this.store.set({ views });
    this.place();
  }

  visible(): View[] {
    return this.store.state.views
      .map((name) => this.views.find((view) => view.name === name)!)
      .filter((view) => view.element.isConnected && view.element.clientWidth > 0);
  }

  changed(change: Change): void {
    if (change.has("views")) this.place();
    const visible = this.visible();
    for (const view of this.views) {
      if (visible.includes(view)) {
        view.changed(change);
        continue;
      }
      const missed = this.missed.get(view) ?? new Set();
      change.forEach((key) => missed.add(key));
      this.missed.set(view, missed);
    }
  }

  private tabKey(event: KeyboardEvent, pane: 0 | 1): void {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    event.stopPropagation();
    const at = this.views.findIndex((view) => view.name === this.store.state.views[pane]);
    const next = this.views[(at + step + this.views.length) % this.views.length]!;
    this.choose(pane, next.name);
    this.tabs[pane]!.querySelector<HTMLElement>(`[data-view=${next.name}]`)?.focus();
  }

  private place(): void {
    this.store.state.views.forEach((name, pane) => {
      const view = this.views.find((it) => it.name === name)!;
      const host = this.hosts[pane]!;
      host.setAttribute("aria-label", view.label);
      for (const tab of this.tabs[pane]!.children) {
        const chosen = tab.getAttribute("data-view") === name;
        tab.setAttribute("aria-selected", String(chosen));
        tab.setAttribute("tabindex", chosen ? "0" : "-1");
      }
      if (view.element.parentElement === host || pane >= this.open) return;
      host.replaceChildren(view.element);
    });
    this.show();
  }

  /** Gives views their size, and what changed while they were hidden. */
  show(): void {
    for (const view of this.visible()) {
      view.resize();
      const missed = this.missed.get(view);
      this.missed.delete(view);
      if (missed) view.changed(missed);
    }
  }
}
