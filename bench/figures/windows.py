# SPDX-License-Identifier: Apache-2.0
"""Windows: what more credits and more sends at a time cost,
and what they buy when one host stands still."""

from . import data, style
from .claims import CONSTRUCTION, OURS, OWN, Statement
from .figure import Figure
from .simulator import MiB, Plan, Run, no_costs
from .schedules import BLOCK_PS, pipeline_rounds

NODES = (16, 13, 24)
BLOCKS = 64
READY = ("window=1", "window=2", "window=4", "window=8", "channel")
SENDS = ("1", "2", "4", "none")
DELAY_BLOCKS = 4
IDEAL = no_costs("fractus")


def rows(simulator, quick):
    cases = [
        (nodes, ready, sends)
        for nodes in (NODES[:1] if quick else NODES)
        for ready in (READY[:2] if quick else READY)
        for sends in (SENDS[:2] if quick else SENDS)
    ]
    middle = BLOCK_PS * BLOCKS // 2
    length = BLOCK_PS * DELAY_BLOCKS
    delay = f"node=1,at={data.microseconds(middle)}us,for={data.microseconds(length)}us"
    plans = [
        Plan(nodes, BLOCKS * MiB, ready=ready, send_window=sends) for nodes, ready, sends in cases
    ]
    runs = [
        run
        for plan in plans
        for run in (Run(plan, IDEAL), Run(plan, IDEAL, "cpu", flags=("--delay", delay)))
    ]
    results = iter(simulator.simulate(runs))
    rows_ = []
    for nodes, ready, sends in cases:
        plain, delayed = next(results), next(results)
        rows_.append(
            {
                "clock": "modelled",
                "profile": "fractus, its links alone",
                "nodes": nodes,
                "ready": ready,
                "send_window": sends,
                "rounds": pipeline_rounds(nodes, BLOCKS),
                "offload_block_times": data.ratio(plain.offload.completion / BLOCK_PS),
                "cpu_block_times": data.ratio(plain.cpu.completion / BLOCK_PS),
                "cpu_delayed_block_times": data.ratio(delayed.cpu.completion / BLOCK_PS),
            }
        )
    return rows_


def draw(rows_):
    sizes = data.values(rows_, "nodes")
    figure, axes = style.figure(2, len(sizes), height=2.3, sharey="row", sharex=True)
    for column, nodes in enumerate(sizes):
        for index, sends in enumerate(data.values(rows_, "send_window")):
            found = data.select(rows_, nodes=nodes, send_window=sends)
            x = range(len(found))
            for side, dashes, label in (
                ("cpu", "-", f"send window {sends}"),
                ("cpu_delayed", "--", None),
            ):
                style.line(
                    axes[0][column],
                    x,
                    [float(row[f"{side}_block_times"]) / int(row["rounds"]) for row in found],
                    index,
                    label,
                    linestyle=dashes,
                    markerfacecolor=None if label else "white",
                )
            style.line(
                axes[1][column],
                x,
                [
                    (float(row["cpu_delayed_block_times"]) - float(row["cpu_block_times"]))
                    / DELAY_BLOCKS
                    for row in found
                ],
                index,
                f"send window {sends}",
            )
        axes[1][column].set_xticks(
            range(len(found)),
            [row["ready"].replace("window=", "").replace("channel", "all") for row in found],
        )
        axes[0][column].set_title(f"{nodes} nodes")
        axes[1][column].set_xlabel("ready window W")
    axes[0][0].set_ylabel("time / rounds, block times")
    axes[0][0].set_ylim(0.9)
    axes[1][0].set_ylabel("share of the delay\nthat reaches the end")
    axes[0][0].plot([], [], color="#888888", linestyle="--", label="with one delay")
    style.legend_below(figure, axes[0][0])
    return figure


def is_larger(row):
    return (row["ready"], row["send_window"]) != ("window=1", "1")


def later(row):
    return float(row["cpu_delayed_block_times"]) - float(row["cpu_block_times"])


def remarks(rows_):
    larger = [row for row in rows_ if is_larger(row)]
    slowest = max(float(row["cpu_block_times"]) / int(row["rounds"]) for row in larger)
    in_step = [row for row in larger if row["cpu_block_times"] == row["rounds"]]
    where = " and ".join(
        f"{nodes} nodes and a send window of {sends}"
        for nodes, sends in dict.fromkeys((row["nodes"], row["send_window"]) for row in in_step)
    )
    soaked = sum(later(row) < DELAY_BLOCKS for row in larger)
    no_later = sum(later(row) <= 0 for row in larger)
    return (
        "With both windows at 1 time is rounds x block time, and a delay costs its length. Most"
        " other settings let nodes run ahead; then two senders share a receiver's port, the order"
        " of the schedule is lost for good, and time without any delay is up to"
        f" {slowest:.2f} times the rounds. With {where} it is not lost before the delay comes. A"
        f" delay in such a run may cost up to {max(map(later, larger)) / DELAY_BLOCKS:.1f} times"
        f" its length, or nothing, or less: it changes who meets whom. Of {len(larger)} settings"
        f" {soaked} soak up some of it, and {no_later} of these are no later at all, but none makes"
        " up for what it costs by itself. So `auto` sets both to 1 for the pipeline."
    )


def claims(rows_):
    exact = Statement(
        "windows", "time = rounds x block time, with both windows at 1", OURS, CONSTRUCTION
    )
    for nodes in NODES:
        row = data.one(rows_, nodes=nodes, ready="window=1", send_window="1")
        for side, name in (("offload", "preposted"), ("cpu", "CPU-driven")):
            yield exact.near(
                f"n = {nodes}, {name}",
                int(row["rounds"]),
                float(row[f"{side}_block_times"]),
                0,
                "block times",
            )
        latest = int(row["rounds"]) + DELAY_BLOCKS
        yield exact.holds(
            f"n = {nodes}, CPU-driven, one delay of {DELAY_BLOCKS} block times",
            f"at most as much later: {latest} block times",
            f"{float(row['cpu_delayed_block_times']):g} block times",
            float(row["cpu_delayed_block_times"]) <= latest,
        )
    # RDMC lets nodes run ahead by one credit at a time, which is a window of 1 here;
    # larger ones are ours.
    slack = Statement(
        "windows",
        "with larger windows nodes run further ahead of others, which soaks up a delay",
        OURS,
        OWN,
    )
    larger = [row for row in rows_ if is_larger(row)]

    def beside_strict(row):
        strict = data.one(rows_, nodes=row["nodes"], ready="window=1", send_window="1")
        return float(row["cpu_delayed_block_times"]) / float(strict["cpu_delayed_block_times"])

    def setting(row):
        return f"n = {row['nodes']}, {row['ready']}, send window {row['send_window']}"

    case = f"one delay of {DELAY_BLOCKS} block times, {len(larger)} settings with a window above 1"
    stalled = [row for row in larger if later(row) >= DELAY_BLOCKS]
    worst = max(larger, key=later)
    yield slack.holds(
        f"{case}: beside the same without the delay",
        f"less than {DELAY_BLOCKS} block times later",
        f"less in all but {len(stalled)}; {later(worst):.1f} at most ({setting(worst)})",
        not stalled,
        (
            "A delay changes who meets whom from then on. Where nodes ran in step without it, it"
            " puts them out of step for good, and two senders share a port."
        ),
    )
    best = min(larger, key=beside_strict)
    faster = [row for row in larger if beside_strict(row) < 1]
    yield slack.holds(
        f"{case}: beside both windows at 1 with the same delay",
        "shorter in some",
        (
            f"shorter in {len(faster)}; {beside_strict(best):.3f} times as long at least"
            f" ({setting(best)})"
        ),
        bool(faster),
        (
            "Most of these settings are out of step without a delay, too: what they soak up is less"
            " than what that costs."
        ),
    )


FIGURES = [
    Figure(
        "windows",
        "fractus, its links alone",
        (
            f"Binomial pipeline, {BLOCKS} blocks: time beside the rounds, by ready window W"
            " (receives granted per node; all: the whole message) and send window, without (lines)"
            f" and with (dashed) one delay of {DELAY_BLOCKS} block times of node 1 in the middle;"
            " below, by what share of the delay the dashed line is later. CPU-driven hosts that"
            " take no time; preposted times are in the data."
        ),
        rows,
        ("nodes", "ready", "send_window"),
        draw,
        None,
        claims,
        remarks,
    ),
]
