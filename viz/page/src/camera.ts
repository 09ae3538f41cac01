// SPDX-License-Identifier: Apache-2.0
//
// Camera: which part of a picture a canvas shows, an axis at a time, and the gestures that move it:
// wheel, drag, pinch and keys. The two axes zoom together until one is at its end.
import { select } from "d3-selection";
import { D3ZoomEvent, zoom, zoomIdentity } from "d3-zoom";

export class Axis {
  scale = 1; // pixels per unit
  offset = 0; // pixels from the begin of the plot to unit 0
  length = 1; // units in all
  size = 1; // pixels of the plot
  fitMax = Infinity; // what `fit` scales to at most
  scaleMax = 100;
  centred = false;

  px(unit: number): number {
    return this.offset + unit * this.scale;
  }
  unit(px: number): number {
    return (px - this.offset) / this.scale;
  }
  /** `px`, moved so that `half` pixels to each side of it are in view, if `px` itself is. */
  whole(px: number, half: number): number {
    return px < 0 || px > this.size ? px : Math.max(half, Math.min(this.size - half, px));
  }
  get scaleFit(): number {
    return Math.min(this.fitMax, this.size / Math.max(this.length, 1e-9));
  }
  fit(): void {
    this.scale = this.scaleFit;
    this.offset = 0;
    this.clamp();
  }
  clamp(): void {
    this.scale = Math.min(
      Math.max(this.scale, this.scaleFit),
      Math.max(this.scaleMax, this.scaleFit),
    );
    const rest = this.size - this.length * this.scale;
    if (rest >= 0) this.offset = this.centred ? rest / 2 : 0;
    else this.offset = Math.min(0, Math.max(rest, this.offset));
  }
  zoomAt(px: number, factor: number): void {
    const unit = this.unit(px);
    this.scale *= factor;
    const wished = this.scale;
    this.clamp();
    if (wished !== this.scale) this.scale = Math.max(this.scale, this.scaleFit);
    this.offset = px - unit * this.scale;
    this.clamp();
  }
  /** So that units first..last are in view, if they are not. */
  show(first: number, last: number): boolean {
    const [from, to] = [this.px(first), this.px(last)];
    if (from >= -0.5 && to <= this.size + 0.5) return false;
    this.offset += this.size / 2 - (from + to) / 2;
    this.clamp();
    return true;
  }
}

/** What of both axes is in view, "2,6,1,5", or null. */
export function readZoom(text: string): number[] | null {
  const parts = text.split(",").map((part) => (part === "" ? NaN : Number(part)));
  return parts.length === 4 && parts.every(Number.isFinite) ? parts : null;
}

export const ROW_LABEL_MIN = 14; // pixels from the label of a row to the next
export const ROW_LABEL_HALF = 5; // pixels that it is high above and below its middle

/** 1, 2, 5, 10, ...: the least of which each takes `need` at `scale`. */
export function niceStep(scale: number, need: number): number {
  let step = 1;
  for (let i = 0; step * scale < need; ++i) step = [1, 2, 5][i % 3]! * 10 ** Math.floor(i / 3);
  return step;
}

export class Camera {
  readonly x = new Axis();
  readonly y = new Axis();
  moved = false; // by hand; until then it fits whatever size the picture has

  resize(width: number, height: number): void {
    this.x.size = Math.max(1, width);
    this.y.size = Math.max(1, height);
    if (this.moved) {
      this.x.clamp();
      this.y.clamp();
    } else {
      this.fit();
    }
  }
  fit(): void {
    this.moved = false;
    this.x.fit();
    this.y.fit();
  }
  copy(): Camera {
    const copy = new Camera();
    Object.assign(copy.x, this.x);
    Object.assign(copy.y, this.y);
    copy.moved = this.moved;
    return copy;
  }
  /** Whether it shows the same part at the same size. */
  isSame(other: Camera): boolean {
    const same = (a: Axis, b: Axis) =>
      a.scale === b.scale && a.offset === b.offset && a.size === b.size;
    return same(this.x, other.x) && same(this.y, other.y);
  }
  /** "" when it fits. */
  get text(): string {
    if (!this.moved) return "";
    const axis = (it: Axis) => {
      const [from, to] = [it.unit(0), it.unit(it.size)];
      const step = 10 ** Math.floor(Math.log10(Math.max(1e-9, to - from) / 1e4));
      const round = (n: number) => Number((Math.round(n / step) * step).toPrecision(14));
      return `${round(from)},${round(to)}`;
    };
    return `${axis(this.x)},${axis(this.y)}`;
  }
  set text(text: string) {
    const parts = readZoom(text);
    if (!parts) {
      this.fit();
      return;
    }
    this.moved = true;
    const set = (axis: Axis, from: number, to: number) => {
      axis.scale = axis.size / Math.max(1e-9, to - from);
      axis.offset = -from * axis.scale;
      axis.clamp();
    };
    set(this.x, parts[0]!, parts[1]!);
    set(this.y, parts[2]!, parts[3]!);
  }
}

/** `cameraOf`: the one that is in use; `origin`: where the plot at a point begins. */
export function attachGestures(
  canvas: HTMLCanvasElement,
  cameraOf: () => Camera,
  origin: (x: number, y: number) => { x: number; y: number },
  moved: () => void,
): void {
  let last = zoomIdentity;
  const behavior = zoom<HTMLCanvasElement, unknown>()
    .scaleExtent([1e-12, 1e12])
    .clickDistance(4)
    .on("zoom", (event: D3ZoomEvent<HTMLCanvasElement, unknown>) => {
      const now = event.transform;
      const camera = cameraOf();
      const factor = now.k / last.k;
      if (Math.abs(factor - 1) < 1e-9) {
        camera.x.offset += now.x - last.x;
        camera.y.offset += now.y - last.y;
        camera.x.clamp();
        camera.y.clamp();
      } else {
        // what the gesture leaves in its place
        const fixedX = (now.x - last.x * factor) / (1 - factor);
        const fixedY = (now.y - last.y * factor) / (1 - factor);
        const at = origin(fixedX, fixedY);
        camera.x.zoomAt(fixedX - at.x, factor);
        camera.y.zoomAt(fixedY - at.y, factor);
      }
      last = now;
      camera.moved = true;
      moved();
    });
  select(canvas).call(behavior).on("dblclick.zoom", null);
  canvas.addEventListener("dblclick", () => {
    cameraOf().fit();
    moved();
  });
  canvas.addEventListener("keydown", (event) => {
    const camera = cameraOf();
    const zoomBy = (factor: number) => {
      camera.x.zoomAt(camera.x.size / 2, factor);
      camera.y.zoomAt(camera.y.size / 2, factor);
      camera.moved = true;
    };
    const panBy = (x: number, y: number) => {
      camera.x.offset -= x * camera.x.size * 0.2;
      camera.y.offset -= y * camera.y.size * 0.2;
      camera.x.clamp();
      camera.y.clamp();
      camera.moved = true;
    };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "+" || event.key === "=") zoomBy(1.4);
    else if (event.key === "-") zoomBy(1 / 1.4);
    else if (event.key === "0") camera.fit();
    else if (event.key === "ArrowUp") panBy(0, -1);
    else if (event.key === "ArrowDown") panBy(0, 1);
    else if (event.shiftKey && event.key === "ArrowLeft") panBy(-1, 0);
    else if (event.shiftKey && event.key === "ArrowRight") panBy(1, 0);
    else return;
    event.preventDefault();
    event.stopPropagation();
    moved();
  });
}
