# SPDX-License-Identifier: Apache-2.0
"""Many groups at once: RDMC's figure 10, the earlier version's figures 13 and 14. Member i of group
g is host i + g, so roots rotate."""

import json
import random

from . import data, style, words
from .claims import EARLIER, PUSHING, Statement
from .figure import MESSAGE_COSTS, Figure
from .simulator import KiB, MiB, Plan, Profile, Run, network_value

APT_RACKS = 7
APT_OVERSUBSCRIPTION = 3.5
APT_HOST = 54.5
MESSAGES = {"100 MB": (100 * MiB, MiB), "1 MB": (MiB, 256 * KiB), "10 KB": (10 * KiB, 10 * KiB)}
SENDERS = ("all", "half", "one")


def apt(nodes):
    """Members spread over racks, as on a cluster that hands out nodes at random."""
    hosts = nodes // APT_RACKS
    return json.dumps(
        {
            "format": "prepost.topology",
            "version": "1.0",
            "name": f"Apt, {nodes} nodes over {APT_RACKS} racks",
            "host_rate": f"{APT_HOST}Gbit/s",
            "up_rate": f"{APT_HOST * hosts / APT_OVERSUBSCRIPTION:.6g}Gbit/s",
            "rack_latency": "1us",
            "core_latency": "1.4us",
            "racks": [
                {
                    "name": f"r{rack}",
                    "hosts": f"r{rack}n[1-{hosts}]" if hosts > 1 else [f"r{rack}n1"],
                }
                for rack in range(APT_RACKS)
            ],
        }
    )


EACH_A_RACK = "apt, each in a rack of its own"
PAPER_RATE = 16  # Gbit/s of a host's link when all are loaded: 56 / 3.5


def each_a_rack(nodes):
    """All traffic crosses uplinks that leave PAPER_RATE for a host."""
    return json.dumps(
        {
            "format": "prepost.topology",
            "version": "1.0",
            "name": f"Apt, {nodes} nodes in as many racks",
            "host_rate": f"{APT_HOST}Gbit/s",
            "up_rate": f"{PAPER_RATE}Gbit/s",
            "rack_latency": "1us",
            "core_latency": "1.4us",
            "racks": [{"name": f"r{rack}", "hosts": [f"r{rack}n1"]} for rack in range(nodes)],
        }
    )


def shuffled(nodes, numbering):
    others = list(range(1, nodes))
    random.Random(nodes + 1000 * numbering).shuffle(others)
    return ",".join(map(str, [0, *others]))


def count(senders, nodes):
    return {"all": nodes, "half": nodes // 2, "one": 1}[senders]


CLUSTERS = {"fractus": (4, 8, 12, 16), "apt": (7, 14, 28, 56)}
NUMBERINGS = 3  # of the members on Apt


def plan(cluster, nodes, message, numbering=0):
    size, block = MESSAGES[message]
    order = shuffled(nodes, numbering) if cluster == "apt" else ""
    return Plan(nodes, size, block, ready="window=1", send_window="1", order=order)


def rows(simulator, quick):
    cases = [
        (cluster, message, senders, nodes)
        for cluster, sizes in CLUSTERS.items()
        for message in (["1 MB"] if quick else MESSAGES)
        for senders in SENDERS
        for nodes in (sizes[:1] if quick else sizes)
    ]
    cases += [] if quick else [(EACH_A_RACK, "100 MB", "all", CLUSTERS["apt"][-1])]
    topologies = {"fractus": lambda nodes: "", "apt": apt, EACH_A_RACK: each_a_rack}
    runs = [
        [
            Run(
                plan(cluster, nodes, message, numbering),
                Profile("fractus" if cluster == "fractus" else "apt"),
                topology=topologies[cluster](nodes),
                flags=("--groups", str(count(senders, nodes))),
            )
            for numbering in range(NUMBERINGS if cluster == "apt" else 1)
        ]
        for cluster, message, senders, nodes in cases
    ]
    flat = [run for group in runs for run in group]
    flat.sort(
        key=lambda run: -run.plan.nodes
    )  # the longest first: no core waits for them in the end
    simulator.simulate(flat)
    rows_ = []
    for (cluster, message, senders, nodes), group in zip(cases, runs):
        results = simulator.simulate(group)  # done before
        cpu = [aggregate(result, result.cpu) for result in results]
        offload = [aggregate(result, result.offload) for result in results]
        rows_.append(
            {
                "clock": "modelled",
                "profile": cluster,
                "message": message,
                "senders": senders,
                "nodes": nodes,
                "groups": count(senders, nodes),
                "runs": len(results),
                "cpu_us": data.microseconds(
                    sum(result.cpu.completion for result in results) // len(results)
                ),
                "offload_us": data.microseconds(
                    sum(result.offload.completion for result in results) // len(results)
                ),
                "cpu_gbits": data.ratio(sum(cpu) / len(cpu)),
                "cpu_deviation_gbits": data.ratio(deviation(cpu)),
                "offload_gbits": data.ratio(sum(offload) / len(offload)),
                "offload_deviation_gbits": data.ratio(deviation(offload)),
                "links_gbits": data.ratio(sum(map(links_bound, results)) / len(results)),
            }
        )
    return rows_


def deviation(values):
    mean = sum(values) / len(values)
    return (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5


def aggregate(result, side):
    """All messages / the time until all groups are over, Gbit/s."""
    return result.run.plan.message_bytes * int(result.run.flags[1]) * 8 / side.completion * 1e3


def links_bound(result):
    """What the busiest link leaves, by the bytes that went over it:
    all messages / their time there, Gbit/s."""
    busiest = max(link["busy_seconds"] for link in result.json["cpu"]["links"])
    return result.run.plan.message_bytes * int(result.run.flags[1]) * 8 / busiest / 1e9


def draw(rows_):
    figure, axes = style.figure(2, 3, height=2.4)
    for line, (cluster, sizes) in zip(axes, CLUSTERS.items()):
        for panel, message in zip(line, MESSAGES):
            for index, senders in enumerate(SENDERS):
                found = data.select(rows_, profile=cluster, message=message, senders=senders)
                style.line(
                    panel,
                    [int(row["nodes"]) for row in found],
                    [float(row["cpu_gbits"]) for row in found],
                    index,
                    f"{senders} send" if senders != "one" else "one sends",
                )
                panel.errorbar(
                    [int(row["nodes"]) for row in found],
                    [float(row["cpu_gbits"]) for row in found],
                    [float(row["cpu_deviation_gbits"]) for row in found],
                    fmt="none",
                    ecolor=style.LINES[index][0],
                    capsize=2,
                )
            panel.set_title(f"{cluster}, {message}")
            style.from_zero(panel)
            panel.set_xticks(sizes)
        line[0].set_ylabel("all together, Gbit/s")
    for panel in axes[1]:
        panel.set_xlabel("group size")
    style.legend_below(figure, axes[0][0])
    return figure


def claims(rows_):
    def gbits(cluster, message, senders, nodes):
        return float(
            data.one(rows_, profile=cluster, message=message, senders=senders, nodes=nodes)[
                "cpu_gbits"
            ]
        )

    c19 = Statement(
        "C19",
        (
            "on Fractus “our peak rates (seen in patterns with concurrent senders) was quite close"
            " to the limits”, a capacity of 100 Gb/s; on Apt, whose racks are oversubscribed, “the"
            " bisection bandwidth asymptotes to 16Gbps for this pattern of communication, and our"
            " graphs do so as well, at least for the larger groups”"
        ),
        f"{PUSHING}, 5.2.2, figure 10",
    )
    big = CLUSTERS["apt"][-1]
    worst = max(
        float(row["cpu_gbits"]) / ceiling(row) for row in data.select(rows_, profile="fractus")
    )
    yield c19.constructed.holds(
        (
            "fractus, every case: beside what nodes can receive, r n / (n - 1) with r = 100, or"
            f" {BOTH_WAYS:g} / 2 where all send"
        ),
        "at most 1",
        f"{worst:.4f} at most",
        worst <= 1,
    )
    for cluster in (*CLUSTERS, EACH_A_RACK):
        found = data.select(rows_, profile=cluster)
        worst = max(float(row["cpu_gbits"]) / float(row["links_gbits"]) for row in found)
        yield c19.constructed.holds(
            (
                f"{cluster}, all {len(found)} cases: beside what the busiest link leaves, by the"
                " bytes that went over it"
            ),
            "at most 1",
            f"{worst:.4f} at most",
            worst <= 1,
        )
    most = CLUSTERS["fractus"][-1]
    peak = max(
        (
            row
            for row in data.select(rows_, profile="fractus", message="100 MB")
            if row["senders"] != "one"
        ),
        key=lambda row: float(row["cpu_gbits"]),
    )
    yield c19.near(
        f"fractus, 100 MiB, the peak of all and half ({peak['senders']} {peak['nodes']} send)",
        100,
        float(peak["cpu_gbits"]),
        0.1,
        "Gbit/s",
    )
    yield c19.near(
        f"fractus, 100 MiB, all {most} send",
        100,
        gbits("fractus", "100 MB", "all", most),
        0.1,
        "Gbit/s",
        why=(
            f"Where all send and receive a port has {BOTH_WAYS:g} Gbit/s both ways, by the earlier"
            f" version, and the members {BOTH_WAYS / 2:g} x {most} / {most - 1} together."
        ),
    )
    bound = PAPER_RATE * big / (big - 1)
    uplink = APT_HOST / APT_OVERSUBSCRIPTION * APT_RACKS / (APT_RACKS - 1)
    own = (
        f"In our racks a host has {APT_HOST} / {APT_OVERSUBSCRIPTION} ="
        f" {APT_HOST / APT_OVERSUBSCRIPTION:.2f} Gbit/s of its uplink, and what goes to the"
        f" {big // APT_RACKS - 1} of {big - 1} others in its own rack does not need it. With each"
        f" in a rack of its own, and {PAPER_RATE} Gbit/s for each, it agrees (below)."
    )
    all_send = gbits("apt", "100 MB", "all", big)
    yield c19.near(
        f"apt, 100 MiB, all {big} send, {APT_RACKS} racks",
        PAPER_RATE,
        all_send,
        0.05,
        "Gbit/s",
        why=own,
    )
    yield c19.constructed.near(
        (
            f"the same: {APT_HOST} / {APT_OVERSUBSCRIPTION} x {APT_RACKS} / {APT_RACKS - 1}, what"
            " our racks' uplinks leave"
        ),
        uplink,
        all_send,
        0.01,
        "Gbit/s",
    )
    half, one = (gbits("apt", "100 MB", senders, big) for senders in ("half", "one"))
    yield c19.near(
        f"apt, 100 MiB, n = {big}, half of them send, {APT_RACKS} racks",
        PAPER_RATE,
        half,
        0.05,
        "Gbit/s",
        why="As above: what goes to members of a host's own rack does not need its uplink.",
    )
    yield c19.near(
        f"apt, 100 MiB, n = {big}, one sends, {APT_RACKS} racks", PAPER_RATE, one, 0.05, "Gbit/s"
    )
    yield c19.ours.holds(
        f"apt, 100 MiB, n = {big}, {APT_RACKS} racks: one sender beside all",
        "below",
        f"{one:.1f} and {all_send:.1f} Gbit/s",
        one < all_send,
    )
    yield c19.calibrated.near(
        f"{EACH_A_RACK}, 100 MiB, all {big} send: r n / (n - 1)",
        bound,
        gbits(EACH_A_RACK, "100 MB", "all", big),
        0.01,
        "Gbit/s",
    )
    for senders in SENDERS:
        row = data.one(rows_, profile="apt", message="100 MB", senders=senders, nodes=big)
        share = float(row["cpu_deviation_gbits"]) / float(row["cpu_gbits"])
        yield c19.constructed.holds(
            f"apt, 100 MiB, n = {big}, {senders}: deviation / mean of {row['runs']} numberings",
            "below 0.1",
            f"{share:.4f}",
            share < 0.1,
        )


BOTH_WAYS = float(network_value("fractus", "duplex").removesuffix("Gbit/s"))


def ceiling(row):
    """Of Fractus, Gbit/s: each node has to receive all messages but its own, and where all send,
    nodes send as much as they receive."""
    rate = BOTH_WAYS / 2 if row["senders"] == "all" else 100
    return rate * int(row["nodes"]) / (int(row["nodes"]) - 1)


def remarks(rows_):
    def shares(message):
        return [
            float(row["cpu_gbits"]) / ceiling(row)
            for row in data.select(rows_, profile="fractus", message=message, senders="all")
        ]

    big = CLUSTERS["apt"][-1]
    return (
        "When all send, each node has to receive n - 1 messages, and to send as many on, so all"
        f" together cannot get more than r n / (n - 1) with r = {BOTH_WAYS / 2:g} Gbit/s, half of"
        f" what a port of Fractus has both ways: {BOTH_WAYS:g} for two nodes, 100 for some six."
        f" With 100 MB they get {words.percent(shares('100 MB'), 1)} of it; with 10 KB"
        f" {words.percent(shares('10 KB'))}. On Apt the uplinks decide: of {big} members over"
        f" {APT_RACKS} racks each has {big - big // APT_RACKS} of its {big - 1} peers behind one."
        " Members that share one rack have the links' full rate in the model, and no picture of"
        " the paper can be compared with that."
    )


# The earlier version's figures 13 and 14: the number of senders, mean and deviation.
SENDER_NODES = (8, 16)


def sender_rows(simulator, quick):
    cases = [
        (nodes, groups) for nodes in SENDER_NODES for groups in (1, 2, 4, 8, 16) if groups <= nodes
    ]
    cases = cases[:2] if quick else cases
    runs = [
        Run(plan("fractus", nodes, "100 MB"), Profile("fractus"), flags=("--groups", str(groups)))
        for nodes, groups in cases
    ]
    rows_ = []
    for (nodes, groups), result in zip(cases, simulator.simulate(runs)):
        row = {"clock": "modelled", "profile": "fractus", "nodes": nodes, "groups": groups}
        for name, side in (("cpu", result.cpu), ("offload", result.offload)):
            times = (
                [group["end_seconds"] - group["start_seconds"] for group in side.json["groups"]]
                if "groups" in side.json
                else [side.completion * 1e-12]
            )
            row |= {
                f"{name}_mean_us": f"{sum(times) / len(times) * 1e6:.3f}",
                f"{name}_deviation_us": f"{deviation(times) * 1e6:.3f}",
                f"{name}_gbits": data.ratio(aggregate(result, side)),
            }
        rows_.append(row)
    return rows_


def draw_senders(rows_):
    figure, axes = style.figure(1, 2)
    for index, nodes in enumerate(SENDER_NODES):
        found = data.select(rows_, nodes=nodes)
        x = [int(row["groups"]) for row in found]
        axes[0][0].errorbar(
            x,
            [float(row["cpu_mean_us"]) / 1e3 for row in found],
            [float(row["cpu_deviation_us"]) / 1e3 for row in found],
            color=style.LINES[index][0],
            marker=style.LINES[index][1],
            capsize=3,
            label=f"{nodes} nodes",
        )
        style.line(
            axes[0][1], x, [float(row["cpu_gbits"]) for row in found], index, f"{nodes} nodes"
        )
    for panel in axes[0]:
        style.log_axis(panel.xaxis, [1, 2, 4, 8, 16])
        panel.set_xlabel("senders at the same time")
        style.from_zero(panel)
    axes[0][0].set_ylabel("a message's time, ms:\nmean and deviation")
    axes[0][1].set_ylabel("all together, Gbit/s")
    style.legend_below(figure, axes[0][1])
    return figure


def sender_claims(rows_):
    figures = Statement(
        "figures 13, 14",
        (
            "when groups are concurrently active with overlapping membership, “bandwidth splits"
            " between them”"
        ),
        f"{EARLIER}, 3 and figures 13 and 14",
    )
    for nodes in SENDER_NODES:
        one, many = (data.one(rows_, nodes=nodes, groups=groups) for groups in (1, nodes))
        yield figures.ours.near(  # the text says that it splits, and not into how much
            f"n = {nodes}, {nodes} senders: mean time beside one alone",
            nodes,
            float(many["cpu_mean_us"]) / float(one["cpu_mean_us"]),
            0.05,
            "x",
            why=(
                "One sender's message goes into n - 1 of n nodes; when all send all n receive, n /"
                " (n - 1) times as much together."
            ),
        )
        yield figures.constructed.near(
            f"the same by what a node must receive, {nodes - 1} messages",
            nodes - 1,
            float(many["cpu_mean_us"]) / float(one["cpu_mean_us"]),
            0.15,
            "x",
        )
        share = float(many["cpu_deviation_us"]) / float(many["cpu_mean_us"])
        yield figures.constructed.holds(
            f"n = {nodes}, {nodes} senders: deviation / mean",
            "below 0.05",
            f"{share:.4f}",
            share < 0.05,
        )


FIGURES = [
    Figure(
        "concurrent",
        "fractus; apt spread over 7 racks",
        (
            "RDMC's figure 10: aggregate bandwidth (all messages / time until all groups are over:"
            " all hosts know it, or preposted the last final CQE is there) of overlapping groups,"
            " all with the same members and another root each; CPU-driven; preposted ones are in"
            " the data. On Apt the members are spread over 7 racks behind uplinks of 3.5:1 and"
            f" numbered at random, {NUMBERINGS} times: mean and deviation. {MESSAGE_COSTS}"
        ),
        rows,
        ("profile", "message", "senders", "nodes"),
        draw,
        None,
        claims,
        remarks,
    ),
    Figure(
        "senders",
        "fractus",
        (
            "The earlier version's figures 13 and 14: 100 MiB from several senders of one set of"
            " nodes at the same time, CPU-driven. Figure 14 is of the Fractus that the profile"
            " describes; figure 13 is of the one before, with 20 Gb/s each way, which has no"
            " profile."
        ),
        sender_rows,
        ("nodes", "groups"),
        draw_senders,
        None,
        sender_claims,
    ),
]
