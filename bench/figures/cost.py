# SPDX-License-Identifier: Apache-2.0
"""What virtual time itself costs: time against size, as bench/virtual_bench measures them on this machine's clock; so only
`scripts/figures --measure` makes these data anew."""

from . import style
from .claims import Statement
from .data import one, select
from .figure import Figure

SIZES = [(nodes, 256) for nodes in (8, 32, 64, 128, 512)] + [(64, blocks) for blocks in (16, 64, 1024, 4096)]
AIM_PER_SECOND = 1e6
EXECUTORS = {"inline": "preposted", "cpu": "CPU-driven"}


def rows(simulator, quick):
    sizes = SIZES[:1] if quick else SIZES
    kept = ("nodes", "blocks", "executor", "transfers", "run_s", "total_s", "transfers_per_s")
    measured = simulator.bench(
        [f"{nodes}x{blocks}" for nodes, blocks in sizes], ["--executor", *EXECUTORS, "--costs", "typical", "--repeat", "3"]
    )
    return [{"clock": "real", **{key: row[key] for key in kept}} for row in measured]


def draw(rows_):
    figure, axes = style.figure(1, 2)
    for panel, column in ((axes[0][0], "total_s"), (axes[0][1], "transfers_per_s")):
        scale = 1 if column == "total_s" else 1e6
        for index, executor in enumerate(EXECUTORS):
            for fixed, value, dash in (("blocks", 256, "-"), ("nodes", 64, "--")):
                found = sorted(select(rows_, executor=executor, **{fixed: value}), key=lambda row: float(row["transfers"]))
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
    style.decades(axes[0][0].yaxis)
    axes[0][0].set_ylabel("lower, arm and run, s")
    axes[0][1].set_ylabel("run: million transfers / s")
    axes[0][1].axhline(AIM_PER_SECOND / 1e6, color=style.BLACK, linestyle=":", label="aim")
    style.from_zero(axes[0][1])
    style.legend_below(figure, axes[0][1], columns=3)
    return figure


def claims(rows_):
    linear = Statement("cost", "time grows no faster than the transfers", "our own aim")
    for executor, name in EXECUTORS.items():
        small, large = (float(one(rows_, nodes=64, blocks=blocks, executor=executor)["run_s"]) for blocks in (256, 4096))
        yield linear.holds(
            f"{name}, 64 nodes, from 256 to 4096 blocks: 16 times the transfers",
            "at most 20 times the time",
            f"{large / small:.1f} times",
            large <= 20 * small,
        )


def table(rows_):
    cells = []
    for row in select(rows_, executor="inline"):
        both = [one(rows_, nodes=row["nodes"], blocks=row["blocks"], executor=executor) for executor in EXECUTORS]
        cells.append(
            [
                f"{row['nodes']} x {row['blocks']}",
                f"{float(row['transfers']):,.0f}",
                *(f"{float(it['transfers_per_s']) / 1e6:.2f}, {float(it['total_s']):.2f} s" for it in both),
            ]
        )
    return ["nodes x blocks", "transfers", *(f"{name}: M/s in run, all" for name in EXECUTORS.values())], cells


FIGURES = [
    Figure(
        "cost",
        "",
        "What it costs to reckon this: `bench/virtual_bench`, a binomial pipeline with typical costs, medians of 3 runs on one core of a 2-core x86-64 "
        "virtual machine that was busy otherwise. Made by `scripts/figures --only cost --measure`.",
        rows,
        ("nodes", "blocks", "executor"),
        draw,
        table,
        claims,
        is_measured=True,
    ),
]
