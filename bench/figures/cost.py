# SPDX-License-Identifier: Apache-2.0
"""What virtual time itself costs: time against size,
as bench/virtual_bench measures them on this machine's clock."""

from . import style
from .claims import OURS, OWN, Statement
from .data import one, select
from .figure import Figure

SIZES = [(nodes, 256) for nodes in (8, 32, 64, 128, 512)] + [
    (64, blocks) for blocks in (16, 64, 1024, 4096)
]
AIM_MILLIONS = 1  # of transfers per second
AIM_SECONDS = 0.5
EXECUTORS = {"inline": "preposted", "cpu": "CPU-driven"}
READY = {"barrier": "no credits", "window=1": "a credit per transfer"}


def reason(ready, executor, nodes):
    """Why more than the aim is taken."""
    polls = " and as many polls of hosts" if executor == "cpu" else ""
    credits = (
        f"a credit is a message of its own, with a WQE and two CQEs{polls}"
        if ready != "barrier"
        else ""
    )
    cache = (
        "a node's peers take turns, and what is known of a queue pair has left the cache until its"
        " next"
        if nodes >= 64
        else ""
    )
    return "; ".join(filter(None, (credits, cache)))


def rows(simulator, quick):
    sizes = SIZES[:1] if quick else SIZES
    kept = ("nodes", "blocks", "ready", "executor", "transfers", "run_s", "total_s")
    measured = simulator.bench(
        [f"{nodes}x{blocks}" for nodes, blocks in sizes],
        ["--ready", *READY, "--executor", *EXECUTORS, "--costs", "typical", "--repeat", "5"],
    )
    return [{"clock": "real", **{key: row[key] for key in kept}} for row in measured]


def seconds(row):
    return float(row["run_s"])


def total_seconds(row):
    return float(row["total_s"])


def millions(row):
    """Of transfers per second."""
    return float(row["transfers"]) / seconds(row) / 1e6


def draw(rows_):
    figure, axes = style.figure(2, 2)
    for of, panels, label in (
        (total_seconds, axes[0], "lower, arm and run, s"),
        (millions, axes[1], "run: million transfers / s"),
    ):
        for panel, (ready, words) in zip(panels, READY.items()):
            for index, executor in enumerate(EXECUTORS):
                for fixed, value, dash in (("blocks", 256, "-"), ("nodes", 64, "--")):
                    found = select(rows_, ready=ready, executor=executor, **{fixed: value})
                    found.sort(key=lambda row: float(row["transfers"]))
                    style.line(
                        panel,
                        [float(row["transfers"]) for row in found],
                        [of(row) for row in found],
                        index,
                        f"{EXECUTORS[executor]}, {value} {fixed}",
                        linestyle=dash,
                    )
            style.decades(panel.xaxis)
            panel.set_xlabel("block transfers")
            panel.set_ylabel(label)
            panel.set_title(words)
    for panel in axes[0]:
        style.decades(panel.yaxis)
    for panel in axes[1]:
        panel.axhline(AIM_MILLIONS, color=style.BLACK, linestyle=":", label="aim")
        panel.set_ylim(0, 1.06 * max(it.dataLim.y1 for it in axes[1]))
    style.legend_below(figure, axes[1][0], columns=3)
    return figure


def claims(rows_):
    linear = Statement("cost", "time grows no faster than the transfers", OURS, OWN)
    rate = Statement("cost", "a million block transfers per second of one core", OURS, OWN)
    total = Statement(
        "cost", "512 nodes x 256 blocks in half a second, lowering and arming included", OURS, OWN
    )

    def row(ready, executor, nodes, blocks):
        return one(rows_, ready=ready, executor=executor, nodes=nodes, blocks=blocks)

    for ready, words in READY.items():
        for executor, name in EXECUTORS.items():
            small, large = (seconds(row(ready, executor, 64, blocks)) for blocks in (256, 4096))
            yield linear.holds(
                f"{name}, {words}, 64 nodes, from 256 to 4096 blocks: 16 times the transfers",
                "at most 20 times the time",
                f"{large / small:.1f} times",
                large <= 20 * small,
                why=(
                    ""
                    if large <= 20 * small
                    else "what is kept of 256 blocks stays in the cache, of 4096 it does not"
                ),
            )
    # How fast the machine is decides what is missed.
    cases = [(ready, executor) for ready in READY for executor in EXECUTORS]
    for ready, executor in cases:
        for nodes in (32, 64, 512):
            found = millions(row(ready, executor, nodes, 256))
            yield rate.holds(
                f"{EXECUTORS[executor]}, {READY[ready]}, {nodes} x 256",
                "at least 1 M/s",
                f"{found:.3g} M/s",
                found >= AIM_MILLIONS,
                why="" if found >= AIM_MILLIONS else reason(ready, executor, nodes),
            )
    for ready, executor in cases:
        found = total_seconds(row(ready, executor, 512, 256))
        yield total.holds(
            f"{EXECUTORS[executor]}, {READY[ready]}",
            f"at most {AIM_SECONDS} s",
            f"{found:.2f} s",
            found <= AIM_SECONDS,
            why="" if found <= AIM_SECONDS else reason(ready, executor, 512),
        )


def table(rows_):
    cells = []
    for row in select(rows_, executor="inline", ready="barrier"):
        cases = [
            one(rows_, nodes=row["nodes"], blocks=row["blocks"], ready=ready, executor=executor)
            for ready in READY
            for executor in EXECUTORS
        ]
        cells.append(
            [
                f"{row['nodes']} x {row['blocks']}",
                f"{float(row['transfers']):,.0f}",
                *(f"{millions(it):.2f}, {total_seconds(it):.2g} s" for it in cases),
            ]
        )
    heads = [
        f"{name}, {words}: M/s in run, all"
        for words in READY.values()
        for name in EXECUTORS.values()
    ]
    return ["nodes x blocks", "transfers", *heads], cells


FIGURES = [
    Figure(
        "cost",
        "",
        (
            "What it costs to simulate this: `bench/virtual_bench`, a binomial pipeline with"
            " typical costs, `--ready barrier` and `window=1`, the least of 5 runs, on one core of"
            " a 2-core x86-64 virtual machine. Made by `scripts/figures --only cost`."
        ),
        rows,
        ("nodes", "blocks", "ready", "executor"),
        draw,
        table,
        claims,
        is_measured=True,
    ),
]
