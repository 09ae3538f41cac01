# SPDX-License-Identifier: Apache-2.0
"""RDMC's figure 9: the writes of the Cosmos storage system, by three ways to send them.
cosmos_workload.py says what is known of the trace."""

import json
import math
import statistics

from . import data, style
from .claims import CONSTRUCTION, DSN, PUSHING, Statement
from .cosmos_workload import LARGEST, MEAN, MEDIAN, workload
from .figure import Figure
from .simulator import MiB, Profile, Workload, no_message_costs

WRITES = 455  # as many as there are groups
SHARE_SMALL = statistics.NormalDist(math.log(MEDIAN), math.sqrt(2 * math.log(MEAN / MEDIAN))).cdf(
    math.log(1000)
)
FEW = 12
ALGORITHMS = ("binomial_pipeline", "binomial_tree", "sequential")
ONE_BY_ONE, TWO, OVERLAPPING = "one by one", "two at a time", "100 a second"
ARRIVALS = {ONE_BY_ONE: {}, TWO: {"at_once": 2}, OVERLAPPING: {"per_second": 100}}
DASHES = ("-", "--", "-.")


def file_of(algorithm, count, arrivals, profile=Profile("fractus")):
    """RDMC's way: one credit and one send at a time."""
    document = workload(count, algorithm, MiB, **ARRIVALS[arrivals])
    document["spec"] |= {"ready": "window=1", "send_window": 1}
    return Workload(json.dumps(document), profile)


def rows(simulator, quick):
    counts = (FEW,) if quick else (FEW, WRITES)
    cases = [
        (algorithm, count, arrivals)
        for count in counts
        for arrivals in ARRIVALS
        for algorithm in ALGORITHMS
    ]
    rows_ = []
    profiles = (Profile("fractus"), no_message_costs(Profile("fractus")))
    answers = iter(
        simulator.workloads([file_of(*case, profile) for case in cases for profile in profiles])
    )
    for algorithm, count, arrivals in cases:
        answer, without = next(answers), next(answers)
        groups = zip(answer["cpu"]["groups"], without["cpu"]["groups"], answer["offload"]["groups"])
        for index, (cpu, bare, offload) in enumerate(groups):
            rows_.append(
                {
                    "clock": "modelled",
                    "profile": "fractus",
                    "writes": count,
                    "arrivals": arrivals,
                    "algorithm": algorithm,
                    "write": index,
                    "message_bytes": cpu["message_bytes"],
                    "cpu_us": data.microseconds(
                        round((cpu["end_seconds"] - cpu["start_seconds"]) * 1e12)
                    ),
                    "cpu_end_us": data.microseconds(round(cpu["end_seconds"] * 1e12)),
                    "cpu_no_message_costs_us": data.microseconds(
                        round((bare["end_seconds"] - bare["start_seconds"]) * 1e12)
                    ),
                    "offload_us": data.microseconds(
                        round((offload["end_seconds"] - offload["start_seconds"]) * 1e12)
                    ),
                }
            )
    return rows_


def most(rows_):
    return max(data.values(rows_, "writes"), key=int)


def times(rows_, algorithm, arrivals=ONE_BY_ONE, side="cpu_us"):
    return [
        float(row[side])
        for row in data.select(rows_, algorithm=algorithm, arrivals=arrivals, writes=most(rows_))
    ]


def distribution(axes, found, **rest):
    found = sorted(found)
    axes.plot(
        [time / 1e3 for time in found],
        [(index + 1) / len(found) for index in range(len(found))],
        **rest,
    )


def draw(rows_):
    figure, axes = style.figure(2, 2, height=2.5)
    panels = dict(zip(ARRIVALS, (axes[0][0], axes[0][1], axes[1][0])))
    by_size = axes[1][1]
    for algorithm, dashes in zip(ALGORITHMS, DASHES):
        label, colour, _ = style.SCHEDULES[algorithm]
        look = {"color": colour, "linestyle": dashes}
        below = (
            {"linewidth": 5, "alpha": 0.4} if algorithm == ALGORITHMS[0] else {}
        )  # two other lines lie on it
        for arrivals, panel in panels.items():
            distribution(
                panel,
                times(rows_, algorithm, arrivals),
                label=f"{label}, CPU-driven",
                **look,
                **below,
            )
        pairs = sorted(
            (int(row["message_bytes"]) / 1e6, float(row["cpu_us"]) / 1e3)
            for row in data.select(
                rows_, algorithm=algorithm, arrivals=ONE_BY_ONE, writes=most(rows_)
            )
        )
        by_size.plot(*zip(*pairs), **look, **below)
    for arrivals, panel in panels.items():
        distribution(
            panel,
            times(rows_, ALGORITHMS[0], arrivals, "cpu_no_message_costs_us"),
            color=style.ORANGE,
            linewidth=2.2,
            label="binomial pipeline, CPU-driven, no costs per message",
        )
        distribution(
            panel,
            times(rows_, ALGORITHMS[0], arrivals, "offload_us"),
            color=style.BLACK,
            linestyle=(0, (1, 3)),
            label="binomial pipeline, preposted",
        )
        panel.set_title(f"writes {arrivals}")
        panel.set_xlim(0.02)
        panel.set_ylim(0, 1)
        panel.set_xlabel("time of a write, ms")
        style.decades(panel.xaxis)
        panel.set_ylabel("share of writes")
    style.decades(by_size.xaxis)
    style.decades(by_size.yaxis)
    by_size.set_xlim(0.1)
    by_size.set_ylim(0.02)
    by_size.set_title(f"writes {ONE_BY_ONE}")
    by_size.set_xlabel("size of a write, MB")
    by_size.set_ylabel("time, ms")
    style.legend_below(figure, axes[0][0], columns=2)
    return figure


ALONE = (
    "A write by itself goes through relays that send and receive, at half of the 165 Gbit/s of a"
    " port both ways. The paper's run has concurrent multicasts to overlapping groups; how many at"
    " a time it does not say, and two are enough."
)


def throughput(rows_, arrivals):
    """Of the pipeline, CPU-driven: all bytes / the time from the first write's start to the last
    one's end, Gbit/s."""
    found = data.select(rows_, algorithm=ALGORITHMS[0], arrivals=arrivals, writes=most(rows_))
    return (
        sum(int(row["message_bytes"]) for row in found)
        * 8
        / max(float(row["cpu_end_us"]) for row in found)
        / 1e3
    )


def interference_claims(rows_):
    alone = Statement(
        "figure 9",
        "“no sign of interference between concurrent overlapping transfer”",
        f"{DSN}, 5.2.2",
    )
    both, one = (throughput(rows_, arrivals) for arrivals in (TWO, ONE_BY_ONE))
    yield alone.calibrated.holds(
        "pipeline, bytes / time of the run: writes two at a time beside one by one",
        "at least 1",
        f"{both / one:.3f}",
        both >= one,
    )
    longer = sum(times(rows_, ALGORITHMS[0], TWO)) / sum(times(rows_, ALGORITHMS[0]))
    yield alone.holds(
        "pipeline, time of a write: two at a time beside one by one, mean",
        "at most 1.1",
        f"{longer:.3f}",
        longer <= 1.1,
        (
            "All together lose nothing, but two writes share their sender's port, and each takes"
            " longer than alone. That bandwidth splits the earlier version says itself"
            " ([senders](#senders))."
        ),
    )


def claims(rows_):
    c6 = Statement(
        "C6",
        (
            "Cosmos, 3 replicas: the pipeline is “almost twice as fast as binomial tree and around"
            " three times as fast as sequential send”"
        ),
        f"{PUSHING}, 5.2.2, figure 9",
    )
    c7 = Statement(
        "C7",
        (
            "average throughput of the Cosmos run “is around 93 Gb/s of data replicated, which"
            " translates to about a petabyte per day”"
        ),
        f"{PUSHING}, 5.2.2",
    )
    yield c7.constructed.near(
        "93 Gbit/s x 86400 s", 1e15, 93e9 / 8 * 86400, 0.01, "bytes", digits=3
    )
    for arrivals in (TWO, ONE_BY_ONE):
        total = {algorithm: sum(times(rows_, algorithm, arrivals)) for algorithm in ALGORITHMS}
        pipeline = total["binomial_pipeline"]
        why = ALONE if arrivals == ONE_BY_ONE else ""
        of_6, of_7 = (
            (c6, c7) if arrivals == ONE_BY_ONE else (c6.calibrated, c7.calibrated)
        )  # two were chosen since one is too few
        tree, sequential = total["binomial_tree"] / pipeline, total["sequential"] / pipeline
        yield of_6.between(
            f"writes {arrivals}, all together: tree / pipeline", 1.8, 2, tree, "x", why
        )
        yield of_6.between(
            f"writes {arrivals}, all together: sequential / pipeline",
            2.7,
            3.3,
            sequential,
            "x",
            why,
        )
        yield of_7.near(
            f"writes {arrivals}, pipeline: bytes / time of the run",
            93,
            throughput(rows_, arrivals),
            0.03,
            "Gbit/s",
            why,
        )
    full = Statement(
        "figure 9",
        "the run is at “nearly the full bisection capacity of Fractus”, which is 100 Gb/s",
        f"{PUSHING}, 5.2.2",
    )
    for arrivals in (TWO, ONE_BY_ONE):
        says, why = (full, ALONE) if arrivals == ONE_BY_ONE else (full.calibrated, "")
        rate = throughput(rows_, arrivals)
        yield says.holds(
            f"writes {arrivals}, pipeline: share of 100 Gbit/s",
            "at least 0.9",
            f"{rate / 100:.3f}",
            rate >= 90,
            why,
        )
    yield from interference_claims(rows_)
    trace = Statement(
        "figure 9",
        "a median of 12 MB, a mean of 29 MB, hundreds of bytes to hundreds of MB, over 455 groups",
        f"{DSN}, 5.2.2",
        CONSTRUCTION,
    )
    rows_of = data.select(rows_, algorithm=ALGORITHMS[0], arrivals=ONE_BY_ONE, writes=WRITES)
    drawn = sorted(int(row["message_bytes"]) for row in rows_of)
    yield trace.near("our draws: median", MEDIAN / 1e6, drawn[len(drawn) // 2] / 1e6, 0.03, "MB")
    yield trace.near("our draws: mean", MEAN / 1e6, sum(drawn) / len(drawn) / 1e6, 0.05, "MB")
    yield trace.between(
        f"our draws: the largest (cut at {LARGEST / 1e6:g} MB)", 100, 999, drawn[-1] / 1e6, "MB"
    )
    yield trace.between(
        "our draws: the smallest",
        100,
        999,
        drawn[0],
        "bytes",
        why=(
            "Sizes are drawn from the lognormal distribution with this median and mean, in which"
            f" one of 10^{-math.ceil(math.log10(SHARE_SMALL))} is below 1000 bytes. The trace has"
            " another form below, which the papers do not tell. Writes of one block take next to"
            " no time among the others, so the sums above do not change."
        ),
        digits=6,
    )


def remarks(rows_):
    def later(side, other):
        """By what the middle one of the writes is later, us."""
        pairs = zip(times(rows_, ALGORITHMS[0], side=side), times(rows_, ALGORITHMS[0], side=other))
        return sorted(one - two for one, two in pairs)[WRITES // 2]

    middle = sorted(times(rows_, ALGORITHMS[0]))[WRITES // 2]
    gains = {
        arrivals: [
            sum(times(rows_, algorithm, arrivals)) / sum(times(rows_, ALGORITHMS[0], arrivals))
            for algorithm in ALGORITHMS[1:]
        ]
        for arrivals in ARRIVALS
    }
    return (
        "The three curves of the pipeline lie on each other: of the median write's"
        f" {middle:,.0f} us the costs per message are"
        f" {later('cpu_us', 'cpu_no_message_costs_us'):.1f} us, and all that preposting saves"
        f" {later('cpu_us', 'offload_us'):.1f} us. Below 1 MiB a write is one block, and the"
        " pipeline is the tree; between one block and the next its time does not change, since"
        " rounds go by the whole block. Both would be less with smaller blocks for small writes."
        " Alone, a pipeline is held up by its relays' ports both ways and has"
        f" {throughput(rows_, ONE_BY_ONE):.1f} Gbit/s; with a second write the sender's port is"
        f" busy, too, and the run has {throughput(rows_, TWO):.1f} Gbit/s, its end, where one write"
        " is left, included. When writes come at random and overlap at the sender the faster way"
        " gains more than its factor, since fewer are under way at a time: the tree's times are"
        f" {gains[TWO][0]:.2f} times the pipeline's two at a time and"
        f" {gains[OVERLAPPING][0]:.2f} times then, sequential's {gains[TWO][1]:.2f} and"
        f" {gains[OVERLAPPING][1]:.2f} times."
    )


FIGURES = [
    Figure(
        "cosmos",
        "fractus",
        (
            f"RDMC's figure 9: {WRITES} writes to 3 of 15 storage nodes each; sizes lognormal with"
            " the trace's median and mean. Distribution of times when writes come one after the"
            " other, when two are under way at any time, and when they arrive at random, 100 a"
            " second; time against size. CPU-driven times have RDMC's costs per message"
            " (`host.message_start`, `message_setup`) but for one line; preposted ones have none,"
            " and neither arming nor detection."
        ),
        rows,
        ("writes", "arrivals", "algorithm", "write"),
        draw,
        None,
        claims,
        remarks,
    ),
]
