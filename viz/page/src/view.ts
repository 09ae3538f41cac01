// SPDX-License-Identifier: Apache-2.0
//
// View: a picture in a pane. A pane shows its view, tells it its size and what changed; the view
// draws at most once per frame.
import { atNextFrame } from "./later";
import { Change, Store, ViewName } from "./store";
import { Target } from "./targets";

export interface View {
  readonly name: ViewName;
  readonly label: string;
  readonly element: HTMLElement;
  /** It became visible, or its pane has another size. */
  resize(): void;
  changed(change: Change): void;
  /** As a link has it; "" as it comes. */
  setZoom(text: string): void;
}

/** Makes an element: make("div", { class: "x" }, "text", child). */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** A small picture of one path, in the colour of the text. */
export function icon(path: string): SVGSVGElement {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const shape = document.createElementNS(space, "path");
  shape.setAttribute("d", path);
  svg.append(shape);
  return svg;
}

/** `text`, or its begin and its end where it is wider than `width` in the font of `context`. */
export function shortened(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  const cut = (kept: number) =>
    `${text.slice(0, Math.ceil(kept / 2))}\u2026${text.slice(text.length - Math.floor(kept / 2))}`;
  let kept = text.length - 1;
  while (kept > 2 && context.measureText(cut(kept)).width > width) --kept;
  return cut(kept);
}

/** A canvas as large as its box, with whole device pixels; draws when asked, once per frame. */
export class Stage {
  readonly canvas: HTMLCanvasElement;
  readonly context: CanvasRenderingContext2D;
  width = 0;
  height = 0;
  ratio = 1;
  private waiting = false;
  private static readonly all: Stage[] = [];

  constructor(
    label: string,
    private readonly paint: () => void,
  ) {
    Stage.all.push(this);
    this.canvas = make("canvas", { tabindex: "0", role: "img", "aria-label": label });
    this.context = this.canvas.getContext("2d")!;
  }
  /** Takes the size of its box; false if there is none. */
  resize(): boolean {
    const box = this.canvas.parentElement?.getBoundingClientRect();
    if (!box || box.width < 2 || box.height < 2) return false;
    this.width = Math.floor(box.width);
    this.height = Math.floor(box.height);
    this.ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.width * this.ratio);
    this.canvas.height = Math.round(this.height * this.ratio);
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.height}px`;
    return true;
  }
  /** Calls `changed` when its box has another size, as when a text beside it needs one more line. */
  watch(changed: () => void): void {
    new ResizeObserver(() => {
      const box = this.canvas.parentElement!.getBoundingClientRect();
      const isFitting =
        Math.floor(box.width) === this.width && Math.floor(box.height) === this.height;
      if (isFitting || box.width < 2 || box.height < 2) return;
      changed();
      this.paintNow(); // before the browser shows it
    }).observe(this.canvas.parentElement!);
  }
  redraw(): void {
    if (this.waiting) return;
    this.waiting = true;
    atNextFrame(() => this.paintNow());
  }
  paintNow(): void {
    this.waiting = false;
    if (this.width === 0 || !this.canvas.isConnected) return;
    this.context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    this.context.clearRect(0, 0, this.width, this.height);
    this.paint();
  }
  /** Draws all of them at once: before the page is printed there are no more frames. */
  static paintAll(): void {
    for (const stage of Stage.all) stage.paintNow();
  }
  /** Points at what `find` finds; a click selects it. Where it finds nothing there may be a hint. */
  pointing(
    store: Store,
    find: (x: number, y: number) => Target | null,
    describe: (target: Target) => string,
    hintAt: (x: number, y: number) => string | null,
  ): void {
    const { canvas } = this;
    const tip = tooltip();
    canvas.addEventListener("pointermove", (event) => {
      if (event.buttons !== 0) return tip.hide();
      const target = find(event.offsetX, event.offsetY);
      store.hover(target);
      canvas.style.cursor = target ? "pointer" : "grab";
      const text = target ? describe(target) : hintAt(event.offsetX, event.offsetY);
      if (text !== null) tip.show(text, event.clientX, event.clientY);
      else tip.hide();
    });
    canvas.addEventListener("pointerleave", () => {
      store.hover(null);
      tip.hide();
    });
    canvas.addEventListener("click", (event) => {
      store.select(find(event.offsetX, event.offsetY));
    });
  }
}

interface Tip {
  show(text: string, x: number, y: number): void;
  hide(): void;
}

let tip: Tip | null = null;

/** The one tooltip of the page. */
export function tooltip(): Tip {
  if (tip) return tip;
  const element = make("div", { class: "tip", hidden: "", "aria-hidden": "true" });
  document.body.append(element);
  tip = {
    show(text, x, y) {
      element.textContent = text;
      element.hidden = false;
      const box = element.getBoundingClientRect();
      const left = x + 14 + box.width > window.innerWidth ? x - box.width - 10 : x + 14;
      const top = y + 16 + box.height > window.innerHeight ? y - box.height - 10 : y + 16;
      element.style.left = `${Math.max(4, left)}px`;
      element.style.top = `${Math.max(4, top)}px`;
    },
    hide() {
      element.hidden = true;
    },
  };
  return tip;
}
