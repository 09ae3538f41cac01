#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Both ways beside each other: docs/benchmarks.md's table of `prepost compare`.

    bench/compare_bench.py                               a table, from build/release/bin/prepost
    bench/compare_bench.py --json samples.json           all samples, too, with the commit
    bench/compare_bench.py --command PATH --repeat 50    another build, more transfers

8 nodes, a binomial pipeline with credits, 16 blocks of 64 KiB and of 1 MiB, on an idle machine and beside 4 busy threads, by
interrupt and by polling. A machine that is not idle by itself shows in the spread of the ratios."""
import argparse
import json
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
NODES = 8
BLOCKS = 16
BLOCK_BYTES = [64 << 10, 1 << 20]
STRESS = [0, 4]
WAITS = ["interrupt", "polling"]
WAYS = ["cpu-driven", "preposted"]


def compare(command, repeat, block_bytes, stress, wait):
    arguments = [command, "compare", "--nodes", str(NODES), "--block-bytes", str(block_bytes), "--bytes",
                 str(BLOCKS * block_bytes), "--repeat", str(repeat), "--stress", str(stress), "--wait", wait, "--json"]
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr or done.returncode)
    return json.loads(done.stdout)


def commit():
    done = subprocess.run(["git", "-C", SOURCE, "describe", "--always", "--dirty"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def during(way, count):
    """What hosts did from the start on, as "12" or "12..15"."""
    values = [sample["at_start"][count] + sample["during"][count] for sample in way["samples"]]
    return str(values[0]) if min(values) == max(values) else f"{min(values)}..{max(values)}"


def milliseconds(way, figure, statistic="median"):
    return f"{way[figure][statistic] / 1e6:.2f}"


def row(it):
    cells = [f"{it['block_bytes'] >> 10} KiB", str(it["stress_threads"]), it["wait"]]
    pairs = [[during(it[way], "doorbells") for way in WAYS],
             [during(it[way], "wakeups") for way in WAYS],
             [during(it[way], "completions_read") for way in WAYS],
             [milliseconds(it[way], "latency_ns") for way in WAYS],
             [milliseconds(it[way], "latency_ns", "p99") for way in WAYS],
             [milliseconds(it[way], "skew_ns") for way in WAYS],
             [milliseconds(it[way], "host_cpu_ns") for way in WAYS],
             [milliseconds(it[way], "engine_cpu_ns") for way in WAYS]]
    cells += [" / ".join(pair) for pair in pairs]
    ratio = it["completion_ratio"]
    cells.append(f"{ratio['of_medians']:.2f} ({ratio['of_pairs']['min']:.2f}..{ratio['of_pairs']['max']:.2f})")
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", default=SOURCE / "build/release/bin/prepost")
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--json", type=pathlib.Path, help="write all samples here")
    flags = parser.parse_args()

    print("| blocks | busy | wait | doorbells | wake-ups | completions | latency ms | p99 ms | skew ms | hosts' cpu ms | NICs' cpu ms "
          "| completion ratio |")
    print("|" + "---|" * 12)
    results = []
    for block_bytes in BLOCK_BYTES:
        for stress in STRESS:
            for wait in WAITS:
                results.append(compare(flags.command, flags.repeat, block_bytes, stress, wait))
                print(row(results[-1]["comparisons"][0]), flush=True)
    machine = results[0]["machine"]
    print(f"\nEach cell: cpu-driven / preposted. {NODES} nodes, {BLOCKS} blocks, {flags.repeat} transfers each way; "
          f"{machine['cores']} cores, {machine['system']}, commit {commit()}.")
    if flags.json:
        flags.json.write_text(json.dumps({"commit": commit(), "results": results}, indent=1))


main()
