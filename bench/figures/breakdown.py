# SPDX-License-Identifier: Apache-2.0
"""Where a node's time goes: Table 1 of “Pushing Bytes”, figure 4 of the earlier version."""

import re

from . import data, style
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
MEASURED_RATE = "35.25Gbit/s"  # what the table's blocks went at: 1 MiB in 239.0 us, 1 us of which is the profile's latency
RATES = {
    "the profile's 40 Gbit/s": Profile("stampede"),
    "35.25 Gbit/s, as measured": Profile("stampede").but(network__host_rate=MEASURED_RATE),
}
REACTION = ("completion", "credit")  # of a host, fitted to the table
NO_REACTION = "35.25 Gbit/s, completion and credit 0"
PROFILES = {**RATES, NO_REACTION: RATES["35.25 Gbit/s, as measured"].but(host__completion="0s", host__credit="0s")}
FITTED = ("apt", "fractus", "ndr400", "sierra", "stampede")  # the profiles that have this fit, and tell of it in its source
WAITED_BLOCKS = BLOCKS - 1  # the first one counts as remote
PAPER_WAIT_US = 449 / WAITED_BLOCKS


def rows(simulator, quick):
    cases = [
        (rate, Plan(NODES, blocks * MiB, ready="window=1", send_window="1"))
        for blocks in ((16,) if quick else (16, BLOCKS))
        for rate in PROFILES
    ]
    rows_ = []
    flags = ("--causes", "--copy-first-block")  # as RDMC's hosts do
    results = simulator.simulate([Run(plan, PROFILES[rate], wait="polling", flags=flags) for rate, plan in cases])
    for (rate, plan), result in zip(cases, results):
        for side, fared in (("CPU-driven", result.cpu), ("preposted", result.offload)):
            for node in fared.json["time_by_cause"]:
                parts = {f"{key}_us": data.microseconds(round(node[f"{key}_seconds"] * 1e12)) for key, _, _ in PARTS}
                rows_.append(
                    {
                        "clock": "modelled",
                        "profile": "stampede",
                        "rate": rate,
                        "blocks": plan.blocks,
                        "executor": side,
                        "node": node["node"],
                        **parts,
                        "completion_us": data.microseconds(round(node["end_seconds"] * 1e12)),
                    }
                )
    return rows_


def found(rows_, rate, side="CPU-driven", node=FARTHEST):
    return data.one(rows_, rate=rate, executor=side, node=node, blocks=BLOCKS)


def table(rows_):
    columns = [(f"{side}, {rate}", found(rows_, rate, side)) for rate in RATES for side in ("CPU-driven", "preposted")]
    cells = [[label, f"{paper:,}", *(f"{float(row[f'{key}_us']):,.1f}" for _, row in columns)] for key, label, paper in PARTS]
    cells.append(["total", f"{TOTAL:,}", *(f"{float(row['completion_us']):,.1f}" for _, row in columns)])
    return [f"node {FARTHEST}, us", "paper", *(name for name, _ in columns)], cells


def draw(rows_):
    figure, axes = style.figure(1, 2, height=2.6, width=7.6)
    measured = list(RATES)[1]
    bars = [("paper", {key: paper for key, _, paper in PARTS})]
    for side in ("CPU-driven", "preposted"):
        row = data.one(rows_, rate=measured, executor=side, node=FARTHEST, blocks=max(data.values(rows_, "blocks"), key=int))
        bars.append((side, {key: float(row[f"{key}_us"]) for key, _, _ in PARTS}))
    colours = [style.SKY, style.BLUE, style.YELLOW, style.GREEN, style.RED, style.PINK]
    for panel, keys, title in (
        (axes[0][0], [key for key, _, _ in PARTS], "all"),
        (axes[0][1], [key for key, _, _ in PARTS if key != "transfers"], "without the block transfers"),
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


def block_wait(rows_, rate):
    """What a block of the farthest node waits, us."""
    return float(found(rows_, rate)["waiting_us"]) / WAITED_BLOCKS


def told_waits(name, key):
    """What the source of a profile's number says that a block waits: (with 0, with the number)."""
    says = re.search(
        r"a run of it .* waits ([\d.]+ us) .* 400 ns for block and credit ([\d.]+ us)", host_entry(name, key)["assumed"]
    )
    return says.groups() if says else ("nothing", "nothing")


def claims(rows_):
    profile, measured = RATES
    c11 = Statement(
        "C11",
        "Table 1: 256 MB, n = 4, Stampede, the farthest node: 11, 461, 4, 60944, 449, 215, in all 62084 us",
        f"{PUSHING}, Table 1; {EARLIER}, figure 4",
    )
    row = found(rows_, measured)

    def value(key):
        return float(row[f"{key}_us"])

    yield c11.near(
        "the structure: 2 remote hops and 255 blocks here, of 239.0 us, are remote block transfers",
        2 * 239.0,
        value("remote_transfers"),
        0.01,
        "us",
    )
    yield c11.near("remote block transfers", 461, value("remote_transfers"), 0.05, "us")
    yield c11.near(
        "block transfers, 255 x 239.0 us; ours are on their way for 1 us longer", 60944, value("transfers"), 0.015, "us"
    )
    yield c11.near("set-up, remote (the profile's numbers are from this table)", 11, value("remote_setup"), 0.4, "us")
    yield c11.near("set-up, local (the profile's number is from this table)", 4, value("local_setup"), 0, "us")
    yield c11.near(
        "waiting (the profile's completion and credit are fitted to it)",
        449,
        value("waiting"),
        0.1,
        "us",
    )
    told = {told_waits(name, key) for name in FITTED for key in REACTION}
    yield c11.same(
        f"waiting of a block, with completion and credit 0 and 400 ns, as their sources in {len(FITTED)} profiles say",
        "; ".join(" and ".join(pair) for pair in sorted(told)),
        f"{block_wait(rows_, NO_REACTION):.2f} us and {block_wait(rows_, measured):.2f} us",
    )
    yield c11.near("copy, of the first block, when all else is done", 215, value("copy"), 0.01, "us")
    yield c11.near("total", TOTAL, float(row["completion_us"]), 0.015, "us")
    yield c11.near(
        "total with the profile's 40 Gbit/s, of which unicast got “up to 40”",
        TOTAL,
        float(found(rows_, profile)["completion_us"]),
        0.01,
        "us",
        why="In the table blocks go at 35.1 Gbit/s, in a quiet model at 40.",
    )
    overhead = (float(row["completion_us"]) - value("transfers") - value("remote_transfers")) / float(row["completion_us"])
    yield c11.between("all but transfers: “around 1 %” (0.0109)", 0.005, 0.015, overhead)
    sums = max(abs(sum(float(row_[f"{key}_us"]) for key, _, _ in PARTS) - float(row_["completion_us"])) for row_ in rows_)
    yield c11.holds(
        f"all {len(rows_)} nodes: the parts add up to the total", "exactly", f"{sums:.6f} us off at most", sums < 1e-5
    )
    c24 = Statement("C24", "memcpy goes at 30 Gb/s beside RDMA's 100: copying a first block of 1 MB", f"{PUSHING}, 2 and Table 1")
    for name, expected in (("fractus", 280), ("stampede", 215)):
        rate = host_value(name, "copy_rate")
        copied_us = MiB * 8 / float(rate.removesuffix("Gbit/s")) / 1e3
        yield c24.near(f"1 MiB at {rate}, copy_rate of profile {name}", expected, copied_us, 0.01, "us")


def remarks(rows_):
    _, measured = RATES
    bare, fitted = block_wait(rows_, NO_REACTION), block_wait(rows_, measured)
    return (
        "The table adds up in the paper as it does here: two blocks' time until the farthest node has its first block, 255 more until it"
        " has all. What is left is set-up, for which the profile has the paper's numbers, the copy of the first block, which"
        " `--copy-first-block` makes when all is forwarded, as RDMC's hosts do (ours need none), and waiting. Of the paper's"
        f" {PAPER_WAIT_US:.2f} us per block the model's NICs, looks and posts take {bare:.2f} us by themselves; with the host's"
        f" {host_value('stampede', 'completion')} for a block and as much for its credit it is {fitted:.2f} us. These 400 ns are a fit to"
        " this table, not a measurement. What hangs on the host's costs by less than a factor of two should not be believed."
    )


FIGURES = [
    Figure(
        "breakdown",
        "stampede; its rate set to 35.25 Gbit/s",
        f"Table 1 of “Pushing Bytes”, the earlier version's figure 4: where the time of the farthest node goes, {NODES} nodes,"
        f" {BLOCKS} blocks of 1 MiB, binomial pipeline, ready window 1, hosts poll, and copy the first block in the end as RDMC's do"
        " (`prepost simulate --causes --copy-first-block`). Remote is what"
        f" comes before the node's first block. {MESSAGE_COSTS}",
        rows,
        ("rate", "blocks", "executor", "node"),
        draw,
        table,
        claims,
        remarks,
    ),
]
