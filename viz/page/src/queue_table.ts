// SPDX-License-Identifier: Apache-2.0
//
// The queues of nodes, for each engine; a node's are decoded when they are first asked for. How they are
// written says viz/page_data/page_queues.h.
import { Columns } from "./decode";

export interface QueueEntry {
  class: string;
  what: string;
  detail: string;
  fields: string; // of a NIC's: what its bytes say
  op: number | null; // of its node
  waits_for: [number, number] | null; // queue, entry
  enables: [number, number] | null;
  rearm: number;
}

export interface NodeQueues {
  engine: string;
  node: number;
  queues: { title: string; detail: string; entries: QueueEntry[] }[];
}

const ENGINES = ["nic", "deferred", "cpu"];
const SLOT = /[\u0001\u0002]/g;
const HEX = "\u0002";
const MADE_MAX = 8; // nodes and engines that are kept decoded
const FIELDS = 4; // of a form that are texts

interface Form {
  texts: string; // class, what, detail, fields, by lines
  marks: string;
  numbers: number;
}

function formOf(text: string): Form {
  const at = text.lastIndexOf("\n");
  const marks = text.slice(at + 1);
  const places = [...marks].reduce((sum, mark) => sum + (mark === "w" || mark === "e" ? 2 : 1), 0);
  return {
    texts: text.slice(0, at),
    marks,
    numbers: (text.match(SLOT)?.length ?? 0) + places,
  };
}

function entryOf(form: Form, numbers: number[]): QueueEntry {
  let next = 0;
  const texts = form.texts
    .replace(SLOT, (slot) => {
      const number = numbers[next++]!;
      return slot === HEX ? number.toString(16).padStart(8, "0") : String(number);
    })
    .split("\n");
  if (texts.length !== FIELDS) throw new Error("the page's data is damaged: a form of queues");
  const entry: QueueEntry = {
    class: texts[0]!,
    what: texts[1]!,
    detail: texts[2]!,
    fields: texts[3]!,
    op: null,
    waits_for: null,
    enables: null,
    rearm: 0,
  };
  for (const mark of form.marks) {
    if (mark === "o") entry.op = numbers[next++]!;
    if (mark === "w") entry.waits_for = [numbers[next++]!, numbers[next++]!];
    if (mark === "e") entry.enables = [numbers[next++]!, numbers[next++]!];
    if (mark === "r") entry.rearm = numbers[next++]!;
  }
  return entry;
}

interface Decoded {
  forms: Form[];
  entries: Int32Array;
  /** By step, where it begins in `steps`; a step is a form and differences. */
  begin: Int32Array;
  steps: Float64Array;
}

export class QueueTable {
  /** Those that some node has queues of. */
  readonly engines: string[];
  private readonly node: Int32Array;
  private readonly engine: Int32Array;
  private readonly begin: Int32Array; // of each in `entries`
  private decoded: Decoded | null = null;
  private readonly made = new Map<number, NodeQueues>(); // the last ones

  constructor(
    private readonly columns: Columns,
    private readonly prefix: string,
    private readonly forms: string[],
  ) {
    this.node = columns.ints(`${prefix}node`);
    this.engine = columns.ints(`${prefix}engine`);
    const count = columns.ints(`${prefix}count`);
    this.begin = new Int32Array(count.length + 1);
    count.forEach((it, i) => (this.begin[i + 1] = this.begin[i]! + it));
    this.engines = ENGINES.filter((_, i) => this.engine.includes(i));
  }

  /** Those that a node has queues of. */
  enginesOf(node: number): string[] {
    return ENGINES.filter((_, engine) => this.indexOf(engine, node) >= 0);
  }
  find(engine: string, node: number): NodeQueues | undefined {
    const index = this.indexOf(ENGINES.indexOf(engine), node);
    if (index < 0) return undefined;
    let queues = this.made.get(index);
    if (queues) return queues;
    queues = this.make(index);
    this.made.set(index, queues);
    if (this.made.size > MADE_MAX) this.made.delete(this.made.keys().next().value!);
    return queues;
  }

  private indexOf(engine: number, node: number): number {
    return this.node.findIndex((it, i) => it === node && this.engine[i] === engine);
  }

  private decode(): Decoded {
    if (this.decoded) return this.decoded;
    const forms = this.forms.map(formOf);
    const steps = this.columns.wide(`${this.prefix}steps`);
    const begin: number[] = [];
    for (let at = 0; at < steps.length; at += 1 + forms[steps[at]!]!.numbers) begin.push(at);
    this.decoded = {
      forms,
      steps,
      begin: Int32Array.from(begin),
      entries: this.columns.ints(`${this.prefix}entries`),
    };
    return this.decoded;
  }

  private make(index: number): NodeQueues {
    const { forms, steps, begin, entries } = this.decode();
    const out: NodeQueues = {
      engine: ENGINES[this.engine[index]!]!,
      node: this.node[index]!,
      queues: [],
    };
    const last = new Map<number, number[]>(); // by form
    for (let i = this.begin[index]!; i < this.begin[index + 1]!; ++i) {
      const at = begin[entries[i]!]!;
      const form = steps[at]!;
      const { numbers: count } = forms[form]!;
      let numbers = last.get(form);
      if (!numbers) last.set(form, (numbers = new Array<number>(count).fill(0)));
      for (let k = 0; k < count; ++k) numbers[k]! += steps[at + 1 + k]!;
      const entry = entryOf(forms[form]!, numbers);
      if (entry.class === "queue") {
        out.queues.push({ title: entry.what, detail: entry.detail, entries: [] });
      } else {
        out.queues.at(-1)!.entries.push(entry);
      }
    }
    return out;
  }
}
