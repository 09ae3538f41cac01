# SPDX-License-Identifier: Apache-2.0
"""What virtual time itself costs: time against size, as bench/virtual_bench measures them on this machine's clock."""

from . import style
from .claims import Statement
from .data import one, select
from .figure import Figure

SIZES = [(nodes, 256) for nodes in (8, 32, 64, 128, 512)] + [(64, blocks) for blocks in (16, 64, 1024, 4096)]
AIM_PER_SECOND = 1e6
AIM_SECONDS = 0.5
EXECUTORS = {"inline": "preposted", "cpu": "CPU-driven"}
READY = {"barrier": "no credits", "window=1": "a credit per transfer"}


def reason(ready, executor, nodes):
    """Why more than the aim is taken."""
    looks = " and as many looks of hosts" if executor == "cpu" else ""
    credits = f"a credit is a message of its own, with a WQE and two CQEs{looks}" if ready != "barrier" else ""
    cache = "a node's peers take turns, and what is known of a queue pair has left the cache until its next" if nodes >= 64 else ""
    return "; ".join(filter(None, (credits, cache)))


def rows(simulator, quick):
    sizes = SIZES[:1] if quick else SIZES
    kept = ("nodes", "blocks", "ready", "executor", "transfers", "run_s", "total_s", "transfers_per_s")
    measured = simulator.bench(
        [f"{nodes}x{blocks}" for nodes, blocks in sizes],
        ["--ready", *READY, "--executor", *EXECUTORS, "--costs", "typical", "--repeat", "3"],
    )
    return [{"clock": "real", **{key: row[key] for key in kept}} for row in measured]


def draw(rows_):
    figure, axes = style.figure(2, 2)
    for column, panels, label in (
        ("total_s", axes[0], "lower, arm and run, s"),
        ("transfers_per_s", axes[1], "run: million transfers / s"),
    ):
        scale = 1 if column == "total_s" else 1e6
        for panel, (ready, words) in zip(panels, READY.items()):
            for index, executor in enumerate(EXECUTORS):
                for fixed, value, dash in (("blocks", 256, "-"), ("nodes", 64, "--")):
                    found = select(rows_, ready=ready, executor=executor, **{fixed: value})
                    found.sort(key=lambda row: float(row["transfers"]))
                    style.line(
                        panel,
                        [float(row["transfers"]) for row in found],
                        [float(row[column]) / scale for row in found],
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
        panel.axhline(AIM_PER_SECOND / 1e6, color=style.BLACK, linestyle=":", label="aim")
        panel.set_ylim(0, 1.06 * max(it.dataLim.y1 for it in axes[1]))
    style.legend_below(figure, axes[1][0], columns=3)
    return figure


def claims(rows_):
    linear = Statement("cost", "time grows no faster than the transfers", "our own aim")
    rate = Statement("cost", "a million block transfers per second of one core", "our own aim")
    total = Statement("cost", "512 nodes x 256 blocks in half a second, lowering and arming included", "our own aim")

    def row(ready, executor, nodes, blocks):
        return one(rows_, ready=ready, executor=executor, nodes=nodes, blocks=blocks)

    for ready, words in READY.items():
        for executor, name in EXECUTORS.items():
            small, large = (float(row(ready, executor, 64, blocks)["run_s"]) for blocks in (256, 4096))
            yield linear.holds(
                f"{name}, {words}, 64 nodes, from 256 to 4096 blocks: 16 times the transfers",
                "at most 20 times the time",
                f"{large / small:.1f} times",
                large <= 20 * small,
            )
    # How fast the machine is decides what is missed.
    cases = [(ready, executor) for ready in READY for executor in EXECUTORS]
    for ready, executor in cases:
        for nodes in (32, 64, 512):
            found = float(row(ready, executor, nodes, 256)["transfers_per_s"])
            yield rate.holds(
                f"{EXECUTORS[executor]}, {READY[ready]}, {nodes} x 256",
                "at least 1 M/s",
                f"{found / 1e6:.2f} M/s",
                found >= AIM_PER_SECOND,
                why="" if found >= AIM_PER_SECOND else reason(ready, executor, nodes),
            )
    for ready, executor in cases:
        found = float(row(ready, executor, 512, 256)["total_s"])
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
                *(f"{float(it['transfers_per_s']) / 1e6:.2f}, {float(it['total_s']):.2g} s" for it in cases),
            ]
        )
    heads = [f"{name}, {words}: M/s in run, all" for words in READY.values() for name in EXECUTORS.values()]
    return ["nodes x blocks", "transfers", *heads], cells


FIGURES = [
    Figure(
        "cost",
        "",
        "What it costs to reckon this: `bench/virtual_bench`, a binomial pipeline with typical costs, `--ready barrier` and `window=1`, medians of "
        "3 runs on one core of a 2-core x86-64 virtual machine. Made by `scripts/figures --only cost`.",
        rows,
        ("nodes", "blocks", "ready", "executor"),
        draw,
        table,
        claims,
        is_measured=True,
    ),
]
