# SPDX-License-Identifier: Apache-2.0
"""Messages of one byte: RDMC's figure 7, the earlier version's figure 15."""

import dataclasses

from . import data, style, words
from .claims import CONSTRUCTION, EARLIER, OURS, Statement
from .figure import PANELS, Figure, row_of
from .simulator import Plan, Profile, Run, no_message_costs

CLUSTERS = ("fractus", "sierra", "stampede")
NODES = list(range(2, 17))
MTUS = (2048, 4096)  # of InfiniBand; which one was in use no paper says


def rows(simulator, quick):
    runs = [
        Run(Plan(nodes, 1, ready="window=1", send_window="1"), Profile(profile))
        for profile in CLUSTERS
        for nodes in (NODES[:4] if quick else NODES)
    ]
    bare = [Run(run.plan, no_message_costs(run.profile), "cpu") for run in runs]
    larger = [
        [dataclasses.replace(run, plan=of_bytes(run.plan, size), executor="cpu") for run in runs]
        for size in MTUS
    ]
    bare_larger = [dataclasses.replace(run, plan=of_bytes(run.plan, MTUS[-1])) for run in bare]
    times = [
        [result.cpu.completion for result in simulator.simulate(its)]
        for its in (bare, *larger, bare_larger)
    ]
    return [
        row_of(
            run,
            nodes=run.plan.nodes,
            cpu_us=data.microseconds(result.cpu.completion),
            cpu_no_message_costs_us=data.microseconds(without),
            cpu_2048_us=data.microseconds(smaller),
            cpu_4096_us=data.microseconds(most),
            cpu_4096_no_message_costs_us=data.microseconds(most_without),
            offload_us=data.microseconds(result.offload.completion),
            offload_counted_us=data.microseconds(result.offload.whole),
        )
        for run, result, without, smaller, most, most_without in zip(
            runs, simulator.simulate(runs), *times
        )
    ]


def of_bytes(plan, size):
    return dataclasses.replace(plan, message_bytes=size)


def rate(row, side):
    return 1e6 / float(row[side])


def draw(rows_):
    figure, axes = style.figure(2, 2, height=2.4, sharex=True, sharey=True)
    for panel, (side, title) in zip([panel for line in axes for panel in line], PANELS.items()):
        for index, profile in enumerate(CLUSTERS):
            found = data.select(rows_, profile=profile)
            style.line(
                panel,
                [int(row["nodes"]) for row in found],
                [rate(row, side) / 1e3 for row in found],
                index,
                profile,
            )
        panel.set_title(title)
        panel.set_xticks([2, 4, 8, 16])
    axes[0][0].set_ylim(0, 1.06e-3 * max(rate(row, side) for row in rows_ for side in PANELS))
    for line in axes:
        line[0].set_ylabel("thousand messages / s")
    for panel in axes[1]:
        panel.set_xlabel("nodes")
    style.legend_below(figure, axes[0][0])
    return figure


def claims(rows_):
    c25 = Statement(
        "C25",
        "a message of one byte goes down a tree: its time grows with log2 n",
        OURS,
        CONSTRUCTION,
    )
    for profile in CLUSTERS:
        times = {
            int(row["nodes"]): float(row["cpu_us"]) for row in data.select(rows_, profile=profile)
        }
        steps = [times[2**level] for level in range(1, 5)]
        growth = [after - before for before, after in zip(steps, steps[1:])]
        yield c25.holds(
            f"{profile}, CPU-driven: time added from n = 2 to 4, 4 to 8, 8 to 16",
            "the same each time, within 20 %",
            ", ".join(f"{value:.2f} us" for value in growth),
            max(growth) <= 1.2 * min(growth),
        )
    mtu = Statement(
        "figure 15",
        (
            "messages/s are “unchanged for all message sizes below the network MTU”, which the text"
            " does not name"
        ),
        f"{EARLIER}, 4.2",
    )
    for nodes in (2, NODES[-1]):
        row = data.one(rows_, profile=CLUSTERS[0], nodes=nodes)
        beside = [float(row[f"cpu_{size}_us"]) / float(row["cpu_us"]) for size in MTUS]
        yield mtu.holds(
            (
                f"{CLUSTERS[0]}, n = {nodes}, CPU-driven: time of"
                f" {' and '.join(map(str, MTUS))} bytes beside 1 byte"
            ),
            "0.95 to 1.05",
            " and ".join(f"{it:.3f}" for it in beside),
            all(0.95 <= it <= 1.05 for it in beside),
        )


def remarks(rows_):
    def beside(side, other, nodes=None):
        return [
            float(row[side]) / float(row[other])
            for row in rows_
            if nodes is None or int(row["nodes"]) == nodes
        ]

    of_all = [1 - share for share in beside("cpu_no_message_costs_us", "cpu_us")]
    few, many = (
        beside("cpu_no_message_costs_us", "offload_counted_us", nodes)
        for nodes in (NODES[0], NODES[-1])
    )
    longest = max(
        data.select(rows_, profile=CLUSTERS[0]),
        key=lambda row: float(row["cpu_4096_us"]) / float(row["cpu_us"]),
    )
    bare = {
        nodes: float(row["cpu_4096_no_message_costs_us"]) / float(row["cpu_no_message_costs_us"])
        for nodes in (NODES[0], NODES[-1])
        for row in [data.one(rows_, profile=CLUSTERS[0], nodes=nodes)]
    }
    without = [f"{it:.3f} times as long with {nodes} nodes" for nodes, it in bare.items()]
    return (
        "Steps are where a level is added to the tree. With RDMC's costs per message there are more"
        " of them, since each relay on a node's way does its set-up. Those costs are"
        f" {words.percent(of_all)} of RDMC's time here. Without them the CPU-driven side takes"
        f" {words.span(few, 2)} times as long with {NODES[0]} nodes as a preposted one that has to"
        f" be armed first, and {words.span(many, 2)} times with {NODES[-1]}. That a message of"
        f" {MTUS[-1]} bytes takes next to no longer than one of 1 byte on Fractus, at most"
        f" {float(longest['cpu_4096_us']) / float(longest['cpu_us']):.3f} times as long"
        f" (n = {longest['nodes']}), rests on those costs, which are Stampede's: without them it"
        f" takes {' and '.join(without)}."
    )


FIGURES = [
    Figure(
        "one-byte",
        "fractus, sierra, stampede",
        (
            "RDMC's figure 7, the earlier version's figure 15: messages of 1 byte per second, one"
            " after the other (1 / time until all hosts know that they have it); binomial pipeline,"
            " which is a binomial tree here. Preposted runs have none of RDMC's costs per message"
            " (`host.message_start`, `message_setup`), so CPU-driven ones are shown with and"
            " without; preposted ones without and with arming and detection."
        ),
        rows,
        ("profile", "nodes"),
        draw,
        None,
        claims,
        remarks,
    ),
]
