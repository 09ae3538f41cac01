// SPDX-License-Identifier: Apache-2.0
//
// CanvasView: what views on a canvas have in common: gestures and keys that move a camera, pointing,
// and a zoom that a link gives, which waits until the canvas has a size.
import { Camera, attachGestures } from "./camera";
import { shortText } from "./marks";
import { Change, Store, ViewName } from "./store";
import { Target } from "./targets";
import { Stage, View, make } from "./view";

export abstract class CanvasView implements View {
  abstract readonly name: ViewName;
  abstract readonly label: string;
  readonly element = make("div", { class: "view" });
  protected readonly stage: Stage;
  private zoomWanted: string | null = null; // until it is shown
  private cameraNoted: Camera | null = null;
  private zoomDrawn: string | undefined;

  constructor(
    protected readonly store: Store,
    description: string,
  ) {
    this.stage = new Stage(description, () => this.draw());
    attachGestures(
      this.stage.canvas,
      () => this.camera,
      (x, y) => this.origin(x, y),
      () => {
        this.noteZoom();
        this.stage.redraw();
      },
    );
    this.stage.pointing(
      store,
      (x, y) => this.find(x, y),
      (target) => this.tipOf(target),
      (x, y) => this.hintAt(x, y),
    );
  }

  /** The one that is in use. */
  protected abstract get camera(): Camera;
  /** Where the plot at a point of the canvas begins. */
  protected abstract origin(x: number, y: number): { x: number; y: number };
  /** The canvas has a size: the camera gets it. */
  protected abstract fitCanvas(): void;
  protected abstract draw(): void;
  protected abstract find(x: number, y: number): Target | null;
  protected abstract reveal(target: Target): void;

  protected tipOf(target: Target): string {
    return shortText(this.store.sideOf(target), target);
  }
  /** What to say where nothing can be selected. */
  protected hintAt(_x: number, _y: number): string | null {
    return null;
  }
  protected assemble(above: HTMLElement[], below: HTMLElement[] = []): void {
    const stage = make("div", { class: "stage" }, this.stage.canvas);
    this.element.append(...above, stage, ...below);
    this.stage.watch(() => this.resize());
  }

  resize(): void {
    if (!this.stage.resize()) return;
    this.fitCanvas();
    const { camera } = this;
    if (this.zoomWanted !== null) this.applyZoom(this.zoomWanted);
    else if (this.cameraNoted && this.cameraNoted !== camera) this.noteZoom();
    this.zoomWanted = null;
    this.cameraNoted = camera;
    this.stage.redraw();
  }
  changed(change: Change): void {
    const { selected, zoom } = this.store.state;
    const isOthers = change.size === 1 && change.has("zoom") && zoom[this.name] === this.zoomDrawn;
    this.zoomDrawn = zoom[this.name];
    if (isOthers) return; // another view was moved
    if (change.has("side")) this.resize();
    // A link says itself what is in view.
    const isLinked = change.has("zoom") && zoom[this.name];
    if (change.has("selected") && selected && !isLinked) {
      this.reveal(selected);
      this.noteZoom();
    }
    this.stage.redraw();
  }

  /** How it is zoomed, for the link; "" as it comes. */
  protected zoomText(): string {
    return this.camera.text;
  }
  setZoom(text: string): void {
    this.zoomWanted = text;
    this.putZoom(text);
    this.resize();
  }
  protected applyZoom(text: string): void {
    this.camera.text = text;
  }
  /** It shows something else, of which no zoom is known. */
  protected forgetZoom(): void {
    this.zoomWanted = null;
    this.putZoom("");
  }
  protected noteZoom(): void {
    if (this.zoomWanted === null) this.putZoom(this.zoomText());
  }
  private putZoom(text: string): void {
    const { zoom } = this.store.state;
    if ((zoom[this.name] ?? "") !== text) this.store.set({ zoom: { ...zoom, [this.name]: text } });
  }
}
