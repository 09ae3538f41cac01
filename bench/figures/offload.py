# SPDX-License-Identifier: Apache-2.0
"""Preposted against CPU-driven: RDMC's figure 12, and, beyond the paper, the maps of when it pays."""
import json

from . import data, style
from .claims import PUSHING, Statement
from .figure import Figure, row_of
from .simulator import KiB, MiB, Plan, Profile, Run


# RDMC's figure 12: a chain and 100 MB.
BLOCKS = (16 * KiB, 64 * KiB, 256 * KiB, MiB, 4 * MiB)
GUESSED = Profile("fractus").but(host__completion="1500ns", host__credit="1500ns")
CHAIN_NODES = 8


def chain_rows(simulator, quick):
    cases = [("profile", Profile("fractus"), nodes, MiB, wait) for nodes in (3, 4, 5, 6, 7, 8) for wait in ("hybrid", "interrupt")]
    cases += [(label, profile, CHAIN_NODES, block, wait) for label, profile in (("profile", Profile("fractus")), ("3 us a block", GUESSED))
              for block in BLOCKS for wait in ("hybrid", "interrupt") if (label, block, wait) != ("profile", MiB, wait)]
    cases = [case for case in cases if not quick or (case[3] >= MiB and case[2] in (4, CHAIN_NODES))]
    runs = [Run(Plan(nodes, 100 * MiB, block, "chain", ready="window=1", send_window="1"), profile, wait=wait) for _, profile, nodes, block, wait in cases]
    return [row_of(run, host=case[0], nodes=run.plan.nodes, block_bytes=run.plan.block_bytes, wait=run.wait, cpu_us=data.microseconds(result.cpu.completion),
                   offload_us=data.microseconds(result.offload.completion)) | {"changed": "; ".join("=".join(change) for change in run.profile.changes)}
            for case, run, result in zip(cases, runs, simulator.simulate(runs))]


def gbits(row, side):
    return 100 * MiB * 8 / float(row[side]) / 1e3


def draw_chain(rows):
    figure, axes = style.figure(1, 2, sharey=True)
    for panel, x, found_of in ((axes[0][0], "nodes", lambda wait: data.select(rows, host="profile", block_bytes=MiB, wait=wait)),
                               (axes[0][1], "block_bytes", lambda wait: data.select(rows, host="profile", nodes=CHAIN_NODES, wait=wait))):
        for index, wait in ((1, "hybrid"), (2, "interrupt")):
            found = sorted(found_of(wait), key=lambda row: int(row[x]))
            style.line(panel, [int(row[x]) for row in found], [gbits(row, "cpu_us") for row in found], index, f"CPU-driven, {wait}")
        style.line(panel, [int(row[x]) for row in found], [gbits(row, "offload_us") for row in found], 0, "preposted")
    axes[0][0].set_xlabel("nodes")
    axes[0][0].set_title("chain, 100 MiB, blocks of 1 MiB")
    axes[0][0].set_ylabel("bandwidth, Gbit/s")
    axes[0][0].set_ylim(0, 105)
    style.log_axis(axes[0][1].xaxis, BLOCKS, style.bytes_text)
    axes[0][1].set_xlabel("block size")
    axes[0][1].set_title(f"chain, 100 MiB, {CHAIN_NODES} nodes")
    style.legend_below(figure, axes[0][0])
    return figure


def chain_claims(rows):
    def gain(host, block, wait="hybrid"):
        row = data.one(rows, host=host, nodes=CHAIN_NODES, block_bytes=block, wait=wait)
        return float(row["cpu_us"]) / float(row["offload_us"])
    c14 = Statement("C14", "CORE-Direct makes the chain faster, with hybrid waiting and with interrupts (figure 12; no numbers in the text)", f"{PUSHING}, figure 12")
    for wait in ("hybrid", "interrupt"):
        gains = [float(row["cpu_us"]) / float(row["offload_us"]) for row in data.select(rows, host="profile", block_bytes=MiB, wait=wait)]
        yield c14.holds(f"1 MiB, n = 3 to 8, {wait}: CPU-driven / preposted time", "above 1", f"{min(gains):.3f} to {max(gains):.3f}", min(gains) > 1)
    gains = [gain("profile", block) for block in sorted(BLOCKS)]
    yield c14.holds("n = 8, hybrid: 16 KiB to 4 MiB", "falls as blocks grow", ", ".join(f"{value:.3f}" for value in gains), gains == sorted(gains, reverse=True))
    guess = Statement("C14", "by another model, in which a host takes 3 us for a block: 3.5 %, 14 %, 48 %, 2.3 times faster", "no paper")
    for block, expected in ((MiB, 1.035), (256 * KiB, 1.14), (64 * KiB, 1.48), (16 * KiB, 2.3)):
        yield guess.near(f"n = 8, {style.bytes_text(block)}, the profile with 1.5 us for a block and 1.5 us for its credit", expected, gain("3 us a block", block), 0.15, "x")


# The map: speed-up by block size and noise, a panel per schedule.
MAP_NODES = 16
MAP_BYTES = 16 * MiB
MAP_BLOCKS = (16 * KiB, 64 * KiB, 256 * KiB, MiB, 4 * MiB)
NOISE = (0, 30, 300, 1000, 3000)  # preemptions per second and core, 100 us each
SEEDS = (1, 2, 3, 4, 5)
SCHEDULES = ("sequential", "chain", "kary_chain=2", "binomial_tree", "kary_tree=2", "scatter_allgather", "two_tree", "binomial_pipeline", "circulant",
             "rack_chain", "rack_hybrid", "rack_circulant")
RACKS = json.dumps({"format": "prepost.topology", "version": "1.0", "name": "4 racks of 4", "host_rate": "100Gbit/s", "up_rate": "400Gbit/s",
                    "rack_latency": "600ns", "core_latency": "600ns", "racks": [{"name": name, "hosts": f"{name}[1-4]"} for name in "abcd"]})


def noisy(rate):
    if rate == 0:
        return Profile("fractus")
    return Profile("fractus", (("host.preemption.rate", rate), ("host.preemption.length", "100us"), ("host.preemption.lengths", "fixed")))


def map_rows(simulator, quick):
    cases = [(schedule, block, rate) for schedule in (("chain", "rack_chain") if quick else SCHEDULES)
             for block in ((256 * KiB, MiB) if quick else MAP_BLOCKS) for rate in ((0, 300) if quick else NOISE)]
    runs, rows = [], []
    for schedule, block, rate in cases:
        topology = RACKS if schedule.startswith("rack") else ""
        plan = Plan(MAP_NODES, MAP_BYTES, block, schedule, topology=topology)
        runs.append([Run(plan, Profile("fractus"), "offload", topology=topology)] +
                    [Run(plan, noisy(rate), "cpu", seed=seed, topology=topology) for seed in (SEEDS if rate else SEEDS[:1])])
    results = iter(simulator.simulate([run for group in runs for run in group]))
    for (schedule, block, rate), group in zip(cases, runs):
        offload, *cpu = [next(results) for _ in group]
        times = [result.cpu.completion for result in cpu]
        rows.append({"clock": "modelled", "profile": "fractus", "schedule": schedule, "block_bytes": block, "preemptions_per_s": rate, "seeds": len(times),
                     "cpu_mean_us": data.microseconds(sum(times) // len(times)), "cpu_max_us": data.microseconds(max(times)),
                     "offload_us": data.microseconds(offload.offload.completion)})
    return rows


def speed_up(row):
    return float(row["cpu_mean_us"]) / float(row["offload_us"])


def heat(panel, rows, x, y, cell, largest):
    """A map of `cell` with its value in each; x and y are columns. Colours are logarithmic from 1 to `largest`."""
    columns, lines = data.values(rows, x), data.values(rows, y)
    image = [[cell(data.one(rows, **{x: column, y: line})) for column in columns] for line in lines]
    drawn = panel.pcolormesh(range(len(columns)), range(len(lines)), image, cmap="cividis", norm=style.matplotlib.colors.LogNorm(1, largest), shading="nearest")
    for row, values in enumerate(image):
        for column, value in enumerate(values):
            panel.text(column, row, f"{value:.2f}" if value < 10 else f"{value:.0f}", ha="center", va="center", fontsize=6.5,
                       color="white" if value < largest ** 0.55 else "black")
    panel.set_xticks(range(len(columns)))
    panel.set_yticks(range(len(lines)))
    panel.grid(False)
    return drawn


def draw_map(rows):
    schedules = data.values(rows, "schedule")
    columns = min(4, len(schedules))
    figure, axes = style.figure(-(-len(schedules) // columns), columns, height=1.75, sharex=True, sharey=True)
    largest = max(2, max(map(speed_up, rows)))
    for index, schedule in enumerate(schedules):
        panel = axes[index // columns][index % columns]
        found = data.select(rows, schedule=schedule)
        drawn = heat(panel, found, "block_bytes", "preemptions_per_s", speed_up, largest)
        panel.set_xticklabels([style.bytes_text(int(block)).replace(" ", "").replace("iB", "") for block in data.values(found, "block_bytes")])
        panel.tick_params(labelsize=7.5)
        panel.set_yticklabels(data.values(found, "preemptions_per_s"))
        panel.set_title(schedule)
    for panel in axes[-1]:
        panel.set_xlabel("block, KiB or MiB")
    for row in axes:
        row[0].set_ylabel("preemptions/s")
    figure.colorbar(drawn, ax=axes, label="CPU-driven time / preposted time", ticks=[1, 2, 5, 10, 20], format="%g", shrink=0.8)
    return figure


def map_claims(rows):
    says = Statement("offload", "offload “would mitigate” that a preempted relay stalls its sender (not measured there)", f"{PUSHING}, 5.2.1")
    losses = [row for row in rows if speed_up(row) < 1]
    yield says.holds(f"{len(rows)} cases: CPU-driven / preposted time", "never below 1", f"{min(map(speed_up, rows)):.3f} at least", not losses)
    slower = [(row["schedule"], row["block_bytes"]) for row in data.select(rows, preemptions_per_s=NOISE[-1])
              if speed_up(row) <= speed_up(data.one(rows, schedule=row["schedule"], block_bytes=row["block_bytes"], preemptions_per_s=0))]
    yield says.holds("every schedule and block size: gain with the most noise beside none", "larger", f"larger in all but {len(slower)}", not slower)


# What it hangs on: the assumed costs of a WAIT and of a completion.
WAITS = ("50ns", "200ns", "1us", "3us", "10us")
COMPLETIONS = ("100ns", "300ns", "630ns", "2us", "5us")
ASSUMED_BLOCKS = (16 * KiB, 64 * KiB, MiB)


def assumed_rows(simulator, quick):
    cases = [(block, wait, completion) for block in ((MiB,) if quick else ASSUMED_BLOCKS) for completion in COMPLETIONS for wait in WAITS]
    runs = [Run(Plan(8, 16 * MiB, block), Profile("fractus").but(nic__wait=wait, host__completion=completion, host__credit=completion))
            for block, wait, completion in cases]
    return [{"clock": "modelled", "profile": "fractus, changed", "block_bytes": block, "nic_wait": wait, "host_completion": completion,
             "cpu_us": data.microseconds(result.cpu.completion), "offload_us": data.microseconds(result.offload.completion)}
            for (block, wait, completion), result in zip(cases, simulator.simulate(runs))]


def draw_assumed(rows):
    blocks = data.values(rows, "block_bytes")
    figure, axes = style.figure(1, len(blocks), sharey=True, height=2.6)
    norm = style.matplotlib.colors.TwoSlopeNorm(1, 0.5, 2)
    for panel, block in zip(axes[0], blocks):
        found = data.select(rows, block_bytes=block)
        image = [[float(row["cpu_us"]) / float(row["offload_us"]) for row in data.select(found, host_completion=completion)] for completion in COMPLETIONS]
        drawn = panel.pcolormesh(range(len(WAITS)), range(len(COMPLETIONS)), image, cmap="PuOr_r", norm=norm, shading="nearest")
        for y, values in enumerate(image):
            for x, value in enumerate(values):
                panel.text(x, y, f"{value:.2f}", ha="center", va="center", fontsize=7, color="white" if value > 1.75 or value < 0.6 else "black")
        panel.set_xticks(range(len(WAITS)), WAITS)
        panel.set_yticks(range(len(COMPLETIONS)), COMPLETIONS)
        panel.grid(False)
        panel.set_title(f"blocks of {style.bytes_text(int(block))}")
        panel.set_xlabel("NIC: a WAIT")
    axes[0][0].set_ylabel("host: a completion")
    figure.colorbar(drawn, ax=axes, label="CPU-driven / preposted", extend="both", ticks=[0.5, 0.75, 1, 1.5, 2])
    return figure


def assumed_claims(rows):
    def gain(block, wait, completion):
        row = data.one(rows, block_bytes=block, nic_wait=wait, host_completion=completion)
        return float(row["cpu_us"]) / float(row["offload_us"])
    pays = Statement("offload", "preposting pays without noise, too, by the profile's numbers, and no longer with slow WAITs", "no paper")
    for block in ASSUMED_BLOCKS:
        yield pays.holds(f"{style.bytes_text(block)}: WAIT 200 ns, completion 630 ns", "above 1", f"{gain(block, '200ns', '630ns'):.3f}", gain(block, "200ns", "630ns") > 1)
        yield pays.holds(f"{style.bytes_text(block)}: WAIT 3 us, completion 630 ns", "below 1", f"{gain(block, '3us', '630ns'):.3f}", gain(block, "3us", "630ns") < 1)


FIGURES = [
    Figure("core-direct", "fractus", "RDMC's figure 12: a chain and 100 MiB, CPU-driven with two ways of waiting, and preposted; ready window 1, as RDMC's "
           "ready_for_block. Preposting before the start is not in the times.",
           chain_rows, ("host", "nodes", "block_bytes", "wait"), draw_chain, None, chain_claims),
    Figure("offload-map", "fractus", "Beyond the paper: when offload pays. CPU-driven time / preposted time, 16 nodes, 16 MiB, by block size and noise: preemptions of 100 us, "
           "so many per second and core; CPU-driven hosts wait hybrid, means of 5 seeds. The credits are `--ready auto`'s. Rack schedules have 4 racks of 4 with full uplinks.",
           map_rows, ("schedule", "block_bytes", "preemptions_per_s"), draw_map, None, map_claims),
    Figure("offload-assumptions", "fractus, two of its costs changed", "What the map hangs on: the same ratio without noise, 8 nodes, 16 MiB, binomial pipeline, by what a WAIT "
           "takes (assumed in the profile: 200 ns) and what a host's reaction to a completion or credit takes (630 ns).",
           assumed_rows, ("block_bytes", "nic_wait", "host_completion"), draw_assumed, None, assumed_claims),
]
