# SPDX-License-Identifier: Apache-2.0
"""What virtual time itself costs: processor time of `prepost simulate` against the size. Measured, so only `scripts/figures --measure`
makes these data anew."""

from . import style
from .claims import Statement
from .data import one, select
from .figure import Figure
from .simulator import MiB, Plan, Profile, Run

SIZES = [(nodes, 256) for nodes in (8, 32, 64, 128, 512)] + [(64, blocks) for blocks in (16, 64, 1024, 4096)]
REPEAT = 3
AIM_PER_SECOND = 1e6
EXECUTORS = {"offload": "preposted", "cpu": "CPU-driven"}


def rows(simulator, quick):
    rows_ = []
    for nodes, blocks in SIZES[:1] if quick else SIZES:
        for executor in EXECUTORS:
            run = Run(Plan(nodes, blocks * MiB), Profile("sierra"), executor)
            seconds = min(simulator.processor_seconds(run) for _ in range(REPEAT))
            rows_.append(
                {
                    "clock": "real",
                    "profile": "sierra",
                    "nodes": nodes,
                    "blocks": blocks,
                    "executor": executor,
                    "transfers": (nodes - 1) * blocks,
                    "processor_s_min": f"{seconds:.3f}",
                }
            )
    return rows_


def seconds_of(row):
    return float(row["processor_s_min"])


def draw(rows_):
    figure, axes = style.figure(1, 2)
    for panel, y in ((axes[0][0], seconds_of), (axes[0][1], lambda row: int(row["transfers"]) / seconds_of(row) / 1e6)):
        for index, executor in enumerate(EXECUTORS):
            for fixed, value, dash in (("blocks", 256, "-"), ("nodes", 64, "--")):
                found = sorted(select(rows_, executor=executor, **{fixed: value}), key=lambda row: int(row["transfers"]))
                style.line(
                    panel,
                    [int(row["transfers"]) for row in found],
                    [y(row) for row in found],
                    index,
                    f"{EXECUTORS[executor]}, {value} {fixed}",
                    linestyle=dash,
                )
        style.decades(panel.xaxis)
        panel.set_xlabel("block transfers")
    transfers = sorted({int(row["transfers"]) for row in rows_})
    axes[0][0].plot(
        transfers,
        [count / AIM_PER_SECOND for count in transfers],
        color=style.BLACK,
        linestyle=":",
        label="aim: a million per second",
    )
    axes[0][1].axhline(1, color=style.BLACK, linestyle=":")
    style.decades(axes[0][0].yaxis)
    style.from_zero(axes[0][1])
    axes[0][0].set_ylabel("processor time, s")
    axes[0][1].set_ylabel("million transfers / s")
    style.legend_below(figure, axes[0][0], columns=3)
    return figure


def claims(rows_):
    linear = Statement("cost", "time grows no faster than the transfers", "our own aim")
    for executor, name in EXECUTORS.items():
        small, large = (one(rows_, nodes=64, blocks=blocks, executor=executor) for blocks in (256, 4096))
        growth = seconds_of(large) / seconds_of(small)
        yield linear.holds(
            f"{name}, 64 nodes, from 256 to 4096 blocks: 16 times the transfers",
            "at most 20 times the time",
            f"{growth:.1f} times",
            growth <= 20,
        )


def table(rows_):
    cells = []
    for nodes, blocks in [(int(row["nodes"]), int(row["blocks"])) for row in rows_ if row["executor"] == "cpu"]:
        found = [one(rows_, nodes=nodes, blocks=blocks, executor=executor) for executor in EXECUTORS]
        cells.append([f"{nodes} x {blocks}", f"{int(found[0]['transfers']):,}", *(f"{seconds_of(row):.2f} s" for row in found)])
    return ["nodes x blocks", "transfers", *EXECUTORS.values()], cells


FIGURES = [
    Figure(
        "cost",
        "sierra",
        "What it costs to reckon this: processor time of one `prepost simulate` of a plan file, everything included; the least"
        f" of {REPEAT} runs on a 2-core x86-64 virtual machine. Made by `scripts/figures --only cost --measure`.",
        rows,
        ("nodes", "blocks", "executor"),
        draw,
        table,
        claims,
        is_measured=True,
    ),
]
