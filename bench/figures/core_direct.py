# SPDX-License-Identifier: Apache-2.0
"""RDMC's figure 12: a chain and 100 MB, CPU-driven and preposted to the NIC (CORE-Direct)."""

from . import data, style, words
from .claims import PUSHING, Statement
from .figure import Figure, row_of
from .simulator import KiB, MiB, Plan, Profile, Run, no_message_costs

BLOCKS = (16 * KiB, 64 * KiB, 256 * KiB, MiB, 4 * MiB)
BASE = no_message_costs(Profile("fractus"))
CHAIN_NODES = 8


def chain_rows(simulator, quick):
    cases = [(nodes, MiB, wait) for nodes in (3, 4, 5, 6, 7, 8) for wait in ("hybrid", "interrupt")]
    cases += [
        (CHAIN_NODES, block, wait)
        for block in BLOCKS
        if block != MiB
        for wait in ("hybrid", "interrupt")
    ]
    cases = [
        case for case in cases if not quick or (case[1] >= MiB and case[0] in (4, CHAIN_NODES))
    ]
    runs = [
        Run(
            Plan(nodes, 100 * MiB, block, "chain", ready="window=1", send_window="1"),
            BASE,
            wait=wait,
        )
        for nodes, block, wait in cases
    ]
    return [
        row_of(
            run,
            nodes=run.plan.nodes,
            block_bytes=run.plan.block_bytes,
            wait=run.wait,
            cpu_us=data.microseconds(result.cpu.completion),
            offload_us=data.microseconds(result.offload.completion),
            offload_counted_us=data.microseconds(result.offload.whole),
        )
        for run, result in zip(runs, simulator.simulate(runs))
    ]


def gbits(row, side):
    return 100 * MiB * 8 / float(row[side]) / 1e3


def draw_chain(rows):
    figure, axes = style.figure(1, 2, sharey=True)
    for panel, x, found_of in (
        (axes[0][0], "nodes", lambda wait: data.select(rows, block_bytes=MiB, wait=wait)),
        (axes[0][1], "block_bytes", lambda wait: data.select(rows, nodes=CHAIN_NODES, wait=wait)),
    ):
        for index, wait in ((1, "hybrid"), (2, "interrupt")):
            found = sorted(found_of(wait), key=lambda row: int(row[x]))
            style.line(
                panel,
                [int(row[x]) for row in found],
                [gbits(row, "cpu_us") for row in found],
                index,
                f"CPU-driven, {wait}",
            )
        style.line(
            panel,
            [int(row[x]) for row in found],
            [gbits(row, "offload_us") for row in found],
            0,
            "preposted, armed before",
        )
        style.line(
            panel,
            [int(row[x]) for row in found],
            [gbits(row, "offload_counted_us") for row in found],
            3,
            "preposted, arming and detection counted",
        )
    axes[0][0].set_xlabel("nodes")
    axes[0][0].set_title("chain, 100 MiB, blocks of 1 MiB")
    axes[0][0].set_ylabel("bandwidth, Gbit/s")
    axes[0][0].set_ylim(0, 105)
    style.log_axis(axes[0][1].xaxis, BLOCKS, style.bytes_text)
    axes[0][1].set_xlabel("block size")
    axes[0][1].set_title(f"chain, 100 MiB, {CHAIN_NODES} nodes")
    style.legend_below(figure, axes[0][0], columns=2)
    return figure


def chain_claims(rows):
    def gain_of(row, side):
        return float(row["cpu_us"]) / float(row[side])

    def gain(block, side):
        return gain_of(data.one(rows, nodes=CHAIN_NODES, block_bytes=block, wait="hybrid"), side)

    c14 = Statement(
        "C14",
        (
            "to offload a transfer is “further reducing latency”; figure 12 shows a chain, with"
            " hybrid waiting and with interrupts, of which the text has no numbers"
        ),
        f"{PUSHING}, abstract and figure 12",
    )
    # Hosts that take time are put in on one side alone; what arming takes no paper says.
    for says, side, counted in (
        (c14.constructed, "offload_us", "armed before"),
        (c14.ours, "offload_counted_us", "arming and detection counted"),
    ):
        for wait in ("hybrid", "interrupt"):
            gains = [gain_of(row, side) for row in data.select(rows, block_bytes=MiB, wait=wait)]
            yield says.holds(
                f"1 MiB, n = 3 to 8, {wait}: CPU-driven / preposted time, {counted}",
                "above 1",
                f"{min(gains):.3f} to {max(gains):.3f}",
                min(gains) > 1,
            )
        gains = [gain(block, side) for block in sorted(BLOCKS)]
        yield says.holds(
            f"n = 8, hybrid: 16 KiB to 4 MiB, {counted}",
            "above 1, and falls as blocks grow",
            ", ".join(f"{value:.3f}" for value in gains),
            gains == sorted(gains, reverse=True) and gains[-1] > 1,
        )


def chain_remarks(rows):
    def taken(wait):
        """By arming and detection, of what the run alone is shorter."""
        return [
            (float(row["offload_counted_us"]) - float(row["offload_us"]))
            / (float(row["cpu_us"]) - float(row["offload_us"]))
            for row in data.select(rows, wait=wait)
        ]

    return (
        "The authors could run a chain only, because of a driver's bug. Its gain is that of a"
        " host's reaction per block, so it grows as blocks shrink. Arming grows with the number of"
        " blocks, too: where nothing was armed before it takes, with detection,"
        f" {words.percent(taken('hybrid'))} of the gain over hosts that poll, and"
        f" {words.percent(taken('interrupt'))} of that over hosts that sleep."
    )


FIGURES = [
    Figure(
        "core-direct",
        "fractus",
        (
            "RDMC's figure 12: a chain and 100 MiB, CPU-driven with two ways of waiting, and"
            " preposted; ready window 1, as RDMC's ready_for_block. Preposted times without and"
            " with arming (by the host with the most WQEs, 100 ns each) and a host's seeing of the"
            " end. RDMC's costs per message (`host.message_start`, `message_setup`) are 0, as"
            " preposted runs have none."
        ),
        chain_rows,
        ("nodes", "block_bytes", "wait"),
        draw_chain,
        None,
        chain_claims,
        chain_remarks,
    ),
]
