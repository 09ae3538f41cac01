// SPDX-License-Identifier: Apache-2.0
//
// The whole grid as an image, made once: a pixel per node and round, or two, one for the block that
// is received and one for the block that is sent. Larger plans are binned; the last one shows.
import { indicesOf } from "./indices";
import { Side } from "./model";
import { Filter, isOpen, passes } from "./filter";
import { Rgb, blockRgb, currentTheme } from "./palette";

const SIZE_MAX = 4096;

export interface Overview {
  canvas: HTMLCanvasElement;
  /** Pixels per node: 1 or 2 (or less, where nodes are binned). */
  perNode: number;
}

function pack([r, g, b]: Rgb): number {
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0; // little-endian RGBA
}

function mix(a: Rgb, b: Rgb, share: number): Rgb {
  const at = (i: 0 | 1 | 2) => Math.round(a[i] + (b[i] - a[i]) * share);
  return [at(0), at(1), at(2)];
}

/** `both`: two pixels per node; else one, of the block received, or faint of the one sent. */
export function drawOverview(
  side: Side,
  filter: Filter,
  both: boolean,
  dims: ((message: number) => boolean) | null,
): Overview {
  const { nodes, rounds, blocks } = side.header;
  const rowsWished = nodes * (both ? 2 : 1);
  const width = Math.min(SIZE_MAX, Math.max(1, rounds));
  const height = Math.min(SIZE_MAX, rowsWished);
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const theme = currentTheme();
  const idle = pack(theme.cellRgb);
  pixels.fill(idle);
  const full = new Uint32Array(blocks);
  const dimmed = new Uint32Array(blocks);
  for (let block = 0; block < blocks; ++block) {
    const rgb = blockRgb(block, blocks);
    full[block] = pack(rgb);
    dimmed[block] = pack(mix(rgb, theme.paperRgb, 0.8));
  }
  const faint = both
    ? full
    : Uint32Array.from(full, (_, block) => pack(mix(blockRgb(block, blocks), theme.cellRgb, 0.72)));
  const open = isOpen(filter) && !dims;
  const isShown = (message: number, channel: number, block: number, round: number) => {
    const count = side.countOf(side.send[message]!);
    const [from, to] = [side.from[channel]!, side.to[channel]!];
    return passes(filter, from, to, block, round, count) && !dims?.(message);
  };
  const column = new Int32Array(rounds);
  for (let round = 0; round < rounds; ++round) column[round] = Math.floor((round * width) / rounds);
  const row = (node: number, part: number) =>
    Math.floor(((side.rowOf[node]! * (both ? 2 : 1) + part) * height) / rowsWished) * width;
  const inRow = new Int32Array(nodes);
  const outRow = new Int32Array(nodes);
  for (let node = 0; node < nodes; ++node) {
    inRow[node] = row(node, 0);
    outRow[node] = both ? row(node, 1) : inRow[node]!;
  }
  const list = indicesOf(side).blocksByRound;
  const { channelOf, from, to, block: blockAt, round: roundAt, send } = side;
  for (let i = 0; i < list.length; ++i) {
    // sends first, so that receives stay on top
    const message = list[i]!;
    const channel = channelOf[message]!;
    const op = send[message]!;
    const block = blockAt[op]!;
    const round = roundAt[op]!;
    const at = outRow[from[channel]!]! + column[round]!;
    if (!both && pixels[at] !== idle) continue;
    const shown = open || isShown(message, channel, block, round);
    pixels[at] = (shown ? faint : dimmed)[block]!;
  }
  for (let i = 0; i < list.length; ++i) {
    const message = list[i]!;
    const channel = channelOf[message]!;
    const op = send[message]!;
    const block = blockAt[op]!;
    const round = roundAt[op]!;
    const shown = open || isShown(message, channel, block, round);
    pixels[inRow[to[channel]!]! + column[round]!] = (shown ? full : dimmed)[block]!;
  }
  context.putImageData(image, 0, 0);
  return { canvas, perNode: height / nodes };
}
