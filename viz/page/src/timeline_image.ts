// SPDX-License-Identifier: Apache-2.0
//
// Many bars of a timeline as an image: a pixel per pixel; of the bars that begin within one, the
// first shows.
import { Camera } from "./camera";
import { Filter, passes } from "./filter";
import { Side } from "./model";
import { blockRgb } from "./palette";
import { Bars, lowerBound } from "./run_bars";
import { Layer } from "./timeline_frame";

/** `range`: the bars of a row that are in view. */
export function paintBars(
  side: Side,
  camera: Camera,
  layers: Layer[],
  filter: Filter,
  range: (bars: Bars, row: number) => [number, number],
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
  const line = new Uint32Array(canvas.width);
  const lineOf = (bars: Bars, row: number) => {
    line.fill(0);
    const [first, end] = range(bars, row);
    let at = first;
    while (at < end) {
      const left = Math.max(0, Math.floor(camera.x.px(bars.start[at]!)));
      const right = Math.max(left + 1, Math.ceil(camera.x.px(bars.end[at]!)));
      const message = bars.message[at]!;
      const block = side.blockOf(message);
      const shown = passes(
        filter,
        side.fromOf(message),
        side.toOf(message),
        block,
        side.roundOf(message),
      );
      line.fill(shown ? colors[block]! : (colors[block]! & 0xffffff) | 0x20000000, left, right);
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
