// SPDX-License-Identifier: Apache-2.0
//
// The bar at the top: title, search, filter, which side is shown, and the colour scheme.
import { FIELDS, Field, noFilter, withField } from "./filter";
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
  private readonly fields: Record<Field, HTMLInputElement>;
  private readonly problems = new Map<"search" | "link" | Field, string>();
  private filterMade = noFilter; // by its fields, or that they show
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
    this.search.oninput = () => this.say("search", "");
    const field = (name: Field, placeholder: string) => {
      const input = make("input", {
        type: "text",
        placeholder,
        spellcheck: "false",
        autocomplete: "off",
        "aria-label": `Only ${name}`,
        "aria-errormessage": "search-note",
      });
      input.onkeydown = (event) => {
        if (event.key !== "Escape" || !this.problems.has(name)) return;
        event.stopPropagation();
        input.value = store.state.filter.text[name];
        this.say(name, "");
      };
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

  /** Says what is wrong with one of its parts; "": nothing any more. */
  private say(part: "search" | "link" | Field, text: string): void {
    if (text === "") this.problems.delete(part);
    else this.problems.set(part, text);
    this.note.textContent = [...this.problems.values()].join("; ");
    this.search.setAttribute("aria-invalid", String(this.problems.has("search")));
    for (const field of FIELDS) {
      this.fields[field].setAttribute("aria-invalid", String(this.problems.has(field)));
    }
  }
  sayOfLink(problems: string[]): void {
    this.say("link", problems.join("; "));
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
    this.say("search", problem);
    this.say("link", "");
    return problem;
  }

  /** Fields that cannot be read leave what they said before in force. */
  private filter(): void {
    const { store } = this;
    let { filter } = store.state;
    this.say("link", "");
    for (const field of FIELDS) {
      const { value } = this.fields[field];
      try {
        if (value !== filter.text[field]) {
          filter = withField(filter, field, value, store.side.header);
        }
        this.say(field, "");
      } catch (error) {
        const last = filter.text[field];
        const rest = last === "" ? `all ${field} stay shown` : `${last} stays in force`;
        this.say(field, `${field}: ${(error as Error).message}; ${rest}`);
      }
    }
    this.filterMade = filter;
    store.set({ filter });
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
    }
    if (change?.has("selected") || change?.has("side")) this.say("search", "");
    if (filter !== this.filterMade) FIELDS.forEach((field) => this.say(field, ""));
    this.filterMade = filter;
    for (const name of FIELDS) {
      const input = this.fields[name];
      const isOpen = input === document.activeElement || this.problems.has(name);
      if (!isOpen) input.value = filter.text[name];
      input.classList.toggle("on", filter[name] !== null);
    }
    this.theme.textContent = { auto: "\u25d0", light: "\u2600", dark: "\u263e" }[theme];
    this.theme.title = `Colours: ${theme === "auto" ? "as the system" : theme}`;
    this.theme.setAttribute("aria-label", this.theme.title);
  }
}
