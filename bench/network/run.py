#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
r"""Times a group's messages over rate-limited network namespaces, beside the bound: bytes / what
TCP carries of the rate.

    sudo bench/network/run.py --nodes 8 --rate 400mbit --bytes 1MiB,16MiB,64MiB
    sudo bench/network/run.py --nodes 8 --bytes 16MiB --algorithm chain,binomial_pipeline \
        --block-bytes 16KiB,64KiB
    sudo bench/network/run.py --nodes 8 --bytes 1MiB,16MiB --peers 'openmpi*,gloo,udpcast,uftp'

Settings and peers (bench/peers/peers.py) are interleaved, round by round. Prints a table; --json
FILE keeps all samples.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "peers"))
import peers  # noqa: E402
from members import cpu_per_gigabyte, run_members  # noqa: E402
from peers import size_of  # noqa: E402

PAYLOAD = 8948 / (9000 + 38)  # of a frame of 9000 bytes: without IP, TCP and Ethernet's own


def rate_of(text):
    number, unit = re.fullmatch(r"([0-9.]+)(k|m|g)bit", text).groups()
    return float(number) * {"k": 1e3, "m": 1e6, "g": 1e9}[unit] / 8


def run_group(bench, nodes, flags):
    """The JSON lines of member 0; all members in their namespaces."""
    members = ",".join(f"10.98.0.{i + 1}" for i in range(nodes))
    return run_members(
        lambda i: ["ip", "netns", "exec", f"ppn{i}", bench, i, members, *flags], nodes
    )


def modelled(command, nodes, size, payload):
    """Seconds that `auto` goes by (compiler/choice/stream_cost.h)
    for the rate of the slowest node."""
    words = [
        command,
        "choose",
        "--nodes",
        str(nodes),
        "--message-bytes",
        size,
        "--transport",
        "tcp",
        "--rate",
        f"{payload * 8 / 1e6:.3f}Mbit/s",
        "--json",
    ]
    found = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    return found.get("short_message_seconds", found["candidates"][0]["modelled_seconds"])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--rate", default="400mbit", help="of each node, both ways")
    parser.add_argument(
        "--slow", action="append", default=[], metavar="NODE=RATE", help="one that has less"
    )
    parser.add_argument("--bytes", default="1MiB,16MiB", help="sizes of messages")
    parser.add_argument("--algorithm", default="auto", help="settings, with commas")
    parser.add_argument("--block-bytes", default="0", help="settings, with commas; 0: chosen")
    parser.add_argument("--waiting", default="hybrid")
    parser.add_argument(
        "--peers",
        default="",
        help="of bench/peers/peers.py, with commas; openmpi* is all of its tuned algorithms",
    )
    parser.add_argument("--repeat", type=int, default=3, help="messages of a size in a round")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--bench", default=str(ROOT / "build/bench/bench/session_bench"))
    parser.add_argument(
        "--prepost",
        default=str(ROOT / "build/bench/bin/prepost"),
        help="for what the model says of auto",
    )
    parser.add_argument("--json", help="where all samples go")
    options = parser.parse_args()
    settings = [
        (a, b) for a in options.algorithm.split(",") for b in options.block_bytes.split(",")
    ]
    sizes = options.bytes.split(",")
    others = peers.names_of(options.peers)
    slow = dict(text.split("=") for text in options.slow)
    samples, processor = {}, {}
    payload = min(map(rate_of, [options.rate, *slow.values()])) * PAYLOAD

    def keep(name, block, lines):
        for line in lines:
            samples.setdefault((name, block, line["bytes"]), []).extend(line["seconds"])
            processor.setdefault((name, block, line["bytes"]), []).append(cpu_per_gigabyte(line))

    subprocess.run([HERE / "net.sh", "down", str(options.nodes)], check=True)
    try:
        subprocess.run([HERE / "net.sh", "up", str(options.nodes), options.rate], check=True)
        for node, rate in slow.items():
            subprocess.run([HERE / "net.sh", "rate", node, rate], check=True)
        for _ in range(options.rounds):
            for algorithm, block in settings:
                flags = [
                    "--bytes",
                    options.bytes,
                    "--repeat",
                    str(options.repeat),
                    "--algorithm",
                    algorithm,
                ]
                # Namespaces are one machine, whose members would otherwise copy past the network.
                flags += ["--block-bytes", block, "--waiting", options.waiting, "--no-local-copies"]
                keep(algorithm, block, run_group(options.bench, options.nodes, flags))
            with tempfile.TemporaryDirectory() as folder:
                for name in others:
                    keep(
                        name,
                        "",
                        peers.run_in_namespaces(
                            name,
                            options.nodes,
                            lambda i: f"10.98.0.{i + 1}",
                            "ppn",
                            sizes,
                            options.repeat,
                            folder,
                            payload,
                        ),
                    )
    finally:
        subprocess.run([HERE / "net.sh", "down", str(options.nodes)], check=True)
    if ("auto", "0") in settings:
        for size in sizes:
            samples["auto, modelled", "", size_of(size)] = [
                modelled(options.prepost, options.nodes, size, payload)
            ]
            processor["auto, modelled", "", size_of(size)] = [None]
        others.insert(0, "auto, modelled")
    print(
        f"{options.nodes} nodes at {options.rate}{' ' + ' '.join(options.slow) if slow else ''};"
        " time / (bytes / payload rate)"
    )
    print(
        f"{'':32}{'blocks of':>10}"
        + "".join(f"{size:>18}" for size in sizes)
        + "   (median, least-most)"
    )
    for algorithm, block in settings + [(name, "") for name in others]:
        cells = ""
        for size in sizes:
            if (algorithm, block, size_of(size)) not in samples:
                cells += f"{'-':>18}"
                continue
            ratios = sorted(
                s * payload / size_of(size) for s in samples[algorithm, block, size_of(size)]
            )
            cells += f"{ratios[len(ratios) // 2]:>8.3f} {ratios[0]:.2f}-{ratios[-1]:.2f}"
        print(f"{algorithm:32}{block if block != '0' else 'chosen':>10}{cells}")
    if options.json:
        rows = [
            {
                "algorithm": a,
                "block_bytes": b,
                "bytes": n,
                "seconds": s,
                "cpu_seconds_per_gigabyte": processor[a, b, n],
            }
            for (a, b, n), s in samples.items()
        ]
        pathlib.Path(options.json).write_text(
            json.dumps(
                {"options": vars(options), "payload_rate": payload, "samples": rows}, indent=1
            )
        )


if __name__ == "__main__":
    main()
