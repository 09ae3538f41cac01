# SPDX-License-Identifier: Apache-2.0
"""Slow links: one slow path in a small group (C21), and many of them on Sierra, which bring 1.03 times to the paper's 4 times (C1)."""

from . import data, style
from .claims import EARLIER, Statement
from .figure import Figure
from .simulator import MiB, Plan, Run, no_costs

# One path at a share a of its rate.
BLOCKS = 256
SHARES = (1, 0.9, 0.75, 0.5, 0.25)
ONE = {("binomial_pipeline", 8): "1->3", ("binomial_pipeline", 64): "1->3", ("chain", 8): "1->2", ("chain", 64): "1->2"}


def one_rows(simulator, quick):
    cases = [
        (algorithm, nodes, share)
        for algorithm, nodes in ONE
        for share in ((1, 0.5) if quick else SHARES)
        if not quick or nodes == 8
    ]
    runs = [
        Run(
            Plan(nodes, BLOCKS * MiB, algorithm=algorithm, ready="window=1", send_window="1"),
            no_costs("fractus"),
            "offload",
            flags=("--slow", f"{ONE[algorithm, nodes]}={share}") if share < 1 else (),
        )
        for algorithm, nodes, share in cases
    ]
    return [
        {
            "clock": "modelled",
            "profile": "fractus, its links alone",
            "algorithm": algorithm,
            "nodes": nodes,
            "share": share,
            "offload_us": data.microseconds(result.offload.completion),
        }
        for (algorithm, nodes, share), result in zip(cases, simulator.simulate(runs))
    ]


def kept(rows, algorithm, nodes, share):
    """What is left of the bandwidth."""
    whole, slow = (float(data.one(rows, algorithm=algorithm, nodes=nodes, share=part)["offload_us"]) for part in (1, share))
    return whole / slow


def left_by_form(levels, share):
    return levels * share / (1 + (levels - 1) * share)


def draw_one(rows):
    figure, axes = style.figure(1, 1, height=2.8)
    panel = axes[0][0]
    for index, (algorithm, nodes) in enumerate(ONE):
        shares = [float(row["share"]) for row in data.select(rows, algorithm=algorithm, nodes=nodes)]
        style.line(
            panel,
            shares,
            [kept(rows, algorithm, nodes, row["share"]) for row in data.select(rows, algorithm=algorithm, nodes=nodes)],
            index,
            f"{style.SCHEDULES[algorithm][0]}, {nodes} nodes",
        )
    for nodes, levels in ((8, 3), (64, 6)):
        steps = [0.25 + 0.01 * step for step in range(76)]
        panel.plot(
            steps,
            [left_by_form(levels, share) for share in steps],
            color="#888888",
            linestyle="--",
            linewidth=1,
            label="l a / (1 + (l - 1) a)" if nodes == 8 else None,
        )
    panel.set_xlabel("share a of its rate that the slow path has")
    panel.set_ylabel("bandwidth left")
    panel.set_ylim(0, 1.03)
    panel.invert_xaxis()
    style.legend_below(figure, panel, columns=3)
    return figure


def one_claims(rows):
    c21 = Statement(
        "C21",
        "with a slow link the pipeline “can be less than a unicast over the slowest link”: it keeps l a / (1 + (l - 1) a) of its"
        " bandwidth",
        f"{EARLIER}, 4.2",
    )
    for nodes, levels in ((8, 3), (64, 6)):
        for share in SHARES[1:]:
            yield c21.near(
                f"pipeline, n = {nodes}, a = {share}",
                left_by_form(levels, share),
                kept(rows, "binomial_pipeline", nodes, share),
                0.02,
            )
    unicast = BLOCKS * MiB * 8 / 100e9 * 1e6 / 0.9
    pipeline = float(data.one(rows, algorithm="binomial_pipeline", nodes=8, share=0.9)["offload_us"])
    yield c21.near("pipeline, n = 8, a = 0.9: time beside a unicast over the slow link", 0.935, pipeline / unicast, 0.01, "x")
    for nodes, share, expected in ((8, 0.9, 0.90), (64, 0.5, 0.515)):
        yield c21.near(f"chain, n = {nodes}, a = {share}", expected, kept(rows, "chain", nodes, share), 0.1)


# A share of all paths at 3 Gbit/s, the others at 24.
NODES = 512
MESSAGE = 256 * MiB
FACTOR = 0.125
SIERRA = no_costs("sierra").but(network__host_rate="24Gbit/s")
PARTS = (0, 0.005, 0.01, 0.02, 0.05, 0.1)
SEEDS = (1, 2, 3)


def many_rows(simulator, quick):
    sizes = (2, 64) if quick else (2, 64, NODES)
    cases = [(nodes, part) for nodes in sizes for part in ((0, 0.05) if quick else PARTS) if nodes > 2 or part == 0]
    runs = [
        [
            Run(
                Plan(nodes, MESSAGE, ready="window=1", send_window="1"),
                SIERRA,
                "offload",
                seed=seed,
                flags=("--slow", f"random={part},factor={FACTOR}") if part else (),
            )
            for seed in (SEEDS if part else SEEDS[:1])
        ]
        for nodes, part in cases
    ]
    results = iter(simulator.simulate([run for group in runs for run in group]))
    rows = []
    for (nodes, part), group in zip(cases, runs):
        times = [next(results).offload.completion for _ in group]
        rows.append(
            {
                "clock": "modelled",
                "profile": "sierra, links of 24 Gbit/s alone",
                "nodes": nodes,
                "slow_share": part,
                "seeds": len(times),
                "offload_mean_us": data.microseconds(sum(times) // len(times)),
                "offload_min_us": data.microseconds(min(times)),
                "offload_max_us": data.microseconds(max(times)),
            }
        )
    return rows


def beside_one(rows, row, column="offload_mean_us"):
    return float(row[column]) / float(data.one(rows, nodes=2, slow_share=0)["offload_mean_us"])


def draw_many(rows):
    figure, axes = style.figure(1, 1, height=2.8)
    panel = axes[0][0]
    for index, nodes in enumerate(n for n in data.values(rows, "nodes") if n != "2"):
        found = data.select(rows, nodes=nodes)
        x = [100 * float(row["slow_share"]) for row in found]
        style.line(panel, x, [beside_one(rows, row) for row in found], index, f"{nodes} nodes")
        panel.fill_between(
            x,
            [beside_one(rows, row, "offload_min_us") for row in found],
            [beside_one(rows, row, "offload_max_us") for row in found],
            color=style.LINES[index][0],
            alpha=0.2,
            linewidth=0,
        )
    panel.axhline(4, color=style.BLACK, linestyle="--", label="the paper's 4 times")
    panel.set_xlabel("paths at 3 Gbit/s, % (the others have 24)")
    panel.set_ylabel("time / time of one copy")
    style.from_zero(panel)
    style.legend_below(figure, panel)
    return figure


def many_claims(rows):
    c1 = Statement("C1", "“just 4x as long to make 511 replicas as to make 1”; links fall to 3 Gb/s", f"{EARLIER}, 4.2")
    yield c1.near(
        "n = 512, no slow path: the schedule alone",
        264 / 256,
        beside_one(rows, data.one(rows, nodes=NODES, slow_share=0)),
        1e-5,
        "x",
    )
    for part, expected in ((0.02, 3.3), (0.05, 4.14), (0.1, 5.2)):
        yield c1.near(
            f"n = 512, {100 * part:g} % of the paths at 3 Gbit/s (expected by another model), mean of {len(SEEDS)} seeds",
            expected,
            beside_one(rows, data.one(rows, nodes=NODES, slow_share=part)),
            0.15,
            "x",
        )
    shares = {part: beside_one(rows, data.one(rows, nodes=NODES, slow_share=part)) for part in PARTS}
    below = max(part for part in PARTS if shares[part] <= 4)
    above = min(part for part in PARTS if shares[part] > 4)
    yield c1.holds(
        "what would explain 4 times",
        "a share of slow paths between 0 and 10 %",
        f"between {100 * below:g} and {100 * above:g} %",
        0 < above <= 0.1,
    )


FIGURES = [
    Figure(
        "slow-link",
        "fractus, its links alone",
        "One slow path: what is left of the bandwidth when one node sends to one other (1 to 3 in the pipeline, 1 to 2 in the"
        f" chain) at a share a of its rate. {BLOCKS} blocks; dashed: the closed form for 8 and 64 nodes. The pipeline uses a path"
        " in every l-th round only.",
        one_rows,
        ("algorithm", "nodes", "share"),
        draw_one,
        None,
        one_claims,
    ),
    Figure(
        "slow-links",
        "sierra, links of 24 Gbit/s alone",
        "What would explain C1: time for 256 MiB beside that of one copy, when a random share of all directed paths goes at 3"
        " Gbit/s and the others at 24. Binomial pipeline; mean and range of 3 seeds.",
        many_rows,
        ("nodes", "slow_share"),
        draw_many,
        None,
        many_claims,
    ),
]
