// SPDX-License-Identifier: Apache-2.0
//
// Filter: rounds, nodes and blocks that the views show in full; the rest is dimmed.

export interface Filter {
  rounds: [number, number] | null;
  nodes: ReadonlySet<number> | null;
  blocks: ReadonlySet<number> | null;
  /** As they were typed. */
  text: { rounds: string; nodes: string; blocks: string };
}

export const noFilter: Filter = {
  rounds: null,
  nodes: null,
  blocks: null,
  text: { rounds: "", nodes: "", blocks: "" },
};

const RANGE = /^(\d{1,9})(?:[-:](\d{1,9}))?$/;

function parseRounds(text: string, rounds: number): [number, number] | null {
  const clean = text.replace(/\s+/g, "");
  if (clean === "") return null;
  const found = RANGE.exec(clean);
  if (!found) throw new Error(`rounds are written 3:7 or 5, not '${text}'`);
  const first = Number(found[1]);
  const last = found[2] === undefined ? first : Number(found[2]);
  if (last < first) throw new Error(`rounds ${first} to ${last} are none`);
  if (last >= rounds) {
    throw new Error(`there is no round ${last}, the rounds are 0 to ${rounds - 1}`);
  }
  return [first, last];
}

function parseList(what: string, text: string, size: number): ReadonlySet<number> | null {
  const clean = text.replace(/\s+/g, "");
  if (clean === "") return null;
  const out = new Set<number>();
  for (const part of clean.split(",")) {
    if (part === "") continue;
    const found = RANGE.exec(part);
    if (!found) throw new Error(`${what}s are written 1,3,5-7, not '${text}'`);
    const first = Number(found[1]);
    const last = found[2] === undefined ? first : Number(found[2]);
    if (last >= size) {
      throw new Error(`there is no ${what} ${last}, the ${what}s are 0 to ${size - 1}`);
    }
    if (last < first) throw new Error(`${what}s ${first} to ${last} are none`);
    for (let i = first; i <= last; ++i) out.add(i);
  }
  return out;
}

export const FIELDS = ["rounds", "nodes", "blocks"] as const;
export type Field = (typeof FIELDS)[number];

interface Sizes {
  nodes: number;
  blocks: number;
  rounds: number;
}

/** Reads one field into the filter. Throws an Error that says what is wrong. */
export function withField(filter: Filter, field: Field, text: string, sizes: Sizes): Filter {
  const value =
    field === "rounds"
      ? parseRounds(text, sizes.rounds)
      : parseList(field === "nodes" ? "node" : "block", text, sizes[field]);
  return { ...filter, [field]: value, text: { ...filter.text, [field]: text } };
}

/** The same of all fields. */
export function parseFilter(text: Filter["text"], sizes: Sizes): Filter {
  return FIELDS.reduce((filter, field) => withField(filter, field, text[field], sizes), noFilter);
}

export const isOpen = (filter: Filter) => !filter.rounds && !filter.nodes && !filter.blocks;

/** `count`: of blocks, from `block` on. */
export function passes(
  filter: Filter,
  from: number,
  to: number,
  block: number,
  round: number,
  count = 1,
): boolean {
  if (filter.rounds && (round < filter.rounds[0] || round > filter.rounds[1])) return false;
  if (filter.nodes && !filter.nodes.has(from) && !filter.nodes.has(to)) return false;
  if (!filter.blocks || block < 0) return true; // credits have none
  for (let i = 0; i < count; ++i) if (filter.blocks.has(block + i)) return true;
  return false;
}
