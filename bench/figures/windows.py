# SPDX-License-Identifier: Apache-2.0
"""Windows: what more credits and more sends at a time cost, and what they buy when one host stands still."""
from . import data, style
from .claims import PUSHING, Statement
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
    cases = [(nodes, ready, sends) for nodes in (NODES[:1] if quick else NODES) for ready in (READY[:2] if quick else READY) for sends in (SENDS[:2] if quick else SENDS)]
    middle = BLOCK_PS * BLOCKS // 2
    delay = f"node=1,at={data.microseconds(middle)}us,for={data.microseconds(BLOCK_PS * DELAY_BLOCKS)}us"
    plans = [Plan(nodes, BLOCKS * MiB, ready=ready, send_window=sends) for nodes, ready, sends in cases]
    runs = [run for plan in plans for run in (Run(plan, IDEAL), Run(plan, IDEAL, "cpu", flags=("--delay", delay)))]
    results = iter(simulator.simulate(runs))
    rows_ = []
    for nodes, ready, sends in cases:
        plain, delayed = next(results), next(results)
        rows_.append({"clock": "modelled", "profile": "fractus, its links alone", "nodes": nodes, "ready": ready, "send_window": sends,
                      "rounds": pipeline_rounds(nodes, BLOCKS), "offload_block_times": data.ratio(plain.offload.completion / BLOCK_PS),
                      "cpu_block_times": data.ratio(plain.cpu.completion / BLOCK_PS), "cpu_delayed_block_times": data.ratio(delayed.cpu.completion / BLOCK_PS)})
    return rows_


def draw(rows_):
    sizes = data.values(rows_, "nodes")
    figure, axes = style.figure(2, len(sizes), height=2.3, sharey="row", sharex=True)
    for column, nodes in enumerate(sizes):
        for index, sends in enumerate(data.values(rows_, "send_window")):
            found = data.select(rows_, nodes=nodes, send_window=sends)
            x = range(len(found))
            style.line(axes[0][column], x, [float(row["cpu_block_times"]) / int(row["rounds"]) for row in found], index, f"send window {sends}")
            style.line(axes[1][column], x, [(float(row["cpu_delayed_block_times"]) - float(row["cpu_block_times"])) / DELAY_BLOCKS for row in found], index,
                       f"send window {sends}")
        axes[1][column].set_xticks(range(len(found)), [row["ready"].replace("window=", "") .replace("channel", "all") for row in found])
        axes[0][column].set_title(f"{nodes} nodes, no delay")
        axes[1][column].set_title(f"{nodes} nodes, one delay")
        axes[1][column].set_xlabel("ready window W")
    axes[0][0].set_ylabel("time / rounds, block times")
    axes[0][0].set_ylim(0.9)
    axes[1][0].set_ylabel("share of the delay\nthat reaches the end")
    style.legend_below(figure, axes[0][0])
    return figure


def claims(rows_):
    exact = Statement("windows", "time = rounds x block time, with both windows at 1", "our own property")
    for nodes in NODES:
        row = data.one(rows_, nodes=nodes, ready="window=1", send_window="1")
        for side, name in (("offload", "preposted"), ("cpu", "CPU-driven")):
            yield exact.near(f"n = {nodes}, {name}", int(row["rounds"]), float(row[f"{side}_block_times"]), 0, "block times")
        yield exact.near(f"n = {nodes}, CPU-driven, one delay of {DELAY_BLOCKS} block times: at most as much later", int(row["rounds"]) + DELAY_BLOCKS,
                         float(row["cpu_delayed_block_times"]), 0.05, "block times")
    slack = Statement("windows", "small asynchrony between nodes is allowed, and soaks up delays", f"{PUSHING}, 4.3")
    worst = max(rows_, key=lambda row: float(row["cpu_block_times"]) / int(row["rounds"]))
    yield slack.holds("the longest of all settings without a delay", "above the rounds: nodes that run ahead share others' ports",
                      f"{float(worst['cpu_block_times']) / int(worst['rounds']):.2f} x the rounds (n = {worst['nodes']}, {worst['ready']}, send window {worst['send_window']})",
                      float(worst["cpu_block_times"]) > int(worst["rounds"]))


FIGURES = [
    Figure("windows", "fractus, its links alone", f"Binomial pipeline, {BLOCKS} blocks: time beside the rounds, by ready window W (receives granted per node; all: the whole message) and "
           f"send window; above without, below with one delay of {DELAY_BLOCKS} block times of node 1 in the middle. CPU-driven hosts that take no time; preposted times are in the data.",
           rows, ("nodes", "ready", "send_window"), draw, None, claims),
]
