// SPDX-License-Identifier: Apache-2.0
//
// Reads the page's data: base64 of a zlib stream of a JSON head and columns of integers. It knows
// the encoding and nothing of plans.

export interface ColumnHead {
  name: string;
  count: number;
  bytes: number;
  /** Each value stands for itself; else it is the difference to the one before. */
  plain?: true;
}

export interface Head<Side> {
  version: number;
  generator: string;
  columns: ColumnHead[];
  /** What the flags of `prepost draw` ask for first. */
  first?: { view: string; nodes: number[]; blocks: number[]; rounds: [number, number] | null };
  sides: Side[];
}

/** The columns by name; each is decoded when asked for. */
export class Columns {
  private readonly at = new Map<string, { head: ColumnHead; begin: number }>();

  constructor(
    heads: ColumnHead[],
    private readonly bytes: Uint8Array,
    begin: number,
  ) {
    for (const head of heads) {
      this.at.set(head.name, { head, begin });
      begin += head.bytes;
    }
    if (begin > bytes.length) throw new Error("the page's data is cut short");
  }

  has(name: string): boolean {
    return this.at.has(name);
  }

  /** A column whose values fit 31 bits; empty if there is none. */
  ints(name: string): Int32Array {
    const found = this.at.get(name);
    if (!found) return new Int32Array(0);
    const out = new Int32Array(found.head.count);
    const bytes = this.bytes;
    const keep = found.head.plain ? 0 : -1;
    let at = found.begin;
    let value = 0;
    for (let i = 0; i < out.length; ++i) {
      let byte = bytes[at++]!;
      value &= keep;
      if (byte < 0x80) {
        // nearly all of them
        value += (byte >>> 1) ^ -(byte & 1);
        out[i] = value;
        continue;
      }
      let zigzag = byte & 0x7f;
      let shift = 7;
      do {
        byte = bytes[at++]!;
        zigzag |= (byte & 0x7f) << shift;
        shift += 7;
      } while (byte >= 0x80);
      value += (zigzag >>> 1) ^ -(zigzag & 1);
      out[i] = value;
    }
    return out;
  }

  /** A column whose values fit 53 bits; empty if there is none. */
  wide(name: string): Float64Array {
    const found = this.at.get(name);
    if (!found) return new Float64Array(0);
    const out = new Float64Array(found.head.count);
    const { bytes } = this;
    const { plain } = found.head;
    let at = found.begin;
    let value = 0;
    for (let i = 0; i < out.length; ++i) {
      let byte = bytes[at++]!;
      let zigzag = byte & 0x7f;
      for (let unit = 128; byte >= 0x80; unit *= 128) {
        byte = bytes[at++]!;
        zigzag += (byte & 0x7f) * unit;
      }
      if (plain) value = 0;
      value += zigzag % 2 === 0 ? zigzag / 2 : -(zigzag + 1) / 2;
      out[i] = value;
    }
    return out;
  }
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const modern = Uint8Array as unknown as {
    fromBase64?: (text: string) => Uint8Array<ArrayBuffer>;
  };
  if (modern.fromBase64) return modern.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; ++i) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** Throws an Error in words for people if the data or the browser is not as it must be. */
export async function decode<Side>(text: string): Promise<{ head: Head<Side>; columns: Columns }> {
  if (text.startsWith("@")) throw new Error("this page is empty: prepost draw fills it");
  if (typeof DecompressionStream === "undefined") {
    throw new Error(
      "this browser is too old for the page: it has no DecompressionStream " +
        "(Chrome 80, Firefox 113, Safari 16.4 or later have it)",
    );
  }
  const packed = new Blob([fromBase64(text)]).stream();
  let bytes: Uint8Array;
  try {
    const stream = packed.pipeThrough(new DecompressionStream("deflate"));
    bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  } catch {
    throw new Error("the page's data is damaged: it does not decompress");
  }
  const size = new DataView(bytes.buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size))) as Head<Side>;
  if (head.version !== 1) throw new Error(`the page's data has version ${head.version}, not 1`);
  return { head, columns: new Columns(head.columns, bytes, 4 + size) };
}
