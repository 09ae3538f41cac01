# SPDX-License-Identifier: Apache-2.0
"""Where a node's time goes: Table 1 of “Pushing Bytes”, figure 4 of the earlier version; and step
by step, figure 5 of both."""

import dataclasses
import re
import statistics

from . import data, style, words
from .claims import EARLIER, PUSHING, Statement
from .figure import MESSAGE_COSTS, Figure
from .simulator import MiB, Plan, Profile, Run, host_entry, host_value

NODES, BLOCKS, FARTHEST = 4, 256, 3
PARTS = (
    ("remote_setup", "remote set-up", 11),
    ("remote_transfers", "remote block transfers", 461),
    ("local_setup", "local set-up", 4),
    ("transfers", "block transfers", 60944),
    ("waiting", "waiting", 449),
    ("copy", "copy", 215),
)
TOTAL = 62084
STALL_US = 100  # 5.2.1: roughly, on the relayer, near the end
QUIET, STALLED = "the profile", "the profile, and the stall"
REACTION = ("completion", "credit")  # of a host, fitted to the table
FITTED = (
    "apt",
    "fractus",
    "ndr400",
    "sierra",
    "stampede",
)  # the profiles that have this fit, and describe it in its source
REACTIONS = ("0s", "185ns", "400ns")
BOTH_WAYS = Profile("stampede")
# Without a limit both ways, at the rate at which the table's blocks went: 1 MiB in 239.0 us, 1 us
# of which is the profile's latency.
EACH_WAY = Profile("stampede").but(network__host_rate="35.25Gbit/s", network__duplex="2TB/s")


def reacting(profile, time):
    return profile.but(host__completion=time, host__credit=time)


PROFILES = {
    QUIET: BOTH_WAYS,
    **{f"both ways, {time}": reacting(BOTH_WAYS, time) for time in REACTIONS},
    **{f"35.25 Gbit/s each way, {time}": reacting(EACH_WAY, time) for time in REACTIONS},
}
WAITED_BLOCKS = BLOCKS - 1  # the first one counts as remote
PAPER_WAIT_US = (449 - STALL_US) / WAITED_BLOCKS
FLAGS = ("--causes", "--copy-first-block")  # as RDMC's hosts do
PLAN = Plan(NODES, BLOCKS * MiB, ready="window=1", send_window="1")
# When the relayer's host stands still: over one block's time, when some 240 blocks have come.
STALL_MOMENTS_US = range(57300, 57540, 20)


def stalled(at_us):
    flags = (*FLAGS, "--delay", f"node={FARTHEST},at={at_us}us,for={STALL_US}us")
    return Run(PLAN, BOTH_WAYS, wait="polling", flags=flags)


def worst_stall(simulator):
    """Of the moments the one that makes the transfer longest, and its result."""
    results = simulator.simulate([stalled(at) for at in STALL_MOMENTS_US])
    return max(zip(STALL_MOMENTS_US, results), key=lambda it: it[1].cpu.completion)


def rows(simulator, quick):
    results = simulator.simulate(
        [Run(PLAN, profile, wait="polling", flags=FLAGS) for profile in PROFILES.values()]
    )
    results.append(worst_stall(simulator)[1])
    rows_ = []
    for case, result in zip((*PROFILES, STALLED), results):
        for side, fared in (("CPU-driven", result.cpu), ("preposted", result.offload)):
            for node in fared.json["time_by_cause"]:
                parts = {
                    f"{key}_us": data.microseconds(round(node[f"{key}_seconds"] * 1e12))
                    for key, _, _ in PARTS
                }
                rows_.append(
                    {
                        "clock": "modelled",
                        "profile": "stampede",
                        "case": case,
                        "executor": side,
                        "node": node["node"],
                        **parts,
                        "completion_us": data.microseconds(round(node["end_seconds"] * 1e12)),
                    }
                )
    return rows_


def found(rows_, case, side="CPU-driven", node=FARTHEST):
    return data.one(rows_, case=case, executor=side, node=node)


SHOWN = {
    "CPU-driven": (QUIET, "CPU-driven"),
    "CPU-driven, and the stall": (STALLED, "CPU-driven"),
    "preposted": (QUIET, "preposted"),
}


def table(rows_):
    columns = [found(rows_, *case) for case in SHOWN.values()]
    cells = [
        [label, f"{paper:,}", *(f"{float(row[f'{key}_us']):,.1f}" for row in columns)]
        for key, label, paper in PARTS
    ]
    cells.append(
        ["total", f"{TOTAL:,}", *(f"{float(row['completion_us']):,.1f}" for row in columns)]
    )
    return [f"node {FARTHEST}, us", "paper", *SHOWN], cells


def draw(rows_):
    figure, axes = style.figure(1, 2, height=2.6, width=7.6)
    bars = [("paper", {key: paper for key, _, paper in PARTS})]
    for name, case in SHOWN.items():
        row = found(rows_, *case)
        bars.append((name, {key: float(row[f"{key}_us"]) for key, _, _ in PARTS}))
    colours = [style.SKY, style.BLUE, style.YELLOW, style.GREEN, style.RED, style.PINK]
    for panel, keys, title in (
        (axes[0][0], [key for key, _, _ in PARTS], "all"),
        (
            axes[0][1],
            [key for key, _, _ in PARTS if key != "transfers"],
            "without the block transfers",
        ),
    ):
        for place, (name, parts) in enumerate(reversed(bars)):
            left = 0
            for (key, label, _), colour in zip(PARTS, colours):
                if key in keys:
                    panel.barh(
                        place,
                        parts[key],
                        left=left,
                        color=colour,
                        edgecolor="white",
                        linewidth=0.5,
                        label=label if place == 0 else None,
                    )
                    left += parts[key]
        panel.set_yticks(range(len(bars)), [name for name, _ in reversed(bars)])
        panel.grid(axis="y", visible=False)
        panel.set_title(title)
        panel.set_xlabel("us")
    style.legend_below(figure, axes[0][0], columns=6)
    return figure


def block_wait(rows_, links, time):
    """What a block of the farthest node waits, us."""
    return float(found(rows_, f"{links}, {time}")["waiting_us"]) / WAITED_BLOCKS


def told_waits(name, key):
    """What the source of a profile's number says that a block waits, us: with 0,
    with the number and with 400 ns."""
    says = re.search(
        r"waits ([\d.]+) us with 0 here, ([\d.]+) us with 185 ns .*, and ([\d.]+) us with 400 ns",
        host_entry(name, key)["assumed"],
    )
    return ", ".join(says.groups()) if says else "nothing"


def claims(rows_):
    c11 = Statement(
        "C11",
        (
            "Table 1: 256 MB, n = 4, Stampede, the farthest node: 11, 461, 4, 60944, 449, 215, in"
            " all 62084 us"
        ),
        f"{PUSHING}, Table 1; {EARLIER}, figure 4",
    )
    row = found(rows_, QUIET)

    def value(key, of=row):
        return float(of[f"{key}_us"])

    yield c11.near(
        "remote block transfers: two blocks, one way at a time, at unicast's 40 Gbit/s",
        461,
        value("remote_transfers"),
        0.05,
        "us",
        why=(
            "In the paper these two blocks took 230.5 us each, hardly less than those of nodes that"
            " send and receive."
        ),
    )
    yield c11.calibrated.near(
        "block transfers, 255 x 239.0 us (`network.duplex` is fitted to them)",
        60944,
        value("transfers"),
        0.015,
        "us",
    )
    yield c11.calibrated.near(
        "set-up, remote (`host.message_start` and `message_setup` are from this table)",
        11,
        value("remote_setup"),
        0.1,
        "us",
        why=(
            "The profile's two numbers make up the 11 us; what posts, doorbells and NICs take until"
            " the first block is there comes on top."
        ),
    )
    yield c11.calibrated.near(
        "set-up, local (`host.message_setup` is from this table)", 4, value("local_setup"), 0, "us"
    )
    each = f"35.25 Gbit/s each way, {REACTIONS[1]}"
    yield c11.calibrated.near(
        (
            "waiting without the stall, blocks at 35.25 Gbit/s each way (`host.completion` and"
            " `credit` are fitted to it)"
        ),
        449 - STALL_US,
        value("waiting", found(rows_, each)),
        0.01,
        "us",
    )
    yield c11.calibrated.near(
        "the same with the profile's limit both ways",
        449 - STALL_US,
        value("waiting"),
        0.1,
        "us",
        why=(
            "The fit was made without that limit. With it the two blocks of an exchange are not"
            " quite in step, and a part of a host's reaction is hidden behind the other block."
            " Which the table had it does not say."
        ),
    )
    told = {told_waits(name, key) for name in FITTED for key in REACTION}
    yield c11.constructed.same(
        (
            f"waiting of a block, us, with completion and credit of {', '.join(REACTIONS)}, as"
            f" their sources in {len(FITTED)} profiles say"
        ),
        "; ".join(sorted(told)),
        ", ".join(f"{block_wait(rows_, '35.25 Gbit/s each way', time):.2f}" for time in REACTIONS),
    )
    yield c11.calibrated.near(
        "copy, of the first block (`host.copy_rate` is fitted to it)",
        215,
        value("copy"),
        0.01,
        "us",
    )
    whole = found(rows_, STALLED)
    yield c11.calibrated.near(
        "total, with the stall", TOTAL, float(whole["completion_us"]), 0.01, "us"
    )
    overhead = (
        float(whole["completion_us"]) - value("transfers", whole) - value("remote_transfers", whole)
    ) / float(whole["completion_us"])
    yield c11.calibrated.between(
        f"all but transfers, with the stall: “around 1%” ({PUSHING}, 5.2.1)", 0.009, 0.011, overhead
    )
    sums = max(
        abs(sum(float(row_[f"{key}_us"]) for key, _, _ in PARTS) - float(row_["completion_us"]))
        for row_ in rows_
    )
    yield c11.constructed.holds(
        f"all {len(rows_)} nodes: the parts add up to the total",
        "exactly",
        f"{sums:.6f} us off at most",
        sums < 1e-5,
    )
    c24 = Statement(
        "C24",
        "memcpy goes at 30 Gb/s beside RDMA's 100: copying a first block of 1 MB",
        f"{PUSHING}, 2, 5.3 and Table 1",
    )
    # 280 us is 1 MiB at the paper's 30 Gb/s, and stands in no paper; 215 us is Table 1's, to which
    # the rate was fitted.
    for says, name, expected in (
        (c24.constructed, "fractus", 280),
        (c24.calibrated, "stampede", 215),
    ):
        rate = host_value(name, "copy_rate")
        copied_us = MiB * 8 / float(rate.removesuffix("Gbit/s")) / 1e3
        yield says.near(
            f"1 MiB at {rate}, copy_rate of profile {name}", expected, copied_us, 0.01, "us"
        )


def remarks(rows_):
    waits = {
        links: [block_wait(rows_, links, time) for time in REACTIONS]
        for links in ("35.25 Gbit/s each way", "both ways")
    }
    each, both = waits.values()
    return (
        "The table adds up in the paper as it does here: two blocks' time until the farthest node"
        " has its first block, 255 more until it has all. What is left is set-up, for which the"
        " profile has the paper's numbers, the copy of the first block, which `--copy-first-block`"
        " makes when all is forwarded, as RDMC's hosts do (ours need none), and waiting. The"
        " table's run contains the stall of figure 5 (below), on the very node that it reports."
        f" Without it a block waits (449 - {STALL_US}) / {WAITED_BLOCKS} = {PAPER_WAIT_US:.2f} us."
        " With blocks that go at 35.25 Gbit/s each way the model's NICs, polls and posts take"
        f" {each[0]:.2f} us of that; with the host's"
        f" {host_value('stampede', 'completion').replace('ns', ' ns')} for a block and as much for"
        f" its credit it is {each[1]:.2f} us, and with 400 ns, which takes the stall for a cost of"
        f" each block, {each[2]:.2f} us. With a limit both ways the same three are {both[0]:.2f},"
        f" {both[1]:.2f} and {both[2]:.2f} us. So neither value is known to be right: these are"
        " fits, not measurements, and what hangs on the host's costs by less than a factor of two"
        " should not be believed. [Below](#offload-map) both are shown."
    )


# Figure 5.
SENDER, RELAYER = "sender", "relayer"
FILLING = 9  # steps in which the pipeline fills
STEPS = {SENDER: (0, "send"), RELAYER: (FARTHEST, "recv")}


def step_rows(simulator, quick):
    at, _ = worst_stall(simulator)
    blocks = simulator.trace(dataclasses.replace(stalled(at), executor="cpu"))
    rows_ = []
    for name, (node, cat) in STEPS.items():
        before = None
        for it in sorted(
            (it for it in blocks if (it["node"], it["cat"]) == (node, cat)),
            key=lambda it: it["started_ns"],
        ):
            rows_.append(
                {
                    "clock": "modelled",
                    "profile": "stampede",
                    "stall_at_us": at,
                    "node": name,
                    "step": it["round"],
                    "transfer_us": data.microseconds(
                        (it["completed_ns"] - it["started_ns"]) * 1000
                    ),
                    "wait_us": data.microseconds(
                        (it["started_ns"] - (before or it["started_ns"])) * 1000
                    ),
                }
            )
            before = it["completed_ns"]
    return rows_


def of_steps(rows_, name, column):
    return [float(row[column]) for row in data.select(rows_, node=name)]


def draw_steps(rows_):
    figure, axes = style.figure(2, 1, height=1.9, sharex=True, sharey=True)
    for panel, name in zip((line[0] for line in axes), STEPS):
        found_ = data.select(rows_, node=name)
        steps = [int(row["step"]) for row in found_]
        transfers, waits = of_steps(rows_, name, "transfer_us"), of_steps(rows_, name, "wait_us")
        panel.bar(steps, transfers, width=1, color=style.SKY, label="a block's transfer")
        panel.bar(
            steps, waits, width=1, bottom=transfers, color=style.RED, label="waiting before it"
        )
        panel.set_title({SENDER: "root sender", RELAYER: f"relayer, node {FARTHEST}"}[name])
        panel.set_ylabel("us")
        panel.grid(axis="x", visible=False)
    axes[1][0].set_xlabel("step")
    style.legend_below(figure, axes[0][0])
    return figure


# C12: what the relayer's stall costs the sender, at every moment.
def step_waits(simulator, at):
    """Of the sender and the relayer: by how much each step begins later than in the median, us; the
    first ones, where the pipeline fills, left out."""
    waits = {}
    blocks = simulator.trace(dataclasses.replace(stalled(at), executor="cpu"))
    for name, (node, cat) in STEPS.items():
        its = sorted(
            (it for it in blocks if (it["node"], it["cat"]) == (node, cat)),
            key=lambda it: it["started_ns"],
        )
        found = {
            after["round"]: (after["started_ns"] - before["completed_ns"]) / 1e3
            for before, after in zip(its, its[1:])
        }
        median = statistics.median(found.values())
        waits[name] = {step: wait - median for step, wait in found.items() if step > FILLING}
    return waits


def stall_rows(simulator, quick):
    moments = STALL_MOMENTS_US[:2] if quick else STALL_MOMENTS_US
    quiet, *results = simulator.simulate(
        [Run(PLAN, BOTH_WAYS, wait="polling", flags=FLAGS), *map(stalled, moments)]
    )
    rows_ = []
    for at, result in zip(moments, results):
        waits = step_waits(simulator, at)
        step = max(waits[RELAYER], key=waits[RELAYER].get)
        rows_.append(
            {
                "clock": "modelled",
                "profile": "stampede",
                "stall_at_us": at,
                "relayer_step": step,
                "relayer_later_us": f"{waits[RELAYER][step]:.3f}",
                "sender_later_us": f"{waits[SENDER].get(step + 1, 0):.3f}",
                "cpu_longer_us": data.signed_microseconds(
                    result.cpu.completion - quiet.cpu.completion
                ),
                "offload_longer_us": data.signed_microseconds(
                    result.offload.completion - quiet.offload.completion
                ),
            }
        )
    return rows_


def costs(row):
    """Whether the relayer's stall makes any of its steps later."""
    return float(row["relayer_later_us"]) >= 1


def stall_table(rows_):
    columns = ("relayer_later_us", "sender_later_us", "cpu_longer_us")
    cells = [
        [
            row["stall_at_us"],
            row["relayer_step"] if costs(row) else "none",
            *(f"{float(row[key]):.1f}" for key in columns),
        ]
        for row in rows_
    ]
    return [
        "the relayer stops at, us",
        "its longest wait is before step",
        "beyond its median, us",
        "the sender's next step, us",
        "all over later, us",
    ], cells


def stall_claims(rows_):
    c12 = Statement(
        "C12",
        (
            "a delay of roughly 100 us of the relayer “forced the sender to delay on the following"
            " step when it discovered that the target for its next block wasn't ready yet”; offload"
            " “would mitigate” this"
        ),
        f"{PUSHING}, 5.2.1",
    )
    later = [float(row["sender_later_us"]) for row in rows_]
    within = [it for it in later if 90 <= it <= 110]
    yield c12.holds(  # roughly: a tenth; the text names no moment, so all count
        (
            f"the relayer stops for {STALL_US} us at {len(rows_)} moments over a block's time: the"
            " sender's following step is later by"
        ),
        "90 to 110 us each time",
        f"{words.span(later, 1)} us; {len(within)} of {len(later)} within",
        len(within) == len(later),
        (
            "A stall costs what is left of it when the host has something to do, which is once in"
            f" a block's 239 us: {sum(not costs(row) for row in rows_)} of the {len(rows_)} stalls"
            " are over by then. What a step of the relayer does lose, the sender's following one"
            " loses as well."
        ),
    )
    preposted = max(abs(float(row["offload_longer_us"])) for row in rows_)
    yield c12.constructed.near("the same, preposted: all over later by", 0, preposted, 0, "us")


def step_claims(rows_):
    figure5 = Statement(
        "figure 5",
        (
            "the relayer spends hardly any time waiting, “while the sender transmits each block"
            " slightly faster (since it isn't receiving at the same time) and then must wait for"
            " the other nodes to catch up”; near the end both wait anomalously long, as a delay of"
            " roughly 100 us on the relayer “forced the sender to delay on the following step”"
        ),
        f"{PUSHING}, figure 5 and 5.2.1; {EARLIER}, figure 5 and 4.2",
    )
    transfer, wait = (
        {name: statistics.median(of_steps(rows_, name, column)) for name in STEPS}
        for column in ("transfer_us", "wait_us")
    )
    yield figure5.calibrated.between(
        (
            "relayer: median wait / median transfer (its waits are Table 1's, to which hosts are"
            " fitted)"
        ),
        0,
        0.02,
        wait[RELAYER] / transfer[RELAYER],
    )
    yield figure5.calibrated.between(
        "sender: median transfer / the relayer's (the limit both ways is Table 1's rate)",
        0.8,
        0.99,
        transfer[SENDER] / transfer[RELAYER],
    )
    yield figure5.constructed.near(
        "sender: median transfer and wait beside the relayer's transfer and wait",
        1,
        (transfer[SENDER] + wait[SENDER]) / (transfer[RELAYER] + wait[RELAYER]),
        0.01,
    )
    last = {
        name: max(
            (row for row in data.select(rows_, node=name) if int(row["step"]) > FILLING),
            key=lambda row: float(row["wait_us"]),
        )
        for name in STEPS
    }
    beyond = {name: float(last[name]["wait_us"]) - wait[name] for name in STEPS}
    yield figure5.constructed.near(
        "relayer: its longest wait beyond the median", STALL_US, beyond[RELAYER], 0.1, "us"
    )
    yield figure5.constructed.near(
        "sender: its longest wait beyond the median, at the moment that makes the transfer longest",
        STALL_US,
        beyond[SENDER],
        0.1,
        "us",
    )
    # With both windows at 1 and 4 nodes the relayer's partner of the next step is the root,
    # whatever the hosts take.
    yield figure5.constructed.same(
        "sender: the step of its longest wait, the relayer's being step " + last[RELAYER]["step"],
        int(last[RELAYER]["step"]) + 1,
        last[SENDER]["step"],
    )


FIGURES = [
    Figure(
        "breakdown",
        "stampede",
        (
            "Table 1 of “Pushing Bytes”, the earlier version's figure 4: where the time of the"
            f" farthest node goes, {NODES} nodes, {BLOCKS} blocks of 1 MiB, binomial pipeline,"
            " ready window 1, hosts poll, and copy the first block in the end as RDMC's do"
            " (`prepost simulate --causes --copy-first-block`). Remote is what comes before the"
            f" node's first block. {MESSAGE_COSTS}"
        ),
        rows,
        ("case", "executor", "node"),
        draw,
        table,
        claims,
        remarks,
    ),
    Figure(
        "steps",
        "stampede",
        (
            "Figure 5 of both versions, as its caption and the text describe it (its plotted"
            " values are not known to us): the run of Table 1 step by step at the root sender and"
            " at the relayer that the table reports, CPU-driven. The relayer's host stands still"
            f" for {STALL_US} us, at that of {len(STALL_MOMENTS_US)} moments over a block's time,"
            " when some 240 blocks have come, which makes the transfer longest. A wait is what"
            " goes by between the end of a block and the beginning of the next one."
        ),
        step_rows,
        ("node", "step"),
        draw_steps,
        None,
        step_claims,
    ),
    Figure(
        "stall",
        "stampede",
        (
            f"The same run with the stall at each of the {len(STALL_MOMENTS_US)} moments, which are"
            f" {STALL_MOMENTS_US.step} us apart: by how much the step of the relayer that waits"
            " longest, and the sender's step after it, begin later than in the median."
        ),
        stall_rows,
        ("stall_at_us",),
        None,
        stall_table,
        stall_claims,
    ),
]
