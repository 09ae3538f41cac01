#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sends very many short messages among processes of this machine, a thousand at once, and counts
what they leave and cost.

    bench/host/many.py
    bench/host/many.py --members 8 --messages 100000 --bytes 64B,4KiB

Of each setting: how much resident memory and how many descriptors the member has more at the end
that has most more (aims: nothing that grows with messages, and none), and, of a tenth of the
messages under strace, whose stops let more of them come together than otherwise, the system calls
of the root for each message (aim 1). --json FILE keeps them.
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


def words_of(options, transport, size, repeat, strace=None):
    """Of member i. `strace`: where the root's calls are counted."""
    addresses = ",".join(f"127.0.0.{i + 1}:7911" for i in range(options.members))
    flags = ["--bytes", size, "--repeat", repeat, "--burst", BURST]
    flags += ["--no-local-copies"] if transport == "tcp" else []
    count = ["strace", "-f", "-c", "-o", strace] if strace else []
    return lambda i: [*(count if i == 0 else []), options.bench, i, addresses, *flags]


def calls_of(summary):
    """All system calls of strace -c's table."""
    total = re.search(r"^ *100\.00 +\S+ +(?:\d+ +)?(\d+) +(?:\d+ +)?total$", summary, re.M)
    if total is None:
        sys.exit(f"many.py: strace printed something else:\n{summary}")
    return int(total.group(1))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--members", type=int, default=4)
    parser.add_argument("--transport", default="shm,tcp", help="with commas")
    parser.add_argument("--bytes", default="64B", help="sizes of messages, with commas")
    parser.add_argument("--messages", type=int, default=1_000_000, help="a multiple of 10000")
    parser.add_argument(
        "--bench", default=str(HERE.parent.parent / "build/bench/bench/session_bench")
    )
    parser.add_argument("--json", help="where the figures go")
    options = parser.parse_args()
    if options.messages < 10 * BURST or options.messages % (10 * BURST) != 0:
        parser.error(f"--messages: a multiple of {10 * BURST}")
    repeat = options.messages // BURST
    rows = []
    for transport in options.transport.split(","):
        for size in options.bytes.split(","):
            many = outputs_of(words_of(options, transport, size, repeat), options.members)
            lines = [json_lines(output)[0] for output in many]
            with tempfile.NamedTemporaryFile("r") as summary:
                counted = words_of(options, transport, size, repeat // 10, summary.name)
                outputs_of(counted, options.members)
                calls = calls_of(summary.read())
            rows.append(
                {
                    "transport": transport,
                    "bytes": size_of(size),
                    "grown_bytes": max(line["grown_bytes"] for line in lines),
                    "grown_descriptors": max(line["grown_descriptors"] for line in lines),
                    "calls_per_message": calls / (repeat // 10 * BURST),
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
