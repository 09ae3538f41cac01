#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
r"""Times calls of collectives over rate-limited network namespaces, or on this machine, beside the
bound and beside peers.

    sudo bench/network/calls.py --nodes 8 --rate 400mbit --bytes 1MiB,16MiB,64MiB \
        --peers openmpi,gloo
    bench/network/calls.py --host shm --nodes 4 --collective allreduce,barrier \
        --bytes 32B,1KiB,1MiB --peers 'openmpi*'

The time of a call is from when the last member makes it to when the last one has its result. Sizes
are of the whole vector: m bytes, of which each of n members has a part of m/n in an allgather, a
reduce_scatter and an alltoall. The bound is what a port must carry, 2 m (n-1)/n of an allreduce and
m (n-1)/n of the others, at what TCP carries of the rate. Ours and peers' are interleaved, round by
round. "prepost, polled" has sessions without a thread of their own, which the program polls, as MPI
and gloo are used. A sweep of Open MPI (`openmpi*`) also gives "openmpi, tuned": of each size, what
its fastest algorithm takes. Prints a table of median seconds and, over a network, of their ratio to
the bound; --json FILE keeps all samples.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "peers"))
sys.path.insert(0, str(HERE))
import peers  # noqa: E402
from members import json_lines  # noqa: E402
from peers import size_of  # noqa: E402
from run import PAYLOAD, rate_of  # noqa: E402

# Whose thread turns the session: its own, or that of the program, as others' does.
OURS = {"prepost": [], "prepost, polled": ["--no-own-thread"]}
COLLECTIVES = "allreduce,reduce_scatter,allgather,alltoall,barrier"


def run_ours(bench, nodes, start_of, address_of, flags):
    """Seconds of each measurement, by size."""
    members = ",".join(address_of(i) for i in range(nodes))
    running = [
        subprocess.Popen(
            [*start_of(i), bench, str(i), members, *flags], stdout=subprocess.PIPE, text=True
        )
        for i in range(nodes)
    ]
    outputs = [json_lines(process.communicate(timeout=1200)[0]) for process in running]
    if any(process.returncode != 0 for process in running):
        sys.exit("calls.py: a member failed")
    return {
        lines[0]["bytes"]: [
            max(ends) - max(starts)
            for starts, ends in zip(
                zip(*(it["starts"] for it in lines)), zip(*(it["ends"] for it in lines))
            )
        ]
        for lines in zip(*outputs)
    }


def bound_of(collective, size, nodes):
    """Bytes that a port must carry."""
    passes = {"allreduce": 2, "broadcast": nodes / (nodes - 1), "barrier": 0}.get(collective, 1)
    return passes * size * (nodes - 1) / nodes


def add_tuned(samples, collective):
    """ "openmpi, tuned" of each size, if there was a sweep."""
    sweep = [
        (name, size, seconds)
        for (kind, name, size), seconds in samples.items()
        if kind == collective and name.startswith("openmpi")
    ]
    if len({name for name, _, _ in sweep}) < 2:
        return
    for size in dict.fromkeys(size for _, size, _ in sweep):
        samples[collective, "openmpi, tuned", size] = min(
            (seconds for _, of, seconds in sweep if of == size), key=statistics.median
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--rate", default="400mbit", help="of each node, both ways")
    parser.add_argument(
        "--host", choices=["tcp", "shm"], help="on this machine, over TCP, or from memory to memory"
    )
    parser.add_argument("--collective", default=COLLECTIVES, help="with commas")
    parser.add_argument(
        "--bytes", default="1KiB,64KiB,1MiB,16MiB", help="sizes of the whole vector"
    )
    parser.add_argument("--peers", default="", help="of bench/peers/peers.py, with commas")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--waiting", default="hybrid")
    parser.add_argument("--bench", default=str(ROOT / "build/bench/bench/calls_bench"))
    parser.add_argument("--json", help="where all samples go")
    options = parser.parse_args()
    sizes, nodes = options.bytes.split(","), options.nodes
    others = {it: peers.names_of(options.peers, it) for it in options.collective.split(",")}
    payload = None if options.host else rate_of(options.rate) * PAYLOAD
    samples = {}

    def keep(collective, name, size, seconds):
        samples.setdefault((collective, name, size), []).extend(seconds)

    def measure(folder):
        for collective in options.collective.split(","):
            asked = ["4B"] if collective == "barrier" else sizes
            flags = [
                "--collective",
                collective,
                "--bytes",
                ",".join(asked),
                "--repeat",
                str(options.repeat),
                "--waiting",
                options.waiting,
            ]
            address = (
                (lambda i: f"127.{200 + i}.0.1") if options.host else (lambda i: f"10.98.0.{i + 1}")
            )
            start = (
                (lambda i: []) if options.host else (lambda i: ["ip", "netns", "exec", f"ppn{i}"])
            )
            if options.host == "tcp":
                flags.append("--no-local-copies")
            for name, words in OURS.items():
                for size, seconds in run_ours(
                    options.bench, nodes, start, address, [*flags, *words]
                ).items():
                    keep(collective, name, size, seconds)
            for name in others[collective]:
                if options.host:
                    lines = peers.run_on_host(
                        name, nodes, options.host, asked, options.repeat, folder, collective
                    )
                else:
                    lines = peers.run_in_namespaces(
                        name,
                        nodes,
                        address,
                        "ppn",
                        asked,
                        options.repeat,
                        folder,
                        payload,
                        collective=collective,
                    )
                for line in lines:
                    keep(collective, name, line["bytes"], line["seconds"])

    with tempfile.TemporaryDirectory() as folder:
        try:
            if not options.host:
                subprocess.run([HERE / "net.sh", "down", str(nodes)], check=True)
                subprocess.run([HERE / "net.sh", "up", str(nodes), options.rate], check=True)
            for _ in range(options.rounds):
                measure(folder)
        finally:
            if not options.host:
                subprocess.run([HERE / "net.sh", "down", str(nodes)], check=True)
    for collective in options.collective.split(","):
        add_tuned(samples, collective)
    where = f"one machine, over {options.host}" if options.host else f"at {options.rate}"
    print(f"{nodes} members, {where}: median us" + ("" if options.host else " (/ bound)"))
    print(f"{'':16}{'':36}" + "".join(f"{size:>18}" for size in sizes))
    for collective in options.collective.split(","):
        for name in dict.fromkeys(name for kind, name, _ in samples if kind == collective):
            cells = ""
            for size in ["4B"] if collective == "barrier" else sizes:
                found = sorted(samples.get((collective, name, size_of(size)), []))
                if not found:
                    cells += f"{'-':>18}"
                    continue
                median = statistics.median(found)
                bound = 0 if options.host else bound_of(collective, size_of(size), nodes) / payload
                cells += (
                    f"{median * 1e6:>18.0f}"
                    if bound == 0
                    else f"{median * 1e6:>10.0f} ({median / bound:5.3f})"
                )
            print(f"{collective:16}{name:36}{cells}")
    if options.json:
        rows = [
            {
                "collective": c,
                "name": n,
                "bytes": b,
                "seconds": s,
                "bound_seconds": None if options.host else bound_of(c, b, nodes) / payload,
            }
            for (c, n, b), s in samples.items()
        ]
        pathlib.Path(options.json).write_text(
            json.dumps(
                {"options": vars(options), "payload_rate": payload, "samples": rows}, indent=1
            )
        )


if __name__ == "__main__":
    main()
