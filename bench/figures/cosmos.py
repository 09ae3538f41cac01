# SPDX-License-Identifier: Apache-2.0
"""RDMC's figure 9: the writes of the Cosmos storage system, by three ways to send them. The trace is not public: sizes are drawn from a distribution
with its median and mean."""

import itertools
import json
import math
import random
import statistics

from . import data, style
from .claims import DSN, PUSHING, Statement
from .figure import Figure
from .simulator import MiB, Profile, Workload

REPLICAS, STORAGE_NODES = 3, 15
MEDIAN, MEAN = 12e6, 29e6
SMALLEST, LARGEST = 200, 500_000_000  # “hundreds of bytes to hundreds of MB”
WRITES = 455  # as many as there are groups
SEED = 1
ALGORITHMS = ("binomial_pipeline", "binomial_tree", "sequential")


def sizes(count):
    """Lognormal: exp(mu) is the median, exp(mu + sigma^2 / 2) the mean. Drawn by strata, so that few draws have the distribution's shape, too."""
    generator = random.Random(SEED)
    sigma = math.sqrt(2 * math.log(MEAN / MEDIAN))
    normal = statistics.NormalDist(math.log(MEDIAN), sigma)
    drawn = [
        min(LARGEST, max(SMALLEST, round(math.exp(normal.inv_cdf((index + generator.random()) / count)))))
        for index in range(count)
    ]
    generator.shuffle(drawn)
    return drawn


def workload(algorithm, count):
    """Host 0 writes to three of hosts 1 to 15, each group once, one write after the other."""
    groups = list(itertools.combinations(range(1, STORAGE_NODES + 1), REPLICAS))
    random.Random(SEED).shuffle(groups)
    writes = [
        {"hosts": [0, *group], "spec": {"message_bytes": size}, **({"after": index - 1} if index else {})}
        for index, (group, size) in enumerate(zip(groups, sizes(count)))
    ]
    return json.dumps(
        {
            "format": "prepost.workload",
            "version": "1.0",
            "name": f"Cosmos, {algorithm}",
            "hosts": STORAGE_NODES + 1,
            "spec": {"algorithm": algorithm, "block_bytes": MiB, "ready": "window=1", "send_window": 1},
            "groups": writes,
        }
    )


def rows(simulator, quick):
    cases = [(algorithm, count) for count in ((12,) if quick else (12, WRITES)) for algorithm in ALGORITHMS]
    rows_ = []
    for (algorithm, count), answer in zip(
        cases, simulator.workloads([Workload(workload(*case), Profile("fractus")) for case in cases])
    ):
        for index, (cpu, offload) in enumerate(zip(answer["cpu"]["groups"], answer["offload"]["groups"])):
            rows_.append(
                {
                    "clock": "modelled",
                    "profile": "fractus",
                    "writes": count,
                    "algorithm": algorithm,
                    "write": index,
                    "message_bytes": cpu["message_bytes"],
                    "cpu_us": data.microseconds(round(cpu["latency_seconds"] * 1e12)),
                    "offload_us": data.microseconds(round(offload["latency_seconds"] * 1e12)),
                }
            )
    return rows_


def times(rows_, algorithm, side="cpu_us"):
    return [float(row[side]) for row in data.select(rows_, algorithm=algorithm, writes=most(rows_))]


def most(rows_):
    return max(data.values(rows_, "writes"), key=int)


def draw(rows_):
    figure, axes = style.figure(1, 2, height=2.7)
    for index, algorithm in enumerate(ALGORITHMS):
        label, colour, _ = style.SCHEDULES[algorithm]
        found = sorted(times(rows_, algorithm))
        axes[0][0].plot(
            [time / 1e3 for time in found],
            [(position + 1) / len(found) for position in range(len(found))],
            color=colour,
            label=f"{label}, CPU-driven",
            linestyle=("-", "--", "-.")[index],
        )
        pairs = sorted(
            (int(row["message_bytes"]) / 1e6, float(row["cpu_us"]) / 1e3)
            for row in data.select(rows_, algorithm=algorithm, writes=most(rows_))
        )
        axes[0][1].plot(*zip(*pairs), color=colour, linestyle=("-", "--", "-.")[index])
    found = sorted(times(rows_, ALGORITHMS[0], "offload_us"))
    axes[0][0].plot(
        [time / 1e3 for time in found],
        [(position + 1) / len(found) for position in range(len(found))],
        color=style.BLACK,
        linestyle=":",
        label="binomial pipeline, preposted",
    )
    for panel in axes[0]:
        style.decades(panel.xaxis)
    axes[0][0].set_xlim(0.02)
    axes[0][0].set_xlabel("time of a write, ms")
    axes[0][0].set_ylabel("share of writes")
    axes[0][0].set_ylim(0, 1)
    style.decades(axes[0][1].yaxis)
    axes[0][1].set_xlim(0.1)
    axes[0][1].set_ylim(0.02)
    axes[0][1].set_xlabel("size of a write, MB")
    axes[0][1].set_ylabel("time, ms")
    style.legend_below(figure, axes[0][0], columns=2)
    return figure


def claims(rows_):
    c6 = Statement(
        "C6",
        "Cosmos, 3 replicas: the pipeline “almost twice” as fast as the tree, “around three times” as sequential",
        f"{PUSHING}, 5.2.2, figure 9",
    )
    total = {algorithm: sum(times(rows_, algorithm)) for algorithm in ALGORITHMS}
    yield c6.between("all writes together: tree / pipeline", 1.75, 2, total["binomial_tree"] / total["binomial_pipeline"], "x")
    yield c6.between("all writes together: sequential / pipeline", 2.7, 3, total["sequential"] / total["binomial_pipeline"], "x")
    middle = {algorithm: sorted(times(rows_, algorithm))[WRITES // 2] for algorithm in ALGORITHMS}
    yield c6.near(
        "the median write, 12 MB in 12 blocks, the last one short: sequential / pipeline, 3 M / (13 blocks)",
        3 * MEDIAN / (13 * MiB),
        middle["sequential"] / middle["binomial_pipeline"],
        0.05,
        "x",
    )
    trace = Statement(
        "figure 9",
        "writes of a median of 12 MB, a mean of 29 MB, hundreds of bytes to hundreds of MB, over 455 groups",
        f"{DSN}, 5.2",
    )
    drawn = [int(row["message_bytes"]) for row in data.select(rows_, algorithm=ALGORITHMS[0], writes=WRITES)]
    yield trace.near("our draws: median", 12, sorted(drawn)[len(drawn) // 2] / 1e6, 0.03, "MB")
    yield trace.near("our draws: mean", 29, sum(drawn) / len(drawn) / 1e6, 0.05, "MB")


FIGURES = [
    Figure(
        "cosmos",
        "fractus",
        f"RDMC's figure 9: {WRITES} writes to 3 of 15 storage nodes each, one after the other; sizes lognormal with the trace's"
        " median and mean. Left the distribution of times, right time against size. (The data have 12 writes besides, which"
        " tests run again.)",
        rows,
        ("writes", "algorithm", "write"),
        draw,
        None,
        claims,
    ),
]
