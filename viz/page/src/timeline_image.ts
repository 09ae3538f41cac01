// SPDX-License-Identifier: Apache-2.0
//
// Many bars of a timeline as images: a pixel per pixel; of the bars that begin within one, the first
// shows, or one that passes the filter. To paint one takes longer than a frame has, so while the camera moves the images that there
// are, one of all and one of what was in view last, are shown where they belong now.
import { Camera } from "./camera";
import { Filter, isOpen, passes } from "./filter";
import { after } from "./later";
import { Side } from "./model";
import { blockRgb } from "./palette";
import { Bars, lowerBound } from "./run_bars";
import { Layer, barsInView } from "./timeline_frame";

const REST_MS = 90; // that the camera has not moved
const QUICK_MS = 8; // of painting, which need not wait for that

interface Painted {
  canvas: HTMLCanvasElement;
  camera: Camera;
}

/** Draws all bars on a canvas whose plot begins at 0. */
export class BarImages {
  private all: Painted | null = null;
  private last: Painted | null = null;
  private lastMs = 0; // what painting took
  private cancel = () => {};

  constructor(private readonly redraw: () => void) {}

  /** What they show has changed. */
  forget(): void {
    this.cancel();
    this.all = this.last = null;
  }

  draw(
    context: CanvasRenderingContext2D,
    camera: Camera,
    paint: (camera: Camera) => HTMLCanvasElement,
  ): void {
    const isSameSize =
      this.last?.camera.x.size === camera.x.size && this.last.camera.y.size === camera.y.size;
    if (!isSameSize) this.forget();
    if (!this.last || (this.lastMs <= QUICK_MS && !this.last.camera.isSame(camera))) {
      this.paint(camera, paint);
    }
    if (this.last!.camera.isSame(camera)) {
      context.drawImage(this.last!.canvas, 0, 0);
      return;
    }
    if (!this.all) {
      const whole = camera.copy();
      whole.fit();
      this.all = { canvas: paint(whole), camera: whole };
    }
    this.place(context, camera, this.all);
    this.place(context, camera, this.last!);
    this.cancel();
    this.cancel = after(REST_MS, () => {
      this.paint(camera, paint);
      this.redraw();
    });
  }

  private paint(camera: Camera, paint: (camera: Camera) => HTMLCanvasElement): void {
    this.cancel();
    const begin = performance.now();
    this.last = { canvas: paint(camera), camera: camera.copy() };
    this.lastMs = performance.now() - begin;
  }
  private place(context: CanvasRenderingContext2D, now: Camera, it: Painted): void {
    const { x, y } = it.camera;
    const [left, right] = [now.x.px(x.unit(0)), now.x.px(x.unit(x.size))];
    const [top, bottom] = [now.y.px(y.unit(0)), now.y.px(y.unit(y.size))];
    context.imageSmoothingEnabled = false;
    context.drawImage(it.canvas, left, top, right - left, bottom - top);
  }
}

export function paintBars(
  side: Side,
  camera: Camera,
  layers: Layer[],
  filter: Filter,
): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.floor(camera.x.size));
  canvas.height = Math.max(1, Math.floor(camera.y.size));
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(canvas.width, canvas.height);
  const pixels = new Uint32Array(image.data.buffer);
  const { blocks } = side.header;
  const colors = new Uint32Array(blocks);
  for (let block = 0; block < blocks; ++block) {
    const [r, g, b] = blockRgb(block, blocks);
    colors[block] = ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  }
  /** All bars, those that pass on top of the others. */
  const filteredLineOf = (bars: Bars, first: number, end: number) => {
    for (const isPassing of [false, true]) {
      for (let at = first; at < end; ++at) {
        const message = bars.message[at]!;
        const block = side.blockOf(message);
        const [from, to] = [side.fromOf(message), side.toOf(message)];
        const blocks = side.countOf(side.send[message]!);
        if (passes(filter, from, to, block, side.roundOf(message), blocks) !== isPassing) continue;
        const left = Math.max(0, Math.floor(camera.x.px(bars.start[at]!)));
        const right = Math.max(left + 1, Math.ceil(camera.x.px(bars.end[at]!)));
        line.fill(
          isPassing ? colors[block]! : (colors[block]! & 0xffffff) | 0x20000000,
          left,
          right,
        );
      }
    }
  };
  const line = new Uint32Array(canvas.width);
  const open = isOpen(filter);
  const lineOf = (bars: Bars, row: number) => {
    line.fill(0);
    const [first, end] = barsInView(bars, row, camera.x);
    if (!open) return filteredLineOf(bars, first, end);
    let at = first;
    while (at < end) {
      const left = Math.max(0, Math.floor(camera.x.px(bars.start[at]!)));
      const right = Math.max(left + 1, Math.ceil(camera.x.px(bars.end[at]!)));
      line.fill(colors[side.blockOf(bars.message[at]!)]!, left, right);
      at =
        right - left > 1
          ? at + 1
          : Math.max(at + 1, lowerBound(bars.start, at, end, camera.x.unit(left + 1)));
    }
  };
  for (const layer of layers) {
    let drawn = -1;
    for (let py = 0; py < canvas.height; ++py) {
      const unit = camera.y.unit(py + 0.5);
      const row = Math.floor(unit);
      if (row < 0 || row >= layer.bars.rows) continue;
      const share = unit - row;
      if (camera.y.scale >= 3 && (share < layer.top || share > layer.top + layer.height)) continue;
      if (camera.y.scale < 3 && layer !== layers[0]) continue;
      if (row !== drawn) lineOf(layer.bars, row);
      drawn = row;
      pixels.set(line, py * canvas.width);
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}
