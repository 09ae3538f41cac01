# SPDX-License-Identifier: Apache-2.0
"""Schedules by themselves: links, and nothing else that takes time. A block's time is the unit, so
the engine's picoseconds must come out at the papers' closed forms exactly."""

import math

from . import data, style, words
from .claims import CONSTRUCTION, DSN, EARLIER, OURS, OWN, PUSHING, Statement
from .figure import Figure
from .simulator import MiB, Plan, Run, no_costs

IDEAL = no_costs("fractus")
BLOCK_PS = MiB * 8 * 10**12 // (100 * 10**9)  # 1 MiB at 100 Gbit/s
ALGORITHMS = ["sequential", "chain", "binomial_tree", "binomial_pipeline", "scatter_allgather"]
COSMOS_BLOCKS = [12, 29, 100]
NEARLY_THE_PRICE = "“4 or 8 replicas for nearly the same price as for 1”"


def levels(nodes):
    """floor(log2 n)"""
    return nodes.bit_length() - 1


def pipeline_rounds(nodes, blocks):
    return blocks - 1 + math.ceil(math.log2(nodes))


def ideal_runs(cases):
    return [
        Run(
            Plan(nodes, blocks * MiB, algorithm=algorithm, ready="window=1", send_window="1"),
            IDEAL,
            "offload",
        )
        for algorithm, nodes, blocks in cases
    ]


def ideal_rows(simulator, cases):
    runs = ideal_runs(cases)
    rows = []
    for run, result in zip(runs, simulator.simulate(runs)):
        out = next(
            link["bytes"]
            for link in result.json["offload"]["links"]
            if (link["kind"], link["index"]) == ("node_out", 0)
        )
        rows.append(
            {
                "clock": "modelled",
                "profile": "fractus, no costs",
                "algorithm": run.plan.algorithm,
                "nodes": run.plan.nodes,
                "blocks": run.plan.blocks,
                "block_times": data.ratio(result.offload.completion / BLOCK_PS),
                "skew_block_times": data.ratio(result.offload.skew / BLOCK_PS),
                "root_sends_blocks": data.ratio(out / MiB),
            }
        )
    return rows


def rows(simulator, quick):
    sizes = (
        [(n, k) for n in (4, 8) for k in (8, 64)]
        if quick
        else [(n, k) for n in (2, 4, 8, 16, 32, 64, 128, 256, 512) for k in (8, 64, 256)]
        + [(4, k) for k in COSMOS_BLOCKS]
    )
    return ideal_rows(simulator, [(algorithm, *size) for algorithm in ALGORITHMS for size in sizes])


def of(rows_, algorithm, nodes, blocks, column="block_times"):
    return float(data.one(rows_, algorithm=algorithm, nodes=nodes, blocks=blocks)[column])


def draw(rows_):
    figure, axes = style.figure(1, 3, sharey=True)
    for panel, blocks in zip(axes[0], (8, 64, 256)):
        for algorithm in ALGORITHMS:
            nodes = [
                n
                for n in (2, 4, 8, 16, 32, 64, 128, 256, 512)
                if data.select(rows_, algorithm=algorithm, nodes=n, blocks=blocks)
            ]
            style.schedule_line(
                panel, nodes, [blocks / of(rows_, algorithm, n, blocks) for n in nodes], algorithm
            )
        style.log_axis(panel.xaxis, [2, 8, 32, 128, 512])
        panel.set_title(f"{blocks} blocks")
        panel.set_xlabel("nodes")
    axes[0][0].set_ylabel("bandwidth / link rate")
    axes[0][0].set_ylim(0, 1.05)
    style.legend_below(figure, axes[0][0])
    return figure


def claims(rows_):
    c2 = Statement(
        "C2",
        (
            "for “127, 255 or 511 copies, the total time required is almost the same”: k + log2 n -"
            " 1 rounds"
        ),
        f"{PUSHING}, 5.2.2",
        CONSTRUCTION,
    )
    for nodes in (128, 256, 512):
        yield c2.near(
            f"n = {nodes}, k = 256",
            pipeline_rounds(nodes, 256),
            of(rows_, "binomial_pipeline", nodes, 256),
            0,
            "rounds",
            digits=6,
        )
    c4 = Statement("C4", NEARLY_THE_PRICE, f"{PUSHING}, 7; {EARLIER}, 6", CONSTRUCTION)
    for nodes, blocks in ((4, 256), (8, 256), (16, 256), (4, 8), (8, 8)):
        yield c4.near(
            f"n = {nodes}, k = {blocks}",
            1 + (levels(nodes) - 1) / blocks,
            of(rows_, "binomial_pipeline", nodes, blocks)
            / of(rows_, "binomial_pipeline", 2, blocks),
            1e-5,
            "x",
        )
    c5 = Statement(
        "C5",
        "sequential send is linear in the replicas, the pipeline less than linear",
        f"{PUSHING}, 5.2.2, figure 8; {EARLIER}, figure 12",
        CONSTRUCTION,
    )
    one = of(rows_, "binomial_pipeline", 2, 256)
    yield c5.near(
        "sequential, n = 512, k = 256",
        511,
        of(rows_, "sequential", 512, 256) / one,
        1e-5,
        "x the time of 1 copy",
    )
    yield c5.near(
        "binomial pipeline, n = 512, k = 256",
        264 / 256,
        of(rows_, "binomial_pipeline", 512, 256) / one,
        1e-5,
        "x the time of 1 copy",
    )
    c6 = Statement(
        "C6",
        (
            "Cosmos, 3 replicas: the pipeline is “almost twice as fast as binomial tree and around"
            " three times as fast as sequential send”"
        ),
        f"{PUSHING}, 5.2.2; sizes by {DSN}",
        CONSTRUCTION,
    )
    for blocks in COSMOS_BLOCKS:
        pipeline = of(rows_, "binomial_pipeline", 4, blocks)
        yield c6.near(
            f"n = 4, k = {blocks}: sequential / pipeline",
            3 * blocks / (blocks + 1),
            of(rows_, "sequential", 4, blocks) / pipeline,
            1e-5,
            "x",
        )
        yield c6.near(
            f"n = 4, k = {blocks}: tree / pipeline",
            2 * blocks / (blocks + 1),
            of(rows_, "binomial_tree", 4, blocks) / pipeline,
            1e-5,
            "x",
        )
    c9 = Statement(
        "C9",
        (
            "the chain “lagged in groups with as few as 16 nodes” and at 256 nodes was at “just 40%"
            " of the throughput of the binomial pipeline” with 64 MB"
        ),
        f"{EARLIER}, 3.1",
    )
    lagged = of(rows_, "binomial_pipeline", 16, 64) / of(rows_, "chain", 16, 64)
    yield c9.constructed.holds(
        "n = 16, k = 64: it lags", "below 0.9", f"{lagged:.3f}", lagged < 0.9
    )
    for nodes in (16, 64, 256):
        yield c9.constructed.near(
            f"n = {nodes}, k = 64: closed form (k + l - 1) / (k + n - 2)",
            (63 + levels(nodes)) / (62 + nodes),
            of(rows_, "binomial_pipeline", nodes, 64) / of(rows_, "chain", nodes, 64),
            1e-5,
        )
    yield c9.near(
        "n = 256, k = 64: the paper's 0.40",
        0.40,
        of(rows_, "binomial_pipeline", 256, 64) / of(rows_, "chain", 256, 64),
        0.05,
        why=(
            "With 64 blocks the chain needs 318 rounds and the pipeline 71. What brings it to 0.40"
            " is shown [below](#chain-256)."
        ),
    )
    yield from chain_skew_claims(rows_)
    c10 = Statement(
        "C10",
        "the chain is competitive but for small transfers to many nodes",
        f"{PUSHING}, 5.2",
        CONSTRUCTION,
    )
    for nodes, expected in ((4, 0.90), (8, 0.71), (16, 0.50)):
        yield c10.near(
            f"n = {nodes}, k = 8: chain / pipeline",
            expected,
            of(rows_, "binomial_pipeline", nodes, 8) / of(rows_, "chain", nodes, 8),
            0.01,
        )
    c23 = Statement(
        "C23",
        (
            "what the root sends: sequential k (n-1) blocks; by our schedules chain k, tree k log2"
            " n, pipeline k + l - 1"
        ),
        f"{PUSHING}, 4.3",
        CONSTRUCTION,
    )
    for algorithm, expected in (
        ("sequential", 64 * 15),
        ("chain", 64),
        ("binomial_tree", 64 * 4),
        ("binomial_pipeline", 64 + 3),
    ):
        yield c23.near(
            f"{style.SCHEDULES[algorithm][0]}, n = 16, k = 64",
            expected,
            of(rows_, algorithm, 16, 64, "root_sends_blocks"),
            0,
            "blocks",
        )


def chain_skew_claims(rows_):
    worst = Statement(
        "the chain's skew",
        "“Chain send is also the worst case for delivery skew”",
        f"{EARLIER}, 3.1",
    )
    papers = ("sequential", "binomial_tree", "chain", "binomial_pipeline")
    sizes = dict.fromkeys((row["nodes"], row["blocks"]) for row in rows_ if int(row["nodes"]) > 2)
    skews = {
        size: {name: of(rows_, name, *size, "skew_block_times") for name in papers}
        for size in sizes
    }
    right = [size for size, found in skews.items() if max(found, key=found.get) == "chain"]
    shown = ", ".join(
        f"{style.SCHEDULES[name][0]} {skew:g}" for name, skew in skews["16", "64"].items()
    )
    yield worst.holds(
        (
            f"{len(sizes)} cases, n = 4 to 512, k = 8 to 256: which of the papers' four has the"
            " largest skew"
        ),
        "the chain in each",
        f"the chain in {len(right)}; n = 16, k = 64: {shown} block times",
        len(right) == len(sizes),
        (
            "A chain's receivers end a block's time apart, and those of whole messages a message's."
            " “Pushing Bytes” itself finds a high skew in sequential send (5.2.2)."
        ),
    )


def skew_rows(simulator, quick):
    nodes = range(2, 10) if quick else range(2, 65)
    rows_ = ideal_rows(simulator, [("binomial_pipeline", n, k) for n in nodes for k in (1, 2, 16)])
    counted = simulator.stats([Plan(int(row["nodes"]), int(row["blocks"]) * MiB) for row in rows_])
    return [
        {**row, "skew_rounds": stats["last_block"]["skew"]} for row, stats in zip(rows_, counted)
    ]


def expected_skew(nodes, blocks):
    """In rounds: 0 or 1 step for two blocks and more; a tree of one block takes its depth."""
    is_power = nodes & (nodes - 1) == 0
    if blocks == 1:
        return levels(nodes) - 1 if is_power else levels(nodes)
    return 0 if is_power or (nodes + 1) & nodes == 0 else 1


def skew_claims(rows_):
    for blocks, says in (
        (2, "receivers finish in the same step (n = 2^l) or in consecutive ones"),
        (16, "“skew is 1”"),
    ):
        c17 = Statement("C17", says, f"{PUSHING}, 4.3", CONSTRUCTION)
        found = {
            int(row["nodes"]): float(row["skew_block_times"])
            for row in data.select(rows_, blocks=blocks)
        }
        wrong = [n for n, skew in found.items() if skew > expected_skew(n, blocks)]
        yield c17.holds(
            f"k = {blocks}, {len(found)} sizes n = {min(found)} to {max(found)}",
            "at most 0 for n = 2^l and 2^l - 1, at most 1 for others",
            f"{wrong or 'none'} beyond; largest {max(found.values()):g}",
            not wrong,
        )
    c17 = Statement(
        "C17", "with one block the skew is a tree's", f"{PUSHING}, appendix A", CONSTRUCTION
    )
    found = {
        int(row["nodes"]): float(row["skew_block_times"]) for row in data.select(rows_, blocks=1)
    }
    wrong = [n for n, skew in found.items() if skew != expected_skew(n, 1)]
    yield c17.holds(
        f"k = 1, {len(found)} sizes",
        "l - 1 for n = 2^l, else l rounds",
        f"{wrong or 'none'} other than that",
        not wrong,
    )


def draw_skew(rows_):
    figure, axes = style.figure(1, 1, height=2.6)
    for index, (blocks, label) in enumerate(
        ((1, "1 block: a binomial tree"), (2, "2 blocks"), (16, "16 blocks"))
    ):
        found = data.select(rows_, blocks=blocks)
        style.line(
            axes[0][0],
            [int(row["nodes"]) for row in found],
            [int(row["skew_rounds"]) for row in found],
            index,
            label,
            linestyle="none" if blocks > 1 else "-",
            markersize=6 - 2 * index,
        )
    axes[0][0].set_xlabel("nodes")
    axes[0][0].set_ylabel("rounds from the first receiver's\nlast block to the last receiver's")
    axes[0][0].legend()
    return figure


# What plans look like, without time. Pipelines, managed: ready, send window, and the most WQEs of a
# receiver per further block: a receive, a send, a WAIT and a SEND_EN; a WAIT more for the send
# before it; and as many as these for a credit, which is a message as well.
PIPELINE_NODES = 8
PIPELINES = {
    "no credits, no send window": ("barrier", "none", 4),
    "no credits, send window 1": ("barrier", "1", 5),
    "ready window 1, send window 1": ("window=1", "1", 9),
}


def structure_rows(simulator, quick):
    sizes = (4, 8) if quick else (2, 4, 8, 16, 32, 64)
    one_block = {
        algorithm: simulator.programs(
            [Plan(n, MiB, algorithm=algorithm, ready="barrier", send_window="none") for n in sizes]
        )
        for algorithm in ("binomial_pipeline", "binomial_tree")
    }
    rows_ = [
        {
            "clock": "none",
            "what": "same transfers as the binomial tree, k = 1",
            "nodes": n,
            "blocks": 1,
            "value": int(transfers(a) == transfers(b)),
        }
        for n, a, b in zip(sizes, one_block["binomial_pipeline"], one_block["binomial_tree"])
    ]
    credit_plans = [Plan(n, 32 * MiB, ready="window=1", send_window="1") for n in sizes]
    rows_ += [
        {
            "clock": "none",
            "what": "receives granted and not yet filled at most, window 1",
            "nodes": plan.nodes,
            "blocks": plan.blocks,
            "value": max(map(granted, program["programs"])),
        }
        for plan, program in zip(credit_plans, simulator.programs(credit_plans))
    ]
    rows_ += pipeline_rows(simulator)
    chains = [
        Plan(n, k * MiB, algorithm="chain", ready="barrier", send_window="none")
        for n in sizes
        if n > 2
        for k in (16, 64)
    ]
    for mode in ("inline", "managed"):
        rows_ += [
            {
                "clock": "none",
                "what": f"WQEs of a relay's queues, chain, {mode}",
                "nodes": plan.nodes,
                "blocks": plan.blocks,
                "value": lowered["nodes"][1]["wqes"],
            }
            for plan, lowered in zip(chains, simulator.lowered(chains, mode))
        ]
    return rows_


def pipeline_rows(simulator):
    plans = [
        (name, Plan(PIPELINE_NODES, k * MiB, ready=ready, send_window=sends))
        for name, (ready, sends, _) in PIPELINES.items()
        for k in (16, 64)
    ]
    return [
        {
            "clock": "none",
            "what": f"WQEs of receiver {node['node']}'s queues, pipeline, managed, {name}",
            "nodes": plan.nodes,
            "blocks": plan.blocks,
            "value": node["wqes"],
        }
        for (name, plan), lowered in zip(
            plans, simulator.lowered([plan for _, plan in plans], "managed")
        )
        for node in lowered["nodes"][1:]
    ]


def transfers(plan):
    channels = plan["channels"]
    return {
        (channels[op["channel"]]["from"], channels[op["channel"]]["to"], op["round"])
        for program in plan["programs"]
        for op in program["ops"]
        if op["op"] == "send" and op["block"] is not None
    }


def granted(program):
    """The most receives that a node has granted by credits while the blocks are not there, whatever
    the timing: credit i waits for receive j."""
    ops = program["ops"]
    receives = {}
    for index, op in enumerate(ops):
        if op["op"] == "recv" and op["block"] is not None:
            receives[index] = len(receives)
    credits, most = 0, 0
    for op in ops:
        if op["op"] == "send" and op["block"] is None:
            credits += 1
            done = max(
                (receives[before] for before in op["after"] if before in receives), default=-1
            )
            most = max(most, credits - (done + 1))
    return most


def pipeline_claims(rows_, preposted):
    for name, (_, _, most) in PIPELINES.items():
        each = []
        for node in range(1, PIPELINE_NODES):
            low, high = data.select(
                rows_, what=f"WQEs of receiver {node}'s queues, pipeline, managed, {name}"
            )
            each.append(
                (int(high["value"]) - int(low["value"]))
                / (int(high["blocks"]) - int(low["blocks"]))
            )
        yield preposted.holds(
            (
                f"preposted pipeline, queues managed, n = {PIPELINE_NODES}, {name}, each receiver,"
                " per further block"
            ),
            f"at most {most} WQEs",
            f"{words.span(each, 2)} WQEs",
            max(each) <= most,
        )


def structure_claims(rows_):
    c18 = Statement(
        "C18",
        "with one block the pipeline is a binomial tree",
        f"{PUSHING}, appendix A",
        CONSTRUCTION,
    )
    for row in data.select(rows_, what="same transfers as the binomial tree, k = 1"):
        yield c18.same(
            f"n = {row['nodes']}: sender, receiver and round of each transfer",
            "the same",
            "the same" if row["value"] == "1" else "others",
        )
    c22 = Statement(
        "C22", "a node has only a few receives posted at a time", f"{PUSHING}, 4.2", CONSTRUCTION
    )
    for row in data.select(rows_, what="receives granted and not yet filled at most, window 1"):
        yield c22.holds(
            f"CPU-driven, n = {row['nodes']}, k = {row['blocks']}",
            "at most 2 receives",
            f"{row['value']}",
            int(row["value"]) <= 2,
        )
    preposted = Statement(
        "entries",
        (
            "what a relay has per block: a receive, a send and two control entries, and more with"
            " windows and credits"
        ),
        OURS,
        OWN,
    )
    for mode, each in (("managed", 4), ("inline", 3)):
        relays = [
            row
            for row in data.select(rows_, what=f"WQEs of a relay's queues, chain, {mode}")
            if row["nodes"] == rows_[-1]["nodes"]
        ]
        low, high = sorted(relays, key=lambda row: int(row["blocks"]))
        found = (int(high["value"]) - int(low["value"])) / (
            int(high["blocks"]) - int(low["blocks"])
        )
        in_words = "a receive, a send, a WAIT" + (
            ", a SEND_EN" if each == 4 else "; the sending queue waits itself"
        )
        yield preposted.near(
            (
                f"preposted chain, queues {mode}, relay, n = {low['nodes']}, per further block:"
                f" {in_words}"
            ),
            each,
            found,
            0,
            "WQEs",
        )
    yield from pipeline_claims(rows_, preposted)


FIGURES = [
    Figure(
        "schedules",
        "fractus, its links alone",
        (
            "Bandwidth of the schedules by themselves, as a share of the link's: all costs and"
            " latencies 0, preposted, ready window 1, send window 1, blocks of 1 MiB. Each value is"
            " the closed form's, exactly."
        ),
        rows,
        ("algorithm", "nodes", "blocks"),
        draw,
        None,
        claims,
    ),
    Figure(
        "skew",
        "fractus, its links alone",
        (
            "Binomial pipeline: rounds between the receivers' last blocks, as `prepost stats`"
            " counts. In time it is the same for two blocks and more; with one block a node's time"
            " ends with what it passes on, which hides it."
        ),
        skew_rows,
        ("nodes", "blocks"),
        draw_skew,
        None,
        skew_claims,
    ),
    Figure(
        "structure",
        "",
        "From plans and queue programs (`prepost compile`, `prepost lower`).",
        structure_rows,
        ("what", "nodes", "blocks"),
        None,
        None,
        structure_claims,
    ),
]
