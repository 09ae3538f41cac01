#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times a group's messages among processes of this machine, beside MPI_Bcast: over memory (local
copies; MPI: vader), over TCP's loopback, and over devices.

    bench/host/run.py --members 4,8 --bytes 1MiB,64MiB --peers openmpi
    # Messages of 1 B to 64 KiB, one at a time and a hundred right after each other:
    bench/host/run.py --small --members 4
    # The same from C++ and from Python:
    bench/host/run.py --members 4 --bytes 64KiB,1MiB,64MiB --python --peers=
    # Over connections, and over a device of `prepost devices`:
    bench/host/run.py --members 4 --transport tcp,fabric:tcp --peers=

A time is from when the root begins to when the slowest member has the message; of a burst, which is
sent right after each other, the time to the last message, divided by their number. Settings are
interleaved, round by round, in turn forwards and backwards. Prints times in ms (median) and how
often the fastest peer's that is; of Python the median of the rounds' ratios to C++, each of two
medians. "polled": without a thread of the session, as Open MPI's ranks. --json FILE keeps all
samples.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "peers"))
import peers  # noqa: E402
from members import cpu_per_gigabyte, run_members  # noqa: E402
from peers import size_of  # noqa: E402


def run_group(bench, members, transport, burst, sizes, options, folder=None, polled=False):
    """The JSON lines of member 0. `bench`: the words of the program's command. `folder`:
    of Python's package. `polled`: the program's own thread does all, and never sleeps."""
    addresses = ",".join(f"127.0.0.{i + 1}:7911" for i in range(members))
    flags = [
        "--bytes",
        ",".join(sizes),
        "--repeat",
        str(options.repeat),
        "--burst",
        str(burst),
        *(["--waiting", "polling", "--polled"] if polled else ["--waiting", options.waiting]),
    ]
    if transport == "tcp":
        flags.append("--no-local-copies")
    elif transport != "shm":
        flags += ["--device", transport]
    environment = dict(os.environ, PYTHONPATH=folder) if folder else None
    return run_members(lambda i: [*bench, i, addresses, *flags], members, environment)


def ratio_to_cpp(medians, setting, size):
    """Of Python's times: the median of the rounds' ratios."""
    pairs = zip(medians[(*setting, "python", size)], medians[(*setting, "prepost", size)])
    return statistics.median(python / cpp for python, cpp in pairs)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--members", default="4,8", help="numbers of processes, with commas")
    parser.add_argument("--transport", default="shm,tcp", help="shm, tcp or devices, with commas")
    parser.add_argument("--bytes", default="1MiB,16MiB,64MiB")
    parser.add_argument("--burst", default="1", help="messages sent at once, with commas")
    parser.add_argument(
        "--small", action="store_true", help="1 B to 64 KiB, one at a time and a hundred at once"
    )
    parser.add_argument("--waiting", default="hybrid")
    parser.add_argument(
        "--polled", action="store_true", help="also without a thread of the session, polling"
    )
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--peers", default="openmpi", help="of bench/peers/peers.py, with commas")
    parser.add_argument("--bench", default=str(ROOT / "build/bench/bench/session_bench"))
    parser.add_argument(
        "--python",
        nargs="?",
        const=str(ROOT / "build/bench/python"),
        metavar="FOLDER",
        help="also from Python, by the package in FOLDER [build/bench/python]",
    )
    parser.add_argument("--json", help="where all samples go")
    options = parser.parse_args()
    if options.small:
        options.burst, options.polled = "1,100", True
    sizes = ["1B", "64B", "1KiB", "4KiB", "64KiB"] if options.small else options.bytes.split(",")
    others = [name for name in peers.names_of(options.peers) if name not in ("udpcast", "uftp")]
    samples, processor = {}, {}
    medians = {}  # of each round
    settings = [
        (int(members), transport, int(burst))
        for members in options.members.split(",")
        for transport in options.transport.split(",")
        for burst in options.burst.split(",")
    ]
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.rounds):
            for members, transport, burst in settings:
                runs = {
                    "prepost": lambda: run_group(
                        [options.bench], members, transport, burst, sizes, options
                    )
                }
                if options.polled:
                    runs["polled"] = lambda: run_group(
                        [options.bench], members, transport, burst, sizes, options, polled=True
                    )
                if options.python:
                    runs["python"] = lambda: run_group(
                        [sys.executable, HERE / "session_bench.py"],
                        members,
                        transport,
                        burst,
                        sizes,
                        options,
                        options.python,
                    )
                for name in others if transport in ("shm", "tcp") else []:
                    runs[name] = lambda name=name: peers.run_on_host(
                        name, members, transport, sizes, options.repeat, folder, burst=burst
                    )
                for name in list(runs) if number % 2 == 0 else reversed(runs):
                    for line in runs[name]():
                        key = (members, transport, burst, name, line["bytes"])
                        samples.setdefault(key, []).extend(line["seconds"])
                        medians.setdefault(key, []).append(statistics.median(line["seconds"]))
                        processor.setdefault(key, []).append(cpu_per_gigabyte(line, burst))
    for setting in settings:
        at_once = f", {setting[2]} at once" if setting[2] > 1 else ""
        print("{} members, {}{}; ms (median)".format(*setting[:2], at_once))
        print(" " * 30 + "".join(f"{size:>16}" for size in sizes))
        own = ["prepost", *["polled"] * options.polled, *["python"] * bool(options.python)]
        for name in [*own, *others]:
            cells = ""
            for size in sizes:
                if (*setting, name, size_of(size)) not in samples:
                    cells += "-".rjust(16)
                    continue
                time = statistics.median(samples[(*setting, name, size_of(size))])
                there = [
                    samples[(*setting, other, size_of(size))]
                    for other in others
                    if (*setting, other, size_of(size)) in samples
                ]
                peer = min(map(statistics.median, there), default=None)
                ratio = f" ({peer / time:.2f}x)" if name in ("prepost", "polled") and peer else ""
                if name == "python":
                    ratio = f" ({ratio_to_cpp(medians, setting, size_of(size)):.3f})"
                cells += f"{time * 1e3:.4g}{ratio}".rjust(16)
            print(f"{name:30}{cells}")
    if options.json:
        rows = [
            {
                "members": m,
                "transport": t,
                "burst": k,
                "name": n,
                "bytes": b,
                "seconds": s,
                "cpu_seconds_per_gigabyte": processor[m, t, k, n, b],
            }
            for (m, t, k, n, b), s in samples.items()
        ]
        found = {"options": vars(options), "samples": rows}
        if options.python:
            found["python_ratios"] = [
                {
                    "members": setting[0],
                    "transport": setting[1],
                    "burst": setting[2],
                    "ratios": [
                        ratio_to_cpp(medians, setting, size) for size in sorted(map(size_of, sizes))
                    ],
                }
                for setting in settings
            ]
        pathlib.Path(options.json).write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
