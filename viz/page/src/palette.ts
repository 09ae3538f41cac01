// SPDX-License-Identifier: Apache-2.0
//
// Colours: one per block, in order, from violet over green to yellow (ten even steps of viridis,
// Smith and van der Walt 2015, CC0), one per reason (Okabe and Ito 2008), and those of the page in
// the scheme that is on. Nothing is said by colour alone.
import { WaitKind } from "./reasons";

export type Rgb = readonly [number, number, number];

const BLOCK_SCALE: Rgb[] = [
  [0x44, 0x01, 0x54],
  [0x48, 0x28, 0x78],
  [0x3e, 0x49, 0x89],
  [0x31, 0x68, 0x8e],
  [0x26, 0x82, 0x8e],
  [0x1f, 0x9e, 0x89],
  [0x35, 0xb7, 0x79],
  [0x6e, 0xce, 0x58],
  [0xb5, 0xde, 0x2b],
  [0xfd, 0xe7, 0x25],
];

/** The colour of `block` of `blocks`. */
export function blockRgb(block: number, blocks: number): Rgb {
  const at = (blocks === 1 ? 0.5 : block / (blocks - 1)) * (BLOCK_SCALE.length - 1);
  const step = Math.min(BLOCK_SCALE.length - 2, Math.floor(at));
  const [low, high] = [BLOCK_SCALE[step]!, BLOCK_SCALE[step + 1]!];
  const mix = (i: 0 | 1 | 2) => Math.round(low[i] + (high[i] - low[i]) * (at - step));
  return [mix(0), mix(1), mix(2)];
}

export const css = ([r, g, b]: Rgb) => `rgb(${r},${g},${b})`;

function luminance(rgb: Rgb): number {
  const [r, g, b] = rgb.map((channel) => {
    const value = channel / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** Colours of all blocks, made once per number of blocks. */
export class BlockColors {
  private static readonly made = new Map<number, BlockColors>();
  private readonly fills: string[] = [];
  private readonly inks: string[] = [];

  private constructor(private readonly blocks: number) {}

  static of(blocks: number): BlockColors {
    let colors = this.made.get(blocks);
    if (!colors) this.made.set(blocks, (colors = new BlockColors(blocks)));
    return colors;
  }
  fill(block: number): string {
    return (this.fills[block] ??= css(blockRgb(block, this.blocks)));
  }
  /** Of text on it: white wherever its contrast is at least 4.5 to 1. */
  ink(block: number): string {
    return (this.inks[block] ??=
      1.05 / (luminance(blockRgb(block, this.blocks)) + 0.05) >= 4.5 ? "#fff" : "#000");
  }
}

export interface Reason {
  name: string;
  color: string;
  dash: number[];
}

/** How edges of each kind look; the colours are mid-bright, for both schemes. */
export const REASONS: Record<WaitKind, Reason> = {
  [WaitKind.Transfer]: { name: "transfer", color: "#8a8f98", dash: [] },
  [WaitKind.Data]: { name: "block must have arrived", color: "#2f8fd8", dash: [] },
  [WaitKind.SendWindow]: { name: "send window", color: "#e08e00", dash: [7, 3] },
  [WaitKind.ChannelOrder]: { name: "channel order", color: "#8a8f98", dash: [2, 3] },
  [WaitKind.ReceiveWindow]: { name: "receive window", color: "#c8649b", dash: [7, 3] },
  [WaitKind.Credit]: { name: "credit", color: "#12a37a", dash: [4, 2] },
  [WaitKind.After]: { name: "after", color: "#d55e00", dash: [] },
  [WaitKind.DeliveryOrder]: { name: "channel order", color: "#8a8f98", dash: [2, 3] },
  [WaitKind.Granted]: { name: "receive posted", color: "#9a7fd1", dash: [2, 2] },
  [WaitKind.Posted]: { name: "receive posted", color: "#9a7fd1", dash: [2, 2] },
  [WaitKind.PostOrder]: { name: "channel order", color: "#8a8f98", dash: [2, 3] },
  [WaitKind.Barrier]: { name: "barrier", color: "#8a8f98", dash: [1, 3] },
};

/** A mark of what goes between racks; on both schemes at least 3 to 1. */
export const CROSSING = "#d55e00";

/** Colours of the page, read from its style. */
export interface Theme {
  paper: string;
  panel: string;
  cell: string;
  line: string;
  ink: string;
  faint: string;
  mark: string;
  clock: string;
  paperRgb: Rgb;
  cellRgb: Rgb;
}

let theme: Theme | null = null;

function toRgb(text: string): Rgb {
  const hex = /^#([0-9a-f]{6})$/i.exec(text);
  const value = hex ? parseInt(hex[1]!, 16) : 0;
  return [value >> 16, (value >> 8) & 255, value & 255];
}

export function currentTheme(): Theme {
  if (theme) return theme;
  const style = getComputedStyle(document.documentElement);
  const read = (name: string) => style.getPropertyValue(`--${name}`).trim();
  theme = {
    paper: read("paper"),
    panel: read("panel"),
    cell: read("cell"),
    line: read("line"),
    ink: read("ink"),
    faint: read("faint"),
    mark: read("mark"),
    clock: read("clock"),
    paperRgb: toRgb(read("paper")),
    cellRgb: toRgb(read("cell")),
  };
  return theme;
}

/** The scheme changed. */
export function forgetTheme(): void {
  theme = null;
}
