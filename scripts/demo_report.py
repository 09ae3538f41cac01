# SPDX-License-Identifier: Apache-2.0
"""The report at the end of scripts/demo, from what the runs wrote: NAME BYTES OUTPUT-FOLDER."""
import json
import os
import pathlib
import sys

name, size, folder = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
plan = json.loads((folder / "plan.json").read_text())
cpu = json.loads((folder / "cpu.json").read_text())
offload = json.loads((folder / "offload.json").read_text())


def spread(run, key):
    values = [node[key] for node in run["nodes"]]
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"


def total(run, key):
    return sum(node[key] for node in run["nodes"])


def row(what, key):
    return f"  {what:<44} {spread(cpu, key):>12} {spread(offload, key):>12}"


rows = [
    f"  {'per node':<44} {'CPU-driven':>12} {'preposted':>12}",
    row("times work was handed over (posts; doorbells)", "host_posts"),
    row("  of these during the transfer", "host_posts_during"),
    row("times the host woke up during the transfer", "host_wakeups"),
    row("completions the host looked at", "host_completions"),
]
blocks = plan["message"]["blocks"]
here = os.path.relpath(folder)
print(
    f"""
What happened
  {name} ({size:,} bytes) was cut into {blocks} block{"" if blocks == 1 else "s"}, and its
  multicast from node 0 to 7 others compiled ahead of time into one program of sends and receives
  per node: a {plan["algorithm"].replace("_", " ")}, in which nodes pass on different blocks at the
  same time, {plan["rounds"]} rounds in all. The plan was proved free of deadlock and complete:
    {(folder / "verdict.txt").read_text().strip()}
  Then the same plan ran twice:
    CPU-driven  8 processes over TCP; each host reacts to every completion and posts what comes
                next.
    preposted   8 NICs (in software here, executing the bytes a ConnectX would); each host posts
                everything ahead, rings its doorbells, and sleeps while the queues wait for each
                other, until one final completion.
  All copies are identical to the original, byte for byte (BLAKE2b-256 {offload["blake2b_256"]}).

What the hosts had to do
{chr(10).join(rows)}
  So the hosts of all nodes together woke up {total(cpu, "host_wakeups")} times when CPU-driven,
  and {total(offload, "host_wakeups")} times when preposted.
  (Times are not compared: the NICs are emulated on the same cores.
  CPU-driven {cpu["elapsed_ns"] / 1e6:.1f} ms, preposted {offload["elapsed_ns"] / 1e6:.1f} ms.)

Where to look ({here}/)
  spacetime.svg      who has which block when      graph.svg          what waits for what
  plan.json          the plan                      node-5-queues.txt  node 5's queues, WQE by WQE
  cpu/ offload/      the copies, node by node"""
)
