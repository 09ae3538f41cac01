// SPDX-License-Identifier: Apache-2.0
//
// The figures of two sides beside each other; most of those that are the same are left out.
import { timeText } from "./clock";
import { Side } from "./model";
import { REASONS } from "./palette";
import { endText, overText } from "./plan_facts";
import { WaitKind } from "./reasons";
import { activityOf } from "./run_activity";
import { gapSumsOf } from "./run_gaps";
import { Store } from "./store";
import { count } from "./targets";
import { reasonKey } from "./timeline";
import { make } from "./view";

interface Figure {
  name: string | HTMLElement;
  value: string;
  isAlways?: boolean;
}

/** The mean, and how many are needed. */
function crossingsText(side: Side): string {
  const topology = side.head.stats?.["topology"] as Record<string, unknown> | undefined;
  const crossings = topology?.["crossings"] as Record<string, number> | undefined;
  if (!crossings) return "-";
  return `${Number(Number(crossings["mean"]).toFixed(1))} (${crossings["needed"]} needed)`;
}

/** Whether ends are as its hosts saw them; else as NICs did. */
const isAsHostsSaw = (side: Side) =>
  side.hasRun && side.head.run!.executor === "cpu" && !side.head.run!.modelled;

function figuresOf(side: Side, gapKinds: WaitKind[]): Figure[] {
  const { header, head } = side;
  const { run } = head;
  const hosts = run?.hosts ?? [];
  const sum = (of: "posts" | "posts_during" | "wakeups" | "cpu_ns") =>
    hosts.reduce((all, host) => all + host[of], 0);
  const posts = side.hasRun ? activityOf(side).posts : null;
  const postsText = (ofHosts: number, ops: number | undefined) =>
    hosts.length > 0 ? String(ofHosts) : ops === undefined ? "-" : count(ops, "op");
  const gaps = side.hasRun ? gapSumsOf(side) : [];
  return [
    { name: "nodes", value: String(header.nodes) },
    { name: "blocks", value: String(header.blocks) },
    { name: "rounds", value: String(header.rounds), isAlways: true },
    { name: "model time", value: String(head.length) },
    { name: `crossings of ${side.head.racks?.word ?? "rack"}s per block`, value: crossingsText(side) },
    { name: "executor", value: run ? run.executor : "-" },
    { name: "over", value: run ? overText(side) : "no run", isAlways: side.hasRun },
    { name: "completes", value: run ? endText(side).replace("complete after ", "") : "-" },
    {
      name: "posts before the start",
      value: postsText(sum("posts") - sum("posts_during"), posts?.before),
    },
    { name: "posts during it", value: postsText(sum("posts_during"), posts?.times.length) },
    { name: "wake-ups", value: hosts.length > 0 ? String(sum("wakeups")) : "-" },
    { name: "hosts' processor time", value: hosts.length > 0 ? timeText(sum("cpu_ns")) : "-" },
    ...gapKinds.map((kind) => {
      const name = make("span", {}, "gaps after: ", reasonKey(kind));
      const gap = gaps.find((it) => it.kind === kind);
      return { name, value: !side.hasRun ? "-" : gap ? timeText(gap.sum) : "none" };
    }),
  ];
}

export function sidesFigures(store: Store): HTMLElement {
  const kinds = Object.keys(REASONS).map((kind) => Number(kind) as WaitKind);
  const gapKinds = kinds.filter((kind) =>
    store.sides.some((side) => side.hasRun && gapSumsOf(side).some((it) => it.kind === kind)),
  );
  const [a, b] = store.sides.map((side) => figuresOf(side, gapKinds)) as [Figure[], Figure[]];
  const heads = store.sides.map((_, i) => make("th", {}, `${"AB"[i]}: ${store.sideName(i)}`));
  const table = make("table", {}, make("tr", {}, make("th", {}), ...heads));
  a.forEach(({ name, value, isAlways }, i) => {
    const other = b[i]!.value;
    if (value === other && !isAlways) return;
    const cells =
      value === other
        ? [make("td", { colspan: "2" }, value)]
        : [value, other].map((text) => make("td", { class: "differs" }, text));
    table.append(make("tr", {}, make("td", {}, name), ...cells));
  });
  const seen = store.sides.map(isAsHostsSaw);
  const [host, nic] = seen[0] ? ["A", "B"] : ["B", "A"];
  const note =
    `What sends waited for ended when ${host}'s hosts saw it, and when ${nic}'s NICs had it: ` +
    `what hosts take to see it is in no gap of ${host}.`;
  return make("div", {}, table, make("p", { class: "note" }, gapKinds.length > 0 && seen[0] !== seen[1] ? note : ""));
}
