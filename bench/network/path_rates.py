#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what a message between two machines gets of a long path by round trip, loss and streams,
and through a policer: the cases of docs/figures.md's figures of long paths, over the link of
sites.py. CUBIC, packets of 9000 bytes, buffers that hold every path here, a queue of one round
trip; each message of bench/session_bench over new connections, so slow start counts.

    sudo bench/network/path_rates.py > rates.csv                      # six minutes
    sudo bench/network/path_rates.py --round-trips 60 --losses 0

Prints CSV: a row per case, with Mbit/s of payload, the median of --repeat messages.
"""
import argparse
import csv
import itertools
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(HERE.parent / "peers")]
from members import run_members  # noqa: E402
from sites import Sites  # noqa: E402

MTU = 9000
RATE = 400e6  # bit/s of the path, and of the policer a fourth
SECONDS = 8  # of a message at full rate
BUFFERS = 64 << 20
COLUMNS = ("kind", "round_trip_ms", "loss", "streams", "mbit_per_s")


def rate_of(options, what, streams, bytes_, pace=None):
    """Mbit/s."""
    with Sites("ppr", [1, 1], {"A,B": what}, options.wan_link, lan_rate=None, mtu=MTU) as sites:
        for machine in (0, 1):
            for setting in ("tcp_rmem=4096 131072", "tcp_wmem=4096 16384"):
                subprocess.run(
                    [*sites.inside(machine), "sysctl", "-qw", f"net.ipv4.{setting} {BUFFERS}"],
                    check=True,
                )
        flags = [
            "--bytes",
            bytes_,
            "--repeat",
            1,
            "--warm-up",
            0,
            "--no-local-copies",
            "--sites",
            "A,B",
            "--streams",
            streams,
            *(["--pace", pace / 8] if pace else []),
        ]
        seconds = []
        for _ in range(options.repeat):
            lines = run_members(
                lambda i: [*sites.inside(i), options.bench, i, ",".join(sites.addresses), *flags], 2
            )
            seconds += lines[0]["seconds"]
    return bytes_ * 8 / 1e6 / statistics.median(seconds)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--round-trips", default="1,10,30,60,90,120", help="ms, with commas")
    parser.add_argument("--losses", default="0,1e-5,1e-4", help="shares of packets, with commas")
    parser.add_argument("--streams", default="1,8", help="with commas")
    parser.add_argument("--repeat", type=int, default=1, help="messages of each case")
    parser.add_argument("--no-policer", action="store_true", help="without its cases")
    parser.add_argument("--bench", default=str(ROOT / "build/bench/bench/session_bench"))
    parser.add_argument("--wan-link", default=str(ROOT / "build/bench/tests/wan_link"))
    options = parser.parse_args()
    streams = [int(it) for it in options.streams.split(",")]
    writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    writer.writeheader()

    def row(kind, round_trip, loss, count, rate):
        writer.writerow(
            dict(zip(COLUMNS, (kind, f"{round_trip:g}", f"{loss:g}", count, f"{rate:.1f}")))
        )
        sys.stdout.flush()

    for round_trip, loss, count in itertools.product(
        map(float, options.round_trips.split(",")), map(float, options.losses.split(",")), streams
    ):
        queue = max(RATE / 8 * round_trip / 1e3, 256 << 10)
        what = f"rate={RATE:g},queue={queue:g},delay={round_trip / 2e3:g},loss={loss:g}"
        row("path", round_trip, loss, count, rate_of(options, what, count, int(RATE / 8 * SECONDS)))
    if options.no_policer:
        return
    for count, paced in itertools.product(streams, (False, True)):
        what = f"rate={RATE:g},queue={RATE / 8 * 0.12:g},delay=60e-3,police={RATE / 4:g},burst=1e6"
        rate = rate_of(
            options,
            what,
            count,
            int(RATE / 4 / 8 * SECONDS),
            pace=RATE / 4 * 0.97 if paced else None,
        )
        row("policed and paced" if paced else "policed", 120, 0, count, rate)


if __name__ == "__main__":
    main()
