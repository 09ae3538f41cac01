#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What lowering makes of each schedule, inline and managed:
docs/offload.md's tables of `prepost lower --json`.

    bench/lowering_table.py    markdown tables, from build/bench/bin/prepost
    bench/lowering_table.py --command PATH --nodes 8 64    another build, other sizes
    bench/lowering_table.py --json table.json    all figures of all nodes, too, with the commit

16 blocks, the schedule's own ready mode (--ready auto), and 4 racks for the schedules that know of
racks. Every figure is the largest of any node's, counted and not timed; the last column names the
first node with the most WQEs. w marks ready window=1, the others have barrier. Doorbells are those
of inline mode (managed mode has one), SEND_ENs those of managed mode. Bytes of rings are of WQEs
and CQEs, what arming takes of a device, without the message."""
import argparse
import json
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
ALGORITHMS = [
    "sequential",
    "chain",
    "kary_chain",
    "binomial_tree",
    "kary_tree",
    "binomial_pipeline",
    "circulant",
    "two_tree",
    "scatter_allgather",
    "rack_chain",
    "rack_hybrid",
    "rack_circulant",
]
RACKS = 4
MODES = ["inline", "managed"]
BLOCKS = 16
READY_MARKS = {("barrier", None): "", ("window", 1): " w"}
ONE_MODE = {"doorbells": 0, "send_enables": 1}  # which of MODES the table shows
FIGURES = {
    "ring_bytes": "ring bytes",
    "wqes": "WQEs",
    "qps": "QPs",
    "cqs": "CQs",
    "doorbells": "doorbells",
    "waits": "WAITs",
    "send_enables": "SEND_ENs",
}


def run(arguments, stdin=None):
    done = subprocess.run(arguments, input=stdin, capture_output=True)
    if done.returncode != 0:
        sys.exit(done.stderr.decode() or done.returncode)
    return done.stdout


def commit():
    done = subprocess.run(
        ["git", "-C", SOURCE, "describe", "--always", "--dirty"], capture_output=True, text=True
    )
    return done.stdout.strip() or "unknown"


def racks_of(nodes):
    """A topology of RACKS racks."""
    size = nodes // RACKS
    racks = [
        {"name": f"rack{rack}", "hosts": f"node[{rack * size + 1}-{(rack + 1) * size}]"}
        for rack in range(RACKS)
    ]
    return {
        "format": "prepost.topology",
        "version": "1.0",
        "name": f"{RACKS}x{size}",
        "host_rate": "100Gbit/s",
        "up_rate": "100Gbit/s",
        "racks": racks,
    }


def lowered(command, algorithm, nodes):
    """The plan's ready mode, and by mode the figures of all nodes."""
    spec = {
        "format": "prepost.spec",
        "version": "1.0",
        "collective": "multicast",
        "nodes": nodes,
        "algorithm": algorithm,
        "block_bytes": 64 << 10,
        "message_bytes": BLOCKS * (64 << 10),
    }
    if algorithm.startswith("rack"):
        spec["topology"] = racks_of(nodes)
    plan = run([command, "compile", "-"], json.dumps(spec).encode())
    ready = json.loads(plan)["ready"]
    modes = {
        mode: json.loads(run([command, "lower", "-", "--mode", mode, "--json"], plan))["nodes"]
        for mode in MODES
    }
    return {
        "algorithm": algorithm,
        "nodes": nodes,
        "blocks": BLOCKS,
        "ready": ready,
        "modes": modes,
    }


def row(it):
    cells = [it["algorithm"] + READY_MARKS[it["ready"]["mode"], it["ready"].get("window")]]
    for figure in FIGURES:
        most = [max(node[figure] for node in it["modes"][mode]) for mode in MODES]
        if figure in ONE_MODE:
            most = [most[ONE_MODE[figure]]] * len(MODES)
        cells.append(
            str(most[0]) if most[0] == most[1] else " / ".join(str(value) for value in most)
        )
    worst = [max(it["modes"][mode], key=lambda node: node["wqes"])["node"] for mode in MODES]
    cells.append(str(worst[0]) if worst[0] == worst[1] else " / ".join(str(node) for node in worst))
    return cells


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--command", default=str(SOURCE / "build/bench/bin/prepost"))
    parser.add_argument("--nodes", type=int, nargs="+", default=[8, 1024])
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    all_figures = [
        lowered(arguments.command, algorithm, nodes)
        for nodes in arguments.nodes
        for algorithm in ALGORITHMS
    ]
    header = ["schedule", *FIGURES.values(), "node"]
    print(
        f"commit {commit()}, {BLOCKS} blocks; inline / managed, or one figure where they are the"
        " same\n"
    )
    for nodes in arguments.nodes:
        print(f"{nodes} nodes:\n\n| {' | '.join(header)} |\n|{'---|' * len(header)}")
        for cells in [row(it) for it in all_figures if it["nodes"] == nodes]:
            print("| " + " | ".join(cells) + " |")
        print()
    if arguments.json:
        pathlib.Path(arguments.json).write_text(
            json.dumps({"commit": commit(), "plans": all_figures}, indent=1) + "\n"
        )


main()
