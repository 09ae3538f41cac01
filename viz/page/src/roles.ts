// SPDX-License-Identifier: Apache-2.0
//
// Who has which blocks at first, and who must have which at the end. A plain multicast has its root
// alone; all others come with rows of parts for each node.
import { Columns } from "./decode";
import type { Header } from "./model";

/** As viz/page_data/page_collective.h has it. */
export interface CollectiveHead {
  kind: string;
  root: number | null;
  members: number;
  parts: number;
  blocks_per_part: number;
  combine: { text: string; op: string } | null;
  at_first: string;
  at_end: string;
}

/** Parts `first`, `first + step`, ..., `count` of them, by node. */
class Rows {
  private readonly first: Int32Array;
  private readonly step: Int32Array;
  private readonly count: Int32Array;

  constructor(
    columns: Columns,
    name: string,
    private readonly blocksPerPart: number,
  ) {
    this.first = columns.ints(`${name}.first`);
    this.step = columns.ints(`${name}.step`);
    this.count = columns.ints(`${name}.count`);
  }

  has(node: number, block: number): boolean {
    const behind = Math.floor(block / this.blocksPerPart) - this.first[node]!;
    const step = this.step[node]!;
    return behind >= 0 && behind % step === 0 && behind / step < this.count[node]!;
  }
  blocks(node: number): number {
    return this.count[node]! * this.blocksPerPart;
  }
  /** "4-7", "1, 5, 9, ... (64 in all)": blocks; "" without any. */
  text(node: number, max: number): string {
    const [first, step, count] = [this.first[node]!, this.step[node]!, this.count[node]!];
    const per = this.blocksPerPart;
    const range = (part: number, parts: number) => rangeText(part * per, parts * per);
    if (count === 0) return "";
    if (step === 1 || count === 1) return range(first, count);
    const shown = Array.from({ length: Math.min(max, count) }, (_, i) =>
      range(first + i * step, 1),
    );
    return shown.join(", ") + (count > max ? `, ... (${count * per} in all)` : "");
  }
}

/** "3", "4-7". */
export const rangeText = (first: number, count: number) =>
  count === 1 ? String(first) : `${first}-${first + count - 1}`;

export class Roles {
  private readonly hasRows: Rows | null = null;
  private readonly wantsRows: Rows | null = null;

  constructor(
    private readonly header: Header,
    collective: CollectiveHead | null,
    columns: Columns,
    prefix: string,
  ) {
    if (!collective) return;
    this.hasRows = new Rows(columns, `${prefix}node.has`, collective.blocks_per_part);
    this.wantsRows = new Rows(columns, `${prefix}node.wants`, collective.blocks_per_part);
  }

  /** Whether `node` has a part of `block` at first. */
  has(node: number, block: number): boolean {
    return this.hasRows ? this.hasRows.has(node, block) : node === this.header.root;
  }
  /** Whether `node` must have the whole of `block` at the end. */
  wants(node: number, block: number): boolean {
    return this.wantsRows ? this.wantsRows.has(node, block) : true;
  }
  /** How many blocks it must have. */
  wanted(node: number): number {
    return this.wantsRows ? this.wantsRows.blocks(node) : this.header.blocks;
  }
  hasText(node: number, max: number): string {
    return this.hasRows?.text(node, max) ?? "";
  }
  wantsText(node: number, max: number): string {
    return this.wantsRows?.text(node, max) ?? "";
  }
}
