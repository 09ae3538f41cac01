// SPDX-License-Identifier: Apache-2.0
//
// Colours: one per block, in order, from violet over green to yellow (ten even steps of viridis,
// Smith and van der Walt 2015, CC0), one per reason (after Okabe and Ito 2008), and those of the page in
// the scheme that is on. What colours say is said in words or shapes, too.
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

const css = ([r, g, b]: Rgb) => `rgb(${r},${g},${b})`;

function luminance(rgb: Rgb): number {
  const [r, g, b] = rgb.map((channel) => {
    const value = channel / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

const EDGE_CONTRAST = 2; // colours with less have an edge

function contrast(a: Rgb, b: Rgb): number {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

/** Colours of all blocks, made once per number of blocks. */
export class BlockColors {
  private static readonly made = new Map<number, BlockColors>();
  private readonly fills: string[] = [];
  private readonly inks: string[] = [];
  private edges: string[] = [];
  private edgesOf: Theme | null = null;

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
  /**
   * Of a thin line around it, which is the stronger the less its colour differs from the paper (on
   * dark the first blocks, on light the last); "" where it stands out by itself, by 2 to 1.
   */
  edge(block: number): string {
    const theme = currentTheme();
    if (this.edgesOf !== theme) [this.edgesOf, this.edges] = [theme, []];
    return (this.edges[block] ??= this.edgeOn(theme, block));
  }
  private edgeOn(theme: Theme, block: number): string {
    const missing = EDGE_CONTRAST - contrast(blockRgb(block, this.blocks), theme.paperRgb);
    if (missing <= 0) return "";
    const [r, g, b] = theme.faintRgb;
    return `rgba(${r},${g},${b},${missing.toFixed(2)})`;
  }
}

interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** Draws at the foot of a box, which has the colour of `block`, those of the blocks up to `last`. */
export function drawRange(
  context: CanvasRenderingContext2D,
  colors: BlockColors,
  block: number,
  last: number,
  { left, top, width, height }: Box,
): void {
  const parts = Math.min(last - block + 1, 8);
  for (let i = 0; i < parts; ++i) {
    context.fillStyle = colors.fill(block + Math.round((i * (last - block)) / (parts - 1)));
    context.fillRect(left + (i * width) / parts, top + height - 3, width / parts, 3);
  }
}

/** The path of a box without its upper left corner: what it stands for was combined. */
export function cutRect(
  context: CanvasRenderingContext2D,
  { left, top, width, height }: Box,
): void {
  const cut = Math.min(width / 3, height / 2, 8);
  context.moveTo(left + cut, top);
  context.lineTo(left + width, top);
  context.lineTo(left + width, top + height);
  context.lineTo(left, top + height);
  context.lineTo(left, top + cut);
  context.closePath();
}

/** Draws the edge of what is in a block's colour, within its box; of a thin one at its top. */
export function drawBlockEdge(
  context: CanvasRenderingContext2D,
  colors: BlockColors,
  block: number,
  box: Box,
): void {
  const edge = colors.edge(block);
  if (edge === "" || box.width < 4) return;
  if (box.height < 4) {
    context.fillStyle = edge;
    context.fillRect(box.left, box.top, box.width, 1);
    return;
  }
  context.strokeStyle = edge;
  context.lineWidth = 1;
  context.strokeRect(box.left + 0.5, box.top + 0.5, box.width - 1, box.height - 1);
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
  [WaitKind.CombineOrder]: { name: "channel order", color: "#8a8f98", dash: [2, 3] },
  [WaitKind.Left]: { name: "old value must have left", color: "#b8860b", dash: [5, 2, 1, 2] },
  [WaitKind.Scratch]: { name: "scratch buffer", color: "#c8649b", dash: [2, 2] },
  [WaitKind.After]: { name: "after", color: "#d55e00", dash: [] },
  [WaitKind.DeliveryOrder]: { name: "channel order", color: "#8a8f98", dash: [2, 3] },
  [WaitKind.Granted]: { name: "receive posted", color: "#9a7fd1", dash: [2, 2] },
  [WaitKind.Arrived]: { name: "transfer", color: "#8a8f98", dash: [] },
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
  faintRgb: Rgb;
}

let theme: Theme | null = null;

export function currentTheme(): Theme {
  if (theme) return theme;
  // An element has the colours that the scheme chooses; the variables have both.
  const probe = document.createElement("span");
  document.body.append(probe);
  const read = (name: string) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const toRgb = (text: string) => (text.match(/\d+/g) ?? []).map(Number) as unknown as Rgb;
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
    faintRgb: toRgb(read("faint")),
  };
  probe.remove();
  return theme;
}

/** The scheme changed. */
export function forgetTheme(): void {
  theme = null;
}
