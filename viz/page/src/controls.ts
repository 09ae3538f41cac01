// SPDX-License-Identifier: Apache-2.0
//
// The bar at the top: title, search, filter, which side is shown, and the colour scheme.
import { parseFilter } from "./filter";
import { onSide } from "./marks";
import { Change, Store, Theme } from "./store";
import { parseTarget, targetText } from "./targets";
import { make } from "./view";

export class Controls {
  readonly element = make("header", { class: "top" });
  private readonly search = make("input", {
    type: "search",
    placeholder: "5, block 12, round 4, 3>2:7, 5/13",
    spellcheck: "false",
    autocomplete: "off",
    "aria-label": "Search",
    "aria-describedby": "search-note",
  });
  private readonly note = make("output", { class: "problem", id: "search-note" });
  private readonly fields: Record<"rounds" | "nodes" | "blocks", HTMLInputElement>;
  private readonly headline = make("h1");
  private readonly subline = make("p", { class: "subline" });
  private readonly sides: HTMLButtonElement[] = [];
  private readonly theme = make("button", { type: "button" });

  constructor(private readonly store: Store) {
    const search = make("form", { role: "search", class: "search" }, this.search);
    search.onsubmit = (event) => {
      event.preventDefault();
      this.find(this.search.value);
    };
    this.search.oninput = () => this.say("");
    const field = (name: string, placeholder: string) => {
      const input = make("input", {
        type: "text",
        placeholder,
        spellcheck: "false",
        autocomplete: "off",
        "aria-label": `Only ${name}`,
      });
      input.onchange = () => this.filter();
      return input;
    };
    this.fields = {
      rounds: field("rounds", "0:9"),
      nodes: field("nodes", "0,2-5"),
      blocks: field("blocks", "1,3"),
    };
    const filter = make("form", { class: "filter", "aria-label": "Filter" });
    filter.onsubmit = (event) => {
      event.preventDefault();
      this.filter();
    };
    for (const [name, input] of Object.entries(this.fields)) {
      filter.append(make("label", {}, name, input));
    }
    const tools = make("div", { class: "tools" }, search, filter);
    if (store.sides.length > 1) {
      const group = make("div", { class: "sides", role: "group", "aria-label": "Side" });
      store.sides.forEach((_, index) => {
        const name = `${"AB"[index]}: ${store.sideName(index)}`;
        const button = make("button", { type: "button", title: name }, name);
        button.onclick = () => {
          const { selected } = store.state;
          const same = selected && onSide(store.sides, selected, index);
          store.set({ side: index, selected: same ?? null });
        };
        this.sides.push(button);
        group.append(button);
      });
      tools.append(group);
    }
    this.theme.onclick = () => {
      const next: Record<Theme, Theme> = { auto: "light", light: "dark", dark: "auto" };
      store.set({ theme: next[store.state.theme] });
    };
    tools.append(this.theme);
    this.element.append(
      make("div", { class: "titles" }, this.headline, this.subline),
      tools,
      this.note,
    );
    this.update();
  }

  focus(): void {
    this.search.focus();
    this.search.select();
  }

  private say(text: string): void {
    this.note.textContent = text;
    this.search.setAttribute("aria-invalid", String(text !== ""));
  }

  /** Selects what `text` names; what is wrong with it, or "". */
  find(text: string): string {
    const { store } = this;
    let problem = "";
    try {
      if (text.trim() === "") store.select(null);
      else store.select(parseTarget(store.side, store.state.side, text));
    } catch (error) {
      problem = (error as Error).message;
    }
    this.say(problem);
    return problem;
  }

  private filter(): void {
    const { store } = this;
    const text = {
      rounds: this.fields.rounds.value,
      nodes: this.fields.nodes.value,
      blocks: this.fields.blocks.value,
    };
    try {
      store.set({ filter: parseFilter(text, store.side.header) });
      this.say("");
    } catch (error) {
      this.say((error as Error).message);
    }
  }

  changed(change: Change): void {
    const keys = ["selected", "filter", "side", "theme"] as const;
    if (keys.some((key) => change.has(key))) this.update(change);
  }

  private update(change?: Change): void {
    const { store } = this;
    const { selected, filter, theme, side } = store.state;
    this.headline.textContent = store.side.head.headline;
    this.subline.textContent = store.side.head.subline;
    this.sides.forEach((button, i) => button.setAttribute("aria-pressed", String(i === side)));
    if (change?.has("selected")) {
      this.search.value = selected ? targetText(store.sideOf(selected), selected) : "";
      this.say("");
    }
    for (const name of ["rounds", "nodes", "blocks"] as const) {
      const input = this.fields[name];
      if (input !== document.activeElement) input.value = filter.text[name];
      input.classList.toggle("on", filter[name] !== null);
    }
    this.theme.textContent = { auto: "\u25d0", light: "\u2600", dark: "\u263e" }[theme];
    this.theme.title = `Colours: ${theme === "auto" ? "as the system" : theme}`;
    this.theme.setAttribute("aria-label", this.theme.title);
  }
}
