// SPDX-License-Identifier: Apache-2.0
//
// A plan as a whole, as names and values: what its header says, and the figures of `prepost stats`.
import { timeText } from "./clock";
import { NONE, Side } from "./model";
import { count } from "./targets";

type Json = Record<string, unknown>;

/** The part of `stats` at `path`, or null; the figures of another version may lack it. */
function at(stats: Json | null, ...path: string[]): unknown {
  let value: unknown = stats;
  for (const key of path) {
    if (value === null || typeof value !== "object") return null;
    value = (value as Json)[key] ?? null;
  }
  return value;
}

const RESOURCES: Record<string, string> = {
  node_out: "the port out of node",
  node_in: "the port into node",
  rack_up: "the uplinks of",
  rack_down: "the downlinks of",
  core: "the core",
  latency: "latency",
};

function busiest(side: Side, stats: Json): string | null {
  const list = at(stats, "busiest");
  const first = Array.isArray(list) ? (list[0] as Json | undefined) : undefined;
  if (!first) return null;
  const resource = String(first["resource"]);
  const index = Number(first["index"] ?? 0);
  const isRack = resource.startsWith("rack");
  const racks = side.head.racks;
  const rack = racks ? `${racks.word} ${racks.names[index] ?? index}` : `rack ${index}`;
  const which = isRack ? rack : String(index);
  const name = resource === "link" ? String(first["name"]) : (RESOURCES[resource] ?? resource);
  const needsIndex = resource.startsWith("node") || isRack;
  // A round may carry several blocks of a message; with a network its time counts.
  const share = `${(100 * Number(first["busy_share"] ?? 0)).toFixed(1)} % of the rounds`;
  const isCounted = side.countMax > 1 && first["seconds"] === undefined;
  const load = isCounted ? count(Number(first["blocks"] ?? 0), "block") : share;
  return `${name}${needsIndex ? ` ${which}` : ""}, ${load}`;
}

/** What a collective is, and who has what; null of a plain multicast. */
function collectiveFacts({ header, head, root }: Side): [string, string][] | null {
  const it = head.collective;
  if (!it) return null;
  const helpers = header.nodes - it.members;
  const blocks = count(header.blocks, "block");
  const bytes = `${header.part_bytes ? "up to " : ""}${count(header.bytes, "byte")}`;
  return [
    ["collective", `${it.kind}${it.combine ? `, ${it.combine.text}` : ""}`],
    [
      "nodes",
      `${header.nodes}${root === NONE ? "" : `, root ${root}`}` +
        (helpers === 0
          ? ""
          : `; the last ${helpers === 1 ? "helps" : `${helpers} help`} the others`),
    ],
    ["message", `${it.parts === 1 ? bytes : `${it.parts} parts of ${bytes}`} in ${blocks}`],
    ["at first", it.at_first],
    ["at the end", it.at_end],
  ];
}

export function planFacts(side: Side): [string, string][] {
  const { header, head } = side;
  const { stats } = head;
  const facts: [string, string][] = collectiveFacts(side) ?? [
    ["nodes", `${header.nodes}, root ${header.root}`],
    ["message", `${count(header.bytes, "byte")} in ${count(header.blocks, "block")}`],
  ];
  const add = (name: string, value: string | null) => {
    if (value !== null) facts.push([name, value]);
  };
  const bound = at(stats, "rounds_bound", "rounds");
  const formula = at(stats, "rounds_bound", "formula");
  add(
    "rounds",
    `${header.rounds}` +
      (bound === null
        ? ""
        : bound === header.rounds
          ? `, as few as possible: ${formula}`
          : `; bound ${formula}`),
  );
  add("model time", `the last message arrives at ${head.length}`);
  const depth = [at(stats, "depth", "blocks"), at(stats, "depth", "credits")];
  if (depth[0] !== null) {
    add("depth", `${count(Number(depth[0]), "block")} and ${count(Number(depth[1]), "credit")}`);
  }
  add(
    "ops",
    `${side.ops} in ${count(side.messages, "message")}, ${count(side.from.length, "channel")}`,
  );
  let critical = 0;
  let blocks = 0;
  for (let message = 0; message < side.messages; ++message) {
    if (side.isCredit(message)) continue;
    ++blocks;
    if (side.slack[message] === 0) ++critical;
  }
  add(
    "critical",
    `${critical} of ${count(blocks, side.countMax > 1 ? "message" : "block transfer")} have no slack`,
  );
  const last = (key: string) => at(stats, "last_block", key);
  if (last("skew") !== null) {
    const first = `from round ${last("first_round")} (node ${last("first_node")})`;
    add("last block", `${first} to round ${last("last_round")} (node ${last("last_node")})`);
  }
  const pairs = ["min", "median", "max"].map((it) => at(stats, "queue_pairs", it));
  if (pairs[0] !== null) add("queue pairs", `${pairs.join(", ")} (min, median, max of a node)`);
  if (stats) add("bottleneck", busiest(side, stats));
  const crossings = ["min", "mean", "max", "needed"].map((it) =>
    at(stats, "topology", "crossings", it),
  );
  if (head.racks) add(`${head.racks.word}s`, String(new Set(head.racks.of).size));
  if (crossings[0] !== null) {
    add(
      "crossings",
      `of ${head.racks?.word ?? "rack"}s per block: ${crossings
        .slice(0, 3)
        .map((it) => Number(Number(it).toFixed(1)))
        .join(", ")} (min, mean, max); ${crossings[3]} needed`,
    );
  }
  const { run } = head;
  if (run) add("run", `${run.label}: ${runText(side)}; ${endText(side)}`);
  return facts;
}

/** Whether the run ended well and all of it is known. */
export function isWhole(side: Side): boolean {
  const { receives, receives_known, outcome } = side.head.run!;
  return receives_known === receives && outcome === "completed";
}

/** "complete after 1.2 ms"; or why it failed, and how much of it is known. */
export function endText(side: Side): string {
  const run = side.head.run!;
  const { receives: all, receives_known: known, nodes_missing: missing } = run;
  if (isWhole(side)) return `complete after ${timeText(run.duration_ns)}`;
  const parts = run.outcome === "completed" ? [] : [`failed: ${run.outcome}`];
  if (missing.length > 0) {
    const some = missing.slice(0, 8).join(", ");
    const more = missing.length > 8 ? `, ... (${missing.length} in all)` : "";
    parts.push(`no trace of ${missing.length === 1 ? "node" : "nodes"} ${some}${more}`);
  }
  parts.push(`${known} of ${all} receives of blocks are known`);
  if (known > 0) parts.push(`the last after ${timeText(run.duration_ns)}`);
  return parts.join("; ");
}

/** "tcp", "modelled, ...": its transport, or with what it was modelled. */
export function overText(side: Side): string {
  const { detail, modelled } = side.head.run!;
  return modelled && !detail.includes("modelled") ? `${detail}, modelled` : detail;
}

/** "cpu, tcp", "offload, modelled, ...". */
export function runText(side: Side): string {
  return `${side.head.run!.executor}, ${overText(side)}`;
}
