#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sends very many short messages among processes of this machine, a thousand at once, and counts
what they leave and cost.

    bench/host/many.py
    bench/host/many.py --members 8 --messages 100000 --bytes 64B,4KiB

Of each setting: how much resident memory and how many descriptors the member has more at the end
that has most more (aims: nothing that grows with messages, and none), and, as perf counts them,
the system calls of the root for each message (aim 1). Needs root. --json FILE keeps them.
"""
import argparse
import json
import pathlib
import re
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "peers"))
from members import json_lines, outputs_of  # noqa: E402
from peers import size_of  # noqa: E402

BURST = 1000


def words_of(options, transport, size, counts):
    """Of member i. `counts`: where the root's calls are."""
    addresses = ",".join(f"127.0.0.{i + 1}:7911" for i in range(options.members))
    flags = ["--bytes", size, "--repeat", options.messages // BURST, "--burst", BURST]
    flags += ["--no-local-copies"] if transport == "tcp" else []
    count = ["perf", "stat", "-x", ",", "-e", "raw_syscalls:sys_enter", "-o", counts]
    return lambda i: [*(count if i == 0 else []), options.bench, i, addresses, *flags]


def calls_of(counts):
    """All system calls, as perf stat has counted them."""
    counted = re.search(r"^(\d+),,raw_syscalls:sys_enter", counts, re.M)
    if counted is None:
        sys.exit(f"many.py: perf printed something else:\n{counts}")
    return int(counted.group(1))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--members", type=int, default=4)
    parser.add_argument("--transport", default="shm,tcp", help="with commas")
    parser.add_argument("--bytes", default="64B", help="sizes of messages, with commas")
    parser.add_argument("--messages", type=int, default=1_000_000, help="a multiple of 1000")
    parser.add_argument(
        "--bench", default=str(HERE.parent.parent / "build/bench/bench/session_bench")
    )
    parser.add_argument("--json", help="where the figures go")
    options = parser.parse_args()
    if options.messages < BURST or options.messages % BURST != 0:
        parser.error(f"--messages: a multiple of {BURST}")
    rows = []
    for transport in options.transport.split(","):
        for size in options.bytes.split(","):
            with tempfile.NamedTemporaryFile("r") as counts:
                words = words_of(options, transport, size, counts.name)
                outputs = outputs_of(words, options.members)
                calls = calls_of(counts.read())
            lines = [json_lines(output)[0] for output in outputs]
            rows.append(
                {
                    "transport": transport,
                    "bytes": size_of(size),
                    "grown_bytes": max(line["grown_bytes"] for line in lines),
                    "grown_descriptors": max(line["grown_descriptors"] for line in lines),
                    "calls_per_message": calls / options.messages,
                }
            )
            row = rows[-1]
            print(
                f"{options.members} members, {transport}, {options.messages:,} of {size}: "
                f"{row['grown_bytes'] / 1e6:.2f} MB and {row['grown_descriptors']} descriptors "
                f"more, {row['calls_per_message']:.3f} calls a message"
            )
    if options.json:
        pathlib.Path(options.json).write_text(
            json.dumps({"options": vars(options), "samples": rows}, indent=1)
        )


if __name__ == "__main__":
    main()
