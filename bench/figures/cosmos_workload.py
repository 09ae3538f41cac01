#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a workload like that of the Cosmos storage system in RDMC's figure 9, for `prepost
simulate --workload`: one sender writes to three of fifteen storage nodes at a time. The trace is
not public; known of it are that it has 455 groups, all of three of fifteen, and sizes from hundreds
of bytes to hundreds of MB with a median of 12 MB and a mean of 29 MB. Sizes here are lognormal with
that median and mean, cut at both ends."""
import argparse
import itertools
import json
import math
import random
import statistics
import sys

REPLICAS, STORAGE_NODES = 3, 15
SENDER = 0  # host 0; the storage nodes are hosts 1 to 15
MEDIAN, MEAN = 12e6, 29e6
SMALLEST, LARGEST = 200, 500_000_000


def sizes(count, seed):
    """exp(mu) is the median, exp(mu + sigma^2 / 2) the mean. One draw from each of `count` equally
    likely parts of the distribution, so that few draws have its shape, too."""
    generator = random.Random(f"sizes {seed}")
    normal = statistics.NormalDist(math.log(MEDIAN), math.sqrt(2 * math.log(MEAN / MEDIAN)))
    drawn = [
        math.exp(normal.inv_cdf((part + 1 - generator.random()) / (count + 1e-9)))
        for part in range(count)
    ]
    generator.shuffle(drawn)
    return [round(min(LARGEST, max(SMALLEST, size))) for size in drawn]


def targets(count, seed):
    """Storage nodes by write: all groups in a random order, then all again."""
    generator = random.Random(f"targets {seed}")
    groups = list(itertools.combinations(range(1, STORAGE_NODES + 1), REPLICAS))
    chosen = []
    while len(chosen) < count:
        generator.shuffle(groups)
        chosen += groups
    return chosen[:count]


def arrivals(count, per_second, seed):
    """Seconds, of a Poisson process."""
    generator = random.Random(f"arrivals {seed}")
    return list(itertools.accumulate(generator.expovariate(per_second) for _ in range(count)))


def workload(
    count, schedule="binomial_pipeline", block_bytes=1 << 20, per_second=None, seed=1, at_once=1
):
    """The file's content. `per_second`: writes arrive as a Poisson process, and overlap; None: each
    comes when the one `at_once` before it is complete. The same seed gives the same sizes and
    targets for all schedules, block sizes and rates."""
    groups = []
    times = arrivals(count, per_second, seed) if per_second else [0] * count
    for index, (size, nodes, time) in enumerate(
        zip(sizes(count, seed), targets(count, seed), times)
    ):
        group = {"hosts": [SENDER, *nodes], "spec": {"message_bytes": size}}
        if per_second:
            group["start"] = round(time, 9)
        elif index >= at_once:
            group["after"] = index - at_once
        groups.append(group)
    when = (
        f"{per_second:g} writes a second"
        if per_second
        else "one after the other"
        if at_once == 1
        else f"{at_once} at a time"
    )
    return {
        "format": "prepost.workload",
        "version": "1.0",
        "name": f"Cosmos: {count} writes, {when}, {schedule}",
        "hosts": STORAGE_NODES + 1,
        "spec": {"algorithm": schedule, "block_bytes": block_bytes},
        "groups": groups,
    }


def write(document, out):
    """One group on a line."""
    head = {key: value for key, value in document.items() if key != "groups"}
    out.write(json.dumps(head, indent=2)[:-2] + ',\n  "groups": [\n    ')
    out.write(",\n    ".join(json.dumps(group) for group in document["groups"]) + "\n  ]\n}\n")


def positive(kind, most):
    def parse(text):
        value = kind(text)
        if not 0 < value <= most:
            raise ValueError
        return value

    parse.__name__ = f"number above 0 and up to {most:g}"
    return parse


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog=(
            "Example: bench/figures/cosmos_workload.py --writes 455 | prepost simulate --workload -"
            " --profile fractus"
        ),
    )
    parser.add_argument("--writes", type=positive(int, 65536), default=455, help="how many [455]")
    parser.add_argument(
        "--schedule",
        default="binomial_pipeline",
        help="any algorithm of prepost compile [binomial_pipeline]",
    )
    parser.add_argument(
        "--block-bytes", type=positive(int, 1 << 62), default=1 << 20, help="[1048576]"
    )
    parser.add_argument(
        "--per-second",
        type=positive(float, 1e9),
        help="writes arrive as a Poisson process, and overlap [one after the other]",
    )
    parser.add_argument("--seed", type=int, default=1, help="[1]")
    parser.add_argument("-o", "--output", help="the file [stdout]")
    flags = parser.parse_args()
    document = workload(
        flags.writes, flags.schedule, flags.block_bytes, flags.per_second, flags.seed
    )
    if flags.output is None:
        write(document, sys.stdout)
        return
    with open(flags.output, "w", encoding="utf-8") as out:
        write(document, out)


if __name__ == "__main__":
    main()
