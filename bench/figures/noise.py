# SPDX-License-Identifier: Apache-2.0
"""Delays: one preemption of a relay, and random ones on every relay (Basin and others'). The run in
which the paper saw one is in breakdown.py."""

from . import data, style, words
from .claims import EARLIER, OURS, PUSHING, Statement
from .figure import Figure
from .simulator import KiB, MiB, Plan, Profile, Run, no_costs, no_message_costs

# One delay of 100 us, at many moments of the transfer.
DELAY_US = 100
CASES = [
    (algorithm, nodes) for algorithm in ("binomial_pipeline", "chain") for nodes in (4, 16, 64)
]
MOMENTS = 40
RELAY = 1
COSTS = {"none": no_costs("fractus"), "profile": Profile("fractus")}
BLOCKS = 64
BLOCK_US = {
    "none": 83.88608,
    "profile": 101.68010,
}  # 1 MiB at 100 Gbit/s, or at half of what a port has both ways


def delay_plan(algorithm, nodes):
    return Plan(nodes, BLOCKS * MiB, algorithm=algorithm, ready="window=1", send_window="1")


def at_us(costs, moment):
    """Over three block times, when about half of the blocks have come to node 1."""
    return f"{BLOCK_US[costs] * (BLOCKS / 2 + 3 * moment / MOMENTS):.3f}"


def delay_rows(simulator, quick):
    cases, moments = (CASES[:1], (4, 20)) if quick else (CASES, range(MOMENTS))
    cases = [(costs, *case) for costs in COSTS for case in cases]
    plain = simulator.simulate(
        [Run(delay_plan(*case), COSTS[costs], wait="polling") for costs, *case in cases]
    )
    results = iter(
        simulator.simulate(
            [
                Run(
                    delay_plan(*case),
                    COSTS[costs],
                    wait="polling",
                    flags=("--delay", f"node={RELAY},at={at_us(costs, moment)}us,for={DELAY_US}us"),
                )
                for costs, *case in cases
                for moment in moments
            ]
        )
    )
    rows = []
    for (costs, algorithm, nodes), before in zip(cases, plain):
        for moment in moments:
            after = next(results)
            rows.append(
                {
                    "clock": "modelled",
                    "profile": "fractus",
                    "costs": costs,
                    "algorithm": algorithm,
                    "nodes": nodes,
                    "at_us": at_us(costs, moment),
                    "cpu_longer_us": data.signed_microseconds(
                        after.cpu.completion - before.cpu.completion
                    ),
                    "offload_longer_us": data.signed_microseconds(
                        after.offload.completion - before.offload.completion
                    ),
                }
            )
    return rows


def draw_delay(rows):
    figure, axes = style.figure(2, 2, sharey=True, sharex="row", height=2.3)
    for line, costs, title in (
        (axes[0], "none", "hosts that take no time"),
        (axes[1], "profile", "the profile's hosts"),
    ):
        for panel, algorithm in zip(line, ("binomial_pipeline", "chain")):
            for index, nodes in enumerate((4, 16, 64)):
                found = data.select(rows, costs=costs, algorithm=algorithm, nodes=nodes)
                style.line(
                    panel,
                    [float(row["at_us"]) for row in found],
                    [float(row["cpu_longer_us"]) for row in found],
                    index,
                    f"CPU-driven, {nodes} nodes",
                    markersize=6 - 2 * index,
                    markevery=2,
                )
            panel.axhline(0, color=style.BLACK, linestyle="--", label="preposted, all")
            panel.set_title(f"{style.SCHEDULES[algorithm][0]}, {title}")
        line[0].set_ylabel("completion later by, us")
    for panel in axes[1]:
        panel.set_xlabel("when node 1 stops for 100 us, us after the start")
    style.legend_below(figure, axes[0][0])
    return figure


SOAKED = (
    "Node 1 is ahead here: a relay's own work makes the links further down the slower ones, so"
    " blocks have piled up behind it that soak up a part of its delay. With hosts that take no time"
    " (above) nothing does."
)


def delay_claims(rows):
    def later(costs, algorithm, nodes):
        """At each moment, us."""
        return [
            float(row["cpu_longer_us"])
            for row in data.select(rows, costs=costs, algorithm=algorithm, nodes=nodes)
        ]

    c12 = Statement(
        "C12", "offload “would mitigate” the stall (not measured there)", f"{PUSHING}, 5.2.1"
    )
    preposted = max(abs(float(row["offload_longer_us"])) for row in rows)
    yield c12.constructed.near(f"all {len(rows)} cases, preposted", 0, preposted, 0, "us later")
    # The paper has one of these cases, at one moment, and says what the sender's next step waited,
    # not when all was over.
    ours = Statement(
        "one preemption", "at the worst moment all is over later by about the delay of 100 us", OURS
    )
    for says, costs, high, name in (
        (ours.constructed, "none", 100, "hosts that take no time"),
        (ours.ours, "profile", 110, "the profile's hosts"),
    ):
        for algorithm, nodes in CASES:
            found = later(costs, algorithm, nodes)
            yield says.between(
                (
                    f"{style.SCHEDULES[algorithm][0]}, n = {nodes}, {name}, CPU-driven: the worst"
                    f" of {len(found)} moments"
                ),
                93,
                high,
                max(found),
                "us later",
                why=SOAKED if costs == "profile" and algorithm == "chain" and nodes > 4 else "",
            )
    lagging = Statement(
        "a lagging node",
        (
            "where a single node lags, the pipeline “is more susceptible to this phenomenon because"
            " each node is responsible for the transfer to all of its neighbors in the hypercube”"
        ),
        f"{PUSHING}, 5.3; {EARLIER}, 4.3",
    )
    means = {
        nodes: [
            sum(found) / len(found)
            for algorithm in ("binomial_pipeline", "chain")
            for found in [later("profile", algorithm, nodes)]
        ]
        for _, nodes in CASES
    }
    yield lagging.holds(
        (
            f"the profile's hosts, one delay of {DELAY_US} us, n = {', '.join(map(str, means))}:"
            f" all over later, mean of {MOMENTS} moments, pipeline and chain"
        ),
        "the pipeline later each time",
        ", ".join(f"{pipeline:.0f} and {chain:.0f}" for pipeline, chain in means.values()) + " us",
        all(pipeline > chain for pipeline, chain in means.values()),
        (
            "With 4 nodes each has two neighbours in either. In longer chains blocks pile up behind"
            " node 1, as above."
        ),
    )


# Random delays of all hosts.
NODES = (2, 4, 8, 16, 32, 64, 128, 256)
RATE, LENGTH = 300, "100us"
SEEDS = (1, 2, 3)
RANDOM = ("binomial_pipeline", "chain", "binomial_tree")
QUIET = no_message_costs(Profile("fractus"))
NOISY = QUIET.but(
    host__preemption__rate=RATE,
    host__preemption__length=LENGTH,
    host__preemption__lengths="exponential",
)


def random_rows(simulator, quick):
    cases = [
        (algorithm, nodes) for algorithm in RANDOM for nodes in (NODES[:3] if quick else NODES)
    ]
    plans = [
        Plan(nodes, 64 * MiB, 256 * KiB, algorithm, ready="window=1", send_window="1")
        for algorithm, nodes in cases
    ]
    runs = [
        [Run(plan, QUIET)] + [Run(plan, NOISY, "cpu", seed=seed) for seed in SEEDS]
        for plan in plans
    ]
    results = iter(simulator.simulate([run for group in runs for run in group]))
    rows = []
    for (algorithm, nodes), group in zip(cases, runs):
        plain, *noisy = [next(results) for _ in group]
        times = [result.cpu.completion for result in noisy]
        rows.append(
            {
                "clock": "modelled",
                "profile": "fractus, no costs per message",
                "algorithm": algorithm,
                "nodes": nodes,
                "offload_us": data.microseconds(plain.offload.completion),
                "offload_counted_us": data.microseconds(plain.offload.whole),
                "cpu_us": data.microseconds(plain.cpu.completion),
                "cpu_delayed_mean_us": data.microseconds(sum(times) // len(times)),
                "cpu_delayed_min_us": data.microseconds(min(times)),
                "cpu_delayed_max_us": data.microseconds(max(times)),
            }
        )
    return rows


def gbits(row, column):
    return 64 * MiB * 8 / float(row[column]) / 1e3


def draw_random(rows):
    figure, axes = style.figure(1, 3, sharey=True)
    for panel, algorithm in zip(axes[0], RANDOM):
        found = data.select(rows, algorithm=algorithm)
        x = [int(row["nodes"]) for row in found]
        for index, (column, label) in enumerate(
            (
                ("offload_us", "preposted (with or without delays)"),
                ("cpu_us", "CPU-driven, no delays"),
                ("cpu_delayed_mean_us", "CPU-driven, delays"),
            )
        ):
            style.line(panel, x, [gbits(row, column) for row in found], index, label)
        panel.fill_between(
            x,
            [gbits(row, "cpu_delayed_max_us") for row in found],
            [gbits(row, "cpu_delayed_min_us") for row in found],
            color=style.GREEN,
            alpha=0.25,
            linewidth=0,
        )
        style.log_axis(panel.xaxis, NODES[::2])
        panel.set_title(style.SCHEDULES[algorithm][0])
        panel.set_xlabel("nodes")
    axes[0][0].set_ylabel("bandwidth, Gbit/s")
    axes[0][0].set_ylim(0, 100)
    style.legend_below(figure, axes[0][0])
    return figure


def random_claims(rows):
    # Delays are put in on every node, so with more nodes there are more of them: it cannot fail.
    basin = Statement(
        "relay delays",
        (
            "for overlays of TCP links and a binary tree, above some threshold size, random delays"
            " of relays are predicted to make throughput fall with the number of nodes; for RDMC"
            " “an analogous result probably applies”"
        ),
        f"{EARLIER}, 4.3, on Basin and others",
    ).constructed
    for algorithm in ("binomial_pipeline", "chain"):
        share = {
            nodes: float(row["cpu_us"]) / float(row["cpu_delayed_mean_us"])
            for nodes in NODES
            for row in [data.one(rows, algorithm=algorithm, nodes=nodes)]
        }
        yield basin.holds(
            f"{style.SCHEDULES[algorithm][0]}: bandwidth with delays / without, n = 4, 16, 64, 256",
            "falls each time",
            ", ".join(f"{share[nodes]:.2f}" for nodes in (4, 16, 64, 256)),
            share[4] > share[16] > share[64] > share[256],
        )
    of_256 = {algorithm: data.one(rows, algorithm=algorithm, nodes=256) for algorithm in RANDOM}
    found = {algorithm: gbits(row, "cpu_delayed_mean_us") for algorithm, row in of_256.items()}
    spread = {
        algorithm: [gbits(row, f"cpu_delayed_{end}_us") for end in ("max", "min")]
        for algorithm, row in of_256.items()
    }
    robust = Statement("relay delays", "the pipeline stays above other schedules", OURS).ours
    yield robust.holds(
        f"n = 256, with delays: pipeline, chain, tree, mean and range of {len(SEEDS)} seeds",
        "the pipeline above both",
        ", ".join(
            f"{found[algorithm]:.1f} ({words.span(spread[algorithm], 1)})" for algorithm in RANDOM
        )
        + " Gbit/s",
        found["binomial_pipeline"] > max(found["chain"], found["binomial_tree"]),
        why=(
            "By less than the seeds are apart. That the pipeline is “surprisingly robust to delay"
            " and scheduling phenomena” (RDMC, the earlier version, 4.2) compares it with no other"
            " schedule, and its case is Sierra with 512 nodes (C3); beside trees and chains the"
            " authors call it “more susceptible” (RDMC, “Pushing Bytes”, 5.3). Strictly in order,"
            " with one credit and one send at a time, each of a node's log2 n neighbours holds it"
            " up in turn, so with 300 preemptions/s on each of 256 hosts somebody is late in most"
            " steps, and all wait. In the chain only who is behind does."
        ),
    )


def random_remarks(rows):
    def lost(algorithm):
        row = data.one(rows, algorithm=algorithm, nodes=NODES[-1])
        return 100 * (1 - float(row["cpu_us"]) / float(row["cpu_delayed_mean_us"]))

    few, many = (
        float(data.one(rows, algorithm="binomial_pipeline", nodes=nodes)["cpu_us"])
        for nodes in (4, NODES[-1])
    )
    return (
        f"Without delays the pipeline keeps its bandwidth, {100 * few / many:.0f} % with"
        f" {NODES[-1]} nodes of what 4 have; with delays of"
        f" {RATE * float(LENGTH.removesuffix('us')) / 1e4:g} % of the time it has lost"
        f" {lost('binomial_pipeline'):.0f} % of it at {NODES[-1]} nodes, the chain"
        f" {lost('chain'):.0f} %, and preposted nothing. This is a case for offload that comes from"
        " noise, not from what a completion costs."
    )


FIGURES = [
    Figure(
        "delay",
        "fractus",
        (
            "One preemption: the host of node 1 stands still for 100 us, at 40 moments over three"
            " block times (84 us with links alone, 102 us with the profile's limit both ways), when"
            " it has half of the blocks. 64 MiB in blocks of 1 MiB, hosts poll. The delay costs"
            " what is left of it when the host would have had something to do."
        ),
        delay_rows,
        ("costs", "algorithm", "nodes", "at_us"),
        draw_delay,
        None,
        delay_claims,
    ),
    Figure(
        "relay-delays",
        "fractus",
        (
            "Bandwidth against the number of nodes with random delays of all hosts:"
            f" {RATE} preemptions per second and core, exponential, 100 us in the mean (3 % of the"
            f" time). 64 MiB in blocks of 256 KiB; mean and range of {len(SEEDS)} seeds. Preposted"
            " queues do not notice hosts; arming and detection are not in the picture (they are in"
            " the data). RDMC's costs per message are 0, as preposted runs have none."
        ),
        random_rows,
        ("algorithm", "nodes"),
        draw_random,
        None,
        random_claims,
        random_remarks,
    ),
]
