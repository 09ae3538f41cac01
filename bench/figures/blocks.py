# SPDX-License-Identifier: Apache-2.0
"""Block sizes: RDMC's figure 6 on Fractus, and the closed form of the best size."""

import math

from . import data, style
from .claims import CONSTRUCTION, EARLIER, OURS, PUSHING, Statement
from .figure import PANELS, Figure
from .simulator import KiB, MiB, Plan, Profile, Run, network_value, no_costs, no_message_costs

NODES = 4
LEVELS = 2  # log2 of it
ALPHA = 20e-6
RATE = 40e9 / 8
RELAYED = (
    float(network_value("fractus", "duplex").removesuffix("Gbit/s")) / 2
)  # each way, where a node has both
# 10 us for a block's way and 10 us for its credit's: together alpha on every round.
MODEL = no_costs("stampede").but(network__rack_latency="10us")


def powers(first, last):
    return [first << i for i in range((last // first).bit_length())]


def rows_of(simulator, profile, messages, blocks):
    """Blocks are not larger than the message."""
    runs = [
        Run(Plan(NODES, message, block, ready="window=1", send_window="1"), profile)
        for message in messages
        for block in blocks
        if block <= message
    ]
    bare = [
        Run(run.plan, no_message_costs(profile), "cpu") for run in runs
    ]  # the same in a profile without costs
    results = simulator.simulate(runs + bare)
    return [
        {
            "clock": "modelled",
            "profile": profile.name
            + (", links and 10 us latency alone" if profile.changes else ""),
            "message_bytes": run.plan.message_bytes,
            "block_bytes": run.plan.block_bytes,
            "cpu_us": data.microseconds(result.cpu.completion),
            "cpu_no_message_costs_us": data.microseconds(without.cpu.completion),
            "offload_us": data.microseconds(result.offload.completion),
            "offload_counted_us": data.microseconds(result.offload.whole),
        }
        for run, result, without in zip(runs, results, results[len(runs) :])
    ]


MESSAGES = powers(16 * KiB, 128 * MiB)[::3] + [128 * MiB]
DRAWN = [16 * KiB, 128 * KiB, MiB, 8 * MiB, 64 * MiB, 128 * MiB]


def rows(simulator, quick):
    messages = [128 * KiB, MiB] if quick else DRAWN
    return rows_of(simulator, Profile("fractus"), messages, powers(16 * KiB, 16 * MiB))


def gbits(row, side="cpu_us"):
    return int(row["message_bytes"]) * 8 / float(row[side]) / 1e3


def draw(rows_):
    figure, axes = style.figure(2, 2, height=2.5, sharex=True, sharey=True)
    for panel, (side, title) in zip([panel for line in axes for panel in line], PANELS.items()):
        for index, message in enumerate(reversed(data.values(rows_, "message_bytes"))):
            found = data.select(rows_, message_bytes=message)
            style.line(
                panel,
                [int(row["block_bytes"]) for row in found],
                [gbits(row, side) for row in found],
                index,
                style.bytes_text(int(message)),
            )
        style.log_axis(panel.xaxis, powers(16 * KiB, 16 * MiB)[::2], style.bytes_text)
        panel.tick_params(axis="x", labelrotation=30)
        panel.set_title(title)
    for panel in axes[1]:
        panel.set_xlabel("block size")
    for line in axes:
        line[0].set_ylabel("bandwidth, Gbit/s")
    axes[0][0].set_ylim(0, 105)
    style.legend_below(figure, axes[0][0], columns=6)
    return figure


def best(rows_, message, side="cpu_us"):
    return min(
        data.select(rows_, message_bytes=message),
        key=lambda row: (float(row[side]), int(row["block_bytes"])),
    )


def claims(rows_):
    # A cost per block and rounds in which a node idles give a peak: T(b) below.
    figure6 = Statement(
        "figure 6",
        "a larger block improves bandwidth up to a peak; the best depends on the message's size",
        f"{PUSHING}, 5.2.1; {EARLIER}, 4.2",
        CONSTRUCTION,
    )
    sizes = [int(best(rows_, message)["block_bytes"]) for message in DRAWN]
    yield figure6.holds(
        "best sizes for 16 KiB to 128 MiB, CPU-driven",
        "never smaller for a larger message",
        ", ".join(map(style.bytes_text, sizes)),
        sizes == sorted(sizes),
    )
    for message in (8 * MiB, 128 * MiB):
        found = data.select(rows_, message_bytes=message)
        ends = max(gbits(found[0]), gbits(found[-1])) / gbits(best(rows_, message))
        yield figure6.holds(
            (
                f"{style.bytes_text(message)}: the better of the smallest and the largest block"
                " beside the best"
            ),
            "below 0.95",
            f"{ends:.3f}",
            ends < 0.95,
        )
    c16 = Statement(
        "C16",
        (
            "for messages under roughly 10 MB one is “unable to pick any size that will get"
            " extremely high overall bandwidth”"
        ),
        f"{EARLIER}, 4.2",
    )

    def share(message):
        return (
            f"fractus, {style.bytes_text(message)}, the best block size: share of 100 Gbit/s",
            gbits(best(rows_, message)) / 100,
        )

    for message in (MiB, 8 * MiB):  # a relay has 0.825, so no message can have more: it cannot fail
        case, found = share(message)
        yield c16.constructed.between(case, 0, 0.85, found)
    case, found = share(128 * MiB)
    why = (
        f"A relay sends and receives, and has {RELAYED:g} Gbit/s each way: no message gets more on"
        " 4 nodes."
    )
    yield c16.between(case, 0.9, 1, found, why=why)


MODEL_MESSAGES = [4 * MiB, 16 * MiB, 64 * MiB, 256 * MiB]


def model_rows(simulator, quick):
    return rows_of(
        simulator,
        MODEL,
        MODEL_MESSAGES[:1] if quick else MODEL_MESSAGES,
        powers(32 * KiB, 16 * MiB),
    )


def closed_form(message, block):
    """Seconds: T(b) = (M/b + l - 1) (alpha + b/B), where M/b need not be whole."""
    return (message / block + LEVELS - 1) * (ALPHA + block / RATE)


def draw_model(rows_):
    figure, axes = style.figure(1, 1)
    panel = axes[0][0]
    for index, message in enumerate(reversed(MODEL_MESSAGES)):
        found = data.select(rows_, message_bytes=message)
        if not found:
            continue
        style.line(
            panel,
            [int(row["block_bytes"]) for row in found],
            [gbits(row, "offload_us") for row in found],
            index,
            style.bytes_text(message),
        )
        optimum = math.sqrt(message * ALPHA * RATE / (LEVELS - 1))
        panel.plot(
            [optimum],
            [message * 8 / closed_form(message, optimum) / 1e9],
            marker="*",
            markersize=11,
            color=style.LINES[index][0],
            markeredgecolor="black",
            linestyle="none",
        )
    panel.plot(
        [],
        [],
        marker="*",
        markersize=11,
        color="white",
        markeredgecolor="black",
        linestyle="none",
        label="closed form's best",
    )
    style.log_axis(panel.xaxis, powers(32 * KiB, 16 * MiB)[::2], style.bytes_text)
    panel.set_xlabel("block size")
    panel.set_ylabel("bandwidth, Gbit/s")
    panel.set_ylim(0, 41)
    style.legend_below(figure, panel)
    return figure


def model_claims(rows_):
    c15 = Statement(
        "C15",
        (
            "a closed form for figure 6: best block size sqrt(M alpha B / (l - 1)), T(b) = (M/b + l"
            " - 1)(alpha + b/B), n = 4"
        ),
        OURS,
        CONSTRUCTION,
    )
    for message, expected in zip(MODEL_MESSAGES, (512 * KiB, MiB, 2 * MiB, 4 * MiB)):
        formula = math.sqrt(message * ALPHA * RATE / (LEVELS - 1))
        yield c15.same(
            (
                f"{style.bytes_text(message)}: best power of two (the form's best is"
                f" {formula / 1e3:.0f} kB)"
            ),
            style.bytes_text(expected),
            style.bytes_text(int(best(rows_, message, "offload_us")["block_bytes"])),
        )
    worst = max(
        abs(
            float(row["offload_us"])
            * 1e-6
            / closed_form(int(row["message_bytes"]), int(row["block_bytes"]))
            - 1
        )
        for row in rows_
    )
    yield c15.holds(
        f"the time of all {len(rows_)} cases beside T(b)",
        "within 1 %",
        f"{100 * worst:.2g} % off at most",
        worst < 0.01,
    )


FIGURES = [
    Figure(
        "block-size",
        "fractus",
        (
            "RDMC's figure 6: bandwidth on 4 nodes against block size, for messages of 16 KiB to"
            " 128 MiB; binomial pipeline. Preposted runs have none of RDMC's costs per message"
            " (`host.message_start`, `message_setup`), so CPU-driven ones are shown with and"
            " without; preposted ones without and with arming and detection."
        ),
        rows,
        ("message_bytes", "block_bytes"),
        draw,
        None,
        claims,
    ),
    Figure(
        "block-size-model",
        "stampede, links and 10 us latency alone",
        (
            "The same with a constant cost of alpha = 20 us per block (10 us for the block's way,"
            " 10 us for its credit's) and 40 Gbit/s: points of the model, and as stars the closed"
            " form's best size and bandwidth."
        ),
        model_rows,
        ("message_bytes", "block_bytes"),
        draw_model,
        None,
        model_claims,
    ),
]
