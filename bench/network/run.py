#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times a group's messages over rate-limited network namespaces, beside the bound: bytes / what TCP carries of the rate.

    sudo bench/network/run.py --nodes 8 --rate 400mbit --bytes 1MiB,16MiB,64MiB
    sudo bench/network/run.py --nodes 8 --bytes 16MiB --algorithm chain,binomial_pipeline --block-bytes 16KiB,64KiB

    sudo bench/network/run.py --nodes 8 --bytes 1MiB,16MiB --peers 'openmpi*,mpich,udpcast'

Settings and peers (bench/peers/peers.py) are interleaved, round by round. Prints a table; --json FILE keeps all samples.
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
from peers import size_of  # noqa: E402

PAYLOAD = 8948 / (9000 + 38)  # of a frame of 9000 bytes: without IP, TCP and Ethernet's own


def rate_of(text):
    number, unit = re.fullmatch(r"([0-9.]+)(k|m|g)bit", text).groups()
    return float(number) * {"k": 1e3, "m": 1e6, "g": 1e9}[unit] / 8


def run_group(bench, nodes, flags):
    """The JSON lines of member 0; all members in their namespaces."""
    members = ",".join(f"10.98.0.{i + 1}" for i in range(nodes))
    processes = [
        subprocess.Popen(
            ["ip", "netns", "exec", f"ppn{i}", bench, str(i), members, *flags],
            stdout=subprocess.PIPE if i == 0 else subprocess.DEVNULL,
            text=True,
        )
        for i in range(nodes)
    ]
    out, _ = processes[0].communicate(timeout=600)
    if any(process.wait(timeout=60) != 0 for process in processes):
        sys.exit("run.py: a member failed")
    return [json.loads(line) for line in out.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--rate", default="400mbit", help="of each node, both ways")
    parser.add_argument("--slow", action="append", default=[], metavar="NODE=RATE", help="one that has less")
    parser.add_argument("--bytes", default="1MiB,16MiB", help="sizes of messages")
    parser.add_argument("--algorithm", default="auto", help="settings, with commas")
    parser.add_argument("--block-bytes", default="0", help="settings, with commas; 0: chosen")
    parser.add_argument("--waiting", default="hybrid")
    parser.add_argument("--peers", default="", help="of bench/peers/peers.py, with commas; openmpi* is all of its tuned algorithms")
    parser.add_argument("--repeat", type=int, default=3, help="messages of a size in a round")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--bench", default=str(ROOT / "build/release/bench/session_bench"))
    parser.add_argument("--json", help="where all samples go")
    options = parser.parse_args()
    settings = [(a, b) for a in options.algorithm.split(",") for b in options.block_bytes.split(",")]
    sizes = options.bytes.split(",")
    others = [name for name in peers.names_of(options.peers) if peers.is_there(name)]
    slow = dict(text.split("=") for text in options.slow)
    samples = {}
    subprocess.run([HERE / "net.sh", "down", str(options.nodes)], check=True)
    try:
        subprocess.run([HERE / "net.sh", "up", str(options.nodes), options.rate], check=True)
        for node, rate in slow.items():
            subprocess.run([HERE / "net.sh", "rate", node, rate], check=True)
        for _ in range(options.rounds):
            for algorithm, block in settings:
                flags = ["--bytes", options.bytes, "--repeat", str(options.repeat), "--algorithm", algorithm]
                # Namespaces are one machine, whose members would otherwise copy past the network.
                flags += ["--block-bytes", block, "--waiting", options.waiting, "--no-local-copies"]
                for line in run_group(options.bench, options.nodes, flags):
                    samples.setdefault((algorithm, block, line["bytes"]), []).extend(line["seconds"])
            with tempfile.TemporaryDirectory() as folder:
                for name in others:
                    try:
                        lines = peers.run_in_namespaces(name, options.nodes, lambda i: f"10.98.0.{i + 1}", "ppn", sizes, options.repeat,
                                                        folder)
                    except (RuntimeError, subprocess.SubprocessError) as error:
                        print(f"{name} failed: {error}", file=sys.stderr)
                        continue
                    for line in lines:
                        samples.setdefault((name, "", line["bytes"]), []).extend(line["seconds"])
    finally:
        subprocess.run([HERE / "net.sh", "down", str(options.nodes)], check=True)
    payload = min(map(rate_of, [options.rate, *slow.values()])) * PAYLOAD
    print(f"{options.nodes} nodes at {options.rate}{' ' + ' '.join(options.slow) if slow else ''}; time / (bytes / payload rate)")
    print(f"{'':32}{'blocks of':>10}" + "".join(f"{size:>18}" for size in sizes) + "   (median, least-most)")
    for algorithm, block in settings + [(name, "") for name in others]:
        cells = ""
        for size in sizes:
            if (algorithm, block, size_of(size)) not in samples:
                cells += f"{'-':>18}"
                continue
            ratios = sorted(s * payload / size_of(size) for s in samples[algorithm, block, size_of(size)])
            cells += f"{ratios[len(ratios) // 2]:>8.3f} {ratios[0]:.2f}-{ratios[-1]:.2f}"
        print(f"{algorithm:32}{block if block != '0' else 'chosen':>10}{cells}")
    if options.json:
        rows = [{"algorithm": a, "block_bytes": b, "bytes": n, "seconds": s} for (a, b, n), s in samples.items()]
        pathlib.Path(options.json).write_text(json.dumps({"options": vars(options), "payload_rate": payload, "samples": rows}, indent=1))


if __name__ == "__main__":
    main()
