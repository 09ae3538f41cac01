# SPDX-License-Identifier: Apache-2.0
"""Racks: how often a block crosses between them, and what an oversubscribed uplink makes of it."""

import json
import random

from . import data, style, words
from .claims import EARLIER, OURS, OWN, PUSHING, Statement
from .figure import Figure
from .simulator import MiB, Plan, Profile, Run

RACKS, HOSTS, BLOCKS = 4, 4, 64
NODES = RACKS * HOSTS
ORDERS = 100


def topology(oversubscription=1, racks=RACKS):
    hosts = NODES // racks
    return json.dumps(
        {
            "format": "prepost.topology",
            "version": "1.0",
            "name": f"{racks} racks of {hosts}, {oversubscription}:1",
            "host_rate": "54.5Gbit/s",
            "up_rate": f"{54.5 * hosts / oversubscription:g}Gbit/s",
            "rack_latency": "1us",
            "core_latency": "1.4us",
            "racks": [{"name": name, "hosts": f"{name}[1-{hosts}]"} for name in "abcd"[:racks]],
        }
    )


def random_order(seed):
    others = list(range(1, NODES))
    random.Random(seed).shuffle(others)
    return ",".join(map(str, [0, *others]))


CONTIGUOUS = (
    "binomial_pipeline",
    "chain",
    "binomial_tree",
    "sequential",
    "rack_chain",
    "rack_hybrid",
    "rack_circulant",
)


TWO_RACKS = "2 racks, random"


def plans(quick):
    """(how it is placed, plan)"""
    yield from (
        ("racks together", Plan(NODES, BLOCKS * MiB, algorithm=algorithm, topology=topology()))
        for algorithm in CONTIGUOUS
    )
    for algorithm in ("binomial_pipeline", "chain"):
        for seed in range(1, 3 if quick else ORDERS + 1):
            for placement, racks in (("random", RACKS), (TWO_RACKS, 2)):
                yield (
                    f"{placement} {seed}",
                    Plan(
                        NODES,
                        BLOCKS * MiB,
                        algorithm=algorithm,
                        topology=topology(racks=racks),
                        order=random_order(seed),
                    ),
                )


def count_rows(simulator, quick):
    cases = list(plans(quick))
    return [
        {
            "clock": "none",
            "algorithm": plan.algorithm,
            "placement": placement,
            "crossings_per_block": data.ratio(stats["topology"]["crossings"]["mean"]),
            "busiest_uplink_blocks_per_block": data.ratio(
                max(rack["up"]["blocks"] for rack in stats["topology"]["racks"]) / BLOCKS
            ),
        }
        for (placement, plan), stats in zip(cases, simulator.stats([plan for _, plan in cases]))
    ]


def of_random(rows, algorithm, column, placement="random"):
    """Of each numbering."""
    return [
        float(row[column])
        for row in rows
        if row["algorithm"] == algorithm and row["placement"].startswith(placement)
    ]


def mean(*which):
    found = of_random(*which)
    return sum(found) / len(found)


def count_table(rows):
    cells = [
        [
            row["algorithm"],
            row["placement"],
            row["crossings_per_block"],
            f"{float(row['busiest_uplink_blocks_per_block']):.3g}",
        ]
        for row in data.select(rows, placement="racks together")
    ]
    cells += [
        [
            algorithm,
            f"random, mean of {ORDERS}",
            f"{mean(rows, algorithm, 'crossings_per_block'):.4g}",
            f"{mean(rows, algorithm, 'busiest_uplink_blocks_per_block'):.3g}",
        ]
        for algorithm in ("binomial_pipeline", "chain")
    ]
    return [
        "schedule",
        "nodes are numbered",
        "crossings per block",
        "blocks out of the busiest rack, per block",
    ], cells


def count_claims(rows):
    c20 = Statement(
        "C20",
        (
            "over a random overlay “half the data would traverse the TOR”; over a chain of rack"
            " leaders each block crosses each once"
        ),
        f"{EARLIER}, 3.1",
    )

    def together(algorithm):
        return float(
            data.one(rows, algorithm=algorithm, placement="racks together")["crossings_per_block"]
        )

    for algorithm in ("chain", "rack_chain", "rack_hybrid", "rack_circulant"):
        says = (
            c20.ours if algorithm == "rack_circulant" else c20.constructed
        )  # no paper has that schedule
        yield says.near(
            (
                f"{algorithm}, racks together: crossings per block, one into each of"
                f" {RACKS - 1} other racks"
            ),
            RACKS - 1,
            together(algorithm),
            0.001,
        )
    yield from half_claims(rows, c20, together("binomial_pipeline"))


def half_claims(rows, c20, together):
    """What it takes for half of the data to cross."""
    transfers = NODES - 1
    yield c20.near(
        (
            f"binomial_pipeline, random numbers, {RACKS} racks, mean of {ORDERS}: share of"
            " transfers that cross, the paper's half"
        ),
        0.5,
        mean(rows, "binomial_pipeline", "crossings_per_block") / transfers,
        0.05,
        why=(
            f"Of the {transfers} others {NODES - HOSTS} are in another rack, so four fifths cross"
            " whatever the schedule. How many racks the paper has in mind it does not say."
        ),
    )
    yield c20.constructed.near(
        (
            f"binomial_pipeline, random numbers, 2 racks of {NODES // 2}, mean of {ORDERS}: the"
            " paper's half"
        ),
        0.5,
        mean(rows, "binomial_pipeline", "crossings_per_block", TWO_RACKS) / transfers,
        0.05,
        why=(
            f"{NODES // 2} of the {transfers} others are in the other rack, which is more than half"
            f" ({NODES / 2 / transfers:.4f})."
        ),
    )
    yield c20.constructed.near(
        (
            f"binomial_pipeline, {RACKS} racks together: share of transfers that cross, half of"
            " them by the exchanges between vertices"
        ),
        0.5,
        together / transfers,
        0.05,
    )


OVERSUBSCRIPTIONS = (1, 2, 3.5, 8, 16)
RUN = (
    ("binomial_pipeline", "racks together"),
    ("binomial_pipeline", "random"),
    ("chain", "racks together"),
    ("rack_chain", "racks together"),
    ("rack_hybrid", "racks together"),
    ("rack_circulant", "racks together"),
)


def rate_rows(simulator, quick):
    cases = [
        (algorithm, placement, over)
        for algorithm, placement in RUN
        for over in ((1, 3.5) if quick else OVERSUBSCRIPTIONS)
    ]
    runs = [
        Run(
            Plan(
                NODES,
                BLOCKS * MiB,
                algorithm=algorithm,
                topology=topology(over),
                order=random_order(1) if placement == "random" else "",
            ),
            Profile("apt"),
            topology=topology(over),
        )
        for algorithm, placement, over in cases
    ]
    return [
        {
            "clock": "modelled",
            "profile": "apt",
            "algorithm": algorithm,
            "placement": placement,
            "oversubscription": f"{over:g}",
            "cpu_us": data.microseconds(result.cpu.completion),
            "offload_us": data.microseconds(result.offload.completion),
            "offload_skew_us": data.microseconds(result.offload.skew),
            "bound_us": data.microseconds(round(result.json["bound_seconds"] * 1e12)),
        }
        for (algorithm, placement, over), result in zip(cases, simulator.simulate(runs))
    ]


def draw_rate(rows):
    figure, axes = style.figure(1, 1)
    panel = axes[0][0]
    for index, (algorithm, placement) in enumerate(RUN):
        found = data.select(rows, algorithm=algorithm, placement=placement)
        label = labelled(algorithm, placement)
        style.line(
            panel,
            [float(row["oversubscription"]) for row in found],
            [BLOCKS * MiB * 8 / float(row["offload_us"]) / 1e3 for row in found],
            index,
            label,
        )
    style.log_axis(panel.xaxis, OVERSUBSCRIPTIONS, lambda value, _: f"{value:g}:1")
    panel.set_xlabel("oversubscription of a rack's uplink")
    panel.set_ylabel("bandwidth, Gbit/s, preposted")
    style.from_zero(panel)
    style.legend_below(figure, panel, columns=3)
    return figure


def rate_claims(rows):
    def gbits(algorithm, over):
        return (
            BLOCKS
            * MiB
            * 8
            / float(
                data.one(
                    rows, algorithm=algorithm, placement="racks together", oversubscription=over
                )["offload_us"]
            )
            / 1e3
        )

    yield from seeding_claims(rows)
    racks = Statement(
        "racks",
        "with an oversubscribed ToR a schedule that crosses each ToR once is faster",
        OURS,
        OWN,
    )
    for algorithm, over in (
        ("rack_chain", "3.5"),
        ("rack_hybrid", "3.5"),
        ("rack_circulant", "3.5"),
        ("rack_circulant", "16"),
    ):
        yield racks.holds(
            f"{over}:1: {algorithm} beside the binomial pipeline",
            "faster",
            f"{gbits(algorithm, over):.1f} and {gbits('binomial_pipeline', over):.1f} Gbit/s",
            gbits(algorithm, over) > gbits("binomial_pipeline", over),
        )
    yield racks.holds(
        "1:1: the binomial pipeline beside rack_chain",
        "faster",
        f"{gbits('binomial_pipeline', '1'):.1f} and {gbits('rack_chain', '1'):.1f} Gbit/s",
        gbits("binomial_pipeline", "1") > gbits("rack_chain", "1"),
    )


SENDS_TWICE = (
    "A leader sends each block twice, to another rack and into its own, which halves its rate. A"
    " chain's nodes send each block once."
)


LEADERS_FIRST = (
    "Leaders have the message when their racks begin with it, after half of the time at 1:1. The"
    " text may mean each level by itself: a pipeline's own nodes end hardly more than a step apart,"
    " and those of one over all racks do, too."
)


def labelled(algorithm, placement):
    return algorithm + (", random numbers" if placement == "random" else "")


def seeding_claims(rows):
    """What the paper says of a hybrid that it has not built, for oversubscribed ToRs."""
    seeded = Statement(
        "two pipelines",
        (
            "with an oversubscribed ToR a pipeline among the racks and then one within each “is"
            " highly efficient and achieves the lowest possible latency and skew”"
        ),
        f"{PUSHING}, 4.3.1",
    )
    papers = [case for case in RUN if case[0] != "rack_circulant"]

    def microseconds(column, algorithm, placement):
        return [
            float(
                data.one(
                    rows, algorithm=algorithm, placement=placement, oversubscription=f"{over:g}"
                )[column]
            )
            for over in OVERSUBSCRIPTIONS[1:]
        ]

    for column, case, why in (
        ("offload_us", "takes the least time", SENDS_TWICE),
        ("offload_skew_us", "has the least skew", LEADERS_FIRST),
    ):
        found = {it: microseconds(column, *it) for it in papers}
        best = [
            min(found, key=lambda it: found[it][index])
            for index in range(len(OVERSUBSCRIPTIONS[1:]))
        ]
        first = list(dict.fromkeys(best))
        shown = [*first, *(it for it in papers if it[0] == "rack_hybrid" and it not in first)]
        yield seeded.holds(
            (
                f"{', '.join(f'{over:g}:1' for over in OVERSUBSCRIPTIONS[1:])}: which of the"
                f" papers' schedules {case}"
            ),
            "rack_hybrid each time",
            (
                f"{', '.join(labelled(*it) for it in first)}"
                f"{' each time' if len(first) == 1 else ''}:"
                f" {', '.join(f'{labelled(*it)} {words.span(found[it])} us' for it in shown)}"
            ),
            all(algorithm == "rack_hybrid" for algorithm, _ in best),
            why,
        )


def rate_remarks(rows):
    def faster(one, other):
        """From where on `one` is faster: (the last oversubscription where it is not,
        the first where it is)."""
        times = {
            name: [
                float(row["offload_us"])
                for row in data.select(rows, algorithm=name, placement="racks together")
            ]
            for name in (one, other)
        }
        first = next(
            index for index, pair in enumerate(zip(times[one], times[other])) if pair[0] < pair[1]
        )
        return f"{OVERSUBSCRIPTIONS[first - 1]:g}:1 and {OVERSUBSCRIPTIONS[first]:g}:1"

    chain = data.select(rows, algorithm="chain", placement="racks together")
    even = [row["oversubscription"] for row in chain if row["offload_us"] == chain[0]["offload_us"]]
    return (
        "`rack_chain` and `rack_hybrid` are the paper's two suggestions: a leader sends each block"
        " twice, on to the next rack and into its own, so they start at half of the rate. From"
        " some oversubscription on they are better than the plain pipeline, `rack_chain` between"
        f" {faster('rack_chain', 'binomial_pipeline')}, `rack_hybrid` between"
        f" {faster('rack_hybrid', 'binomial_pipeline')}. A plain chain over racks that stand"
        f" together crosses each uplink once as well, and loses nothing up to {even[-1]}:1."
    )


FIGURES = [
    Figure(
        "crossings",
        "",
        (
            f"How often a block crosses between racks: {NODES} nodes in {RACKS} racks of {HOSTS},"
            f" {BLOCKS} blocks (`prepost stats --topology`)."
        ),
        count_rows,
        ("algorithm", "placement"),
        None,
        count_table,
        count_claims,
    ),
    Figure(
        "racks",
        f"apt, with {RACKS} racks of {HOSTS}",
        (
            f"Bandwidth against the oversubscription of the racks' uplinks; {NODES} nodes,"
            f" {BLOCKS} MiB, blocks of 1 MiB, preposted."
        ),
        rate_rows,
        ("algorithm", "placement", "oversubscription"),
        draw_rate,
        None,
        rate_claims,
        rate_remarks,
    ),
]
