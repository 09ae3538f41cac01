# SPDX-License-Identifier: Apache-2.0
"""Beyond the papers: the maps of when preposting pays."""

import functools
import itertools
import json

from . import data, style, words
from .claims import CONSTRUCTION, OURS, OWN, PUSHING, Statement
from .figure import Figure
from .simulator import KiB, MiB, Plan, Profile, Run, no_message_costs

BASE = no_message_costs(Profile("fractus"))
COUNTED = (
    "Counted: arming by the host with the most WQEs (100 ns each), the run, and a host's seeing of"
    " the end. RDMC's costs per message (`host.message_start`, `message_setup`) are 0, as preposted"
    " runs have none."
)

# The map: speed-up by block size and noise, a panel per schedule.
MAP_NODES = 16
MAP_BYTES = 16 * MiB
MAP_BLOCKS = (16 * KiB, 64 * KiB, 256 * KiB, MiB, 4 * MiB)
PREEMPTIONS = (0, 30, 300, 1000, 3000)  # per second and core, 100 us each
NEIGHBOUR = "neighbour"  # a process on each core that always wants it
SLICE = "750us"  # normalized_sysctl_sched_base_slice of kernel/sched/fair.c
NOISE = (*PREEMPTIONS, NEIGHBOUR)
SEEDS = (1, 2, 3, 4, 5)
SCHEDULES = (
    "sequential",
    "chain",
    "kary_chain=2",
    "binomial_tree",
    "kary_tree=2",
    "scatter_allgather",
    "two_tree",
    "binomial_pipeline",
    "circulant",
    "rack_chain",
    "rack_hybrid",
    "rack_circulant",
)
RACKS = json.dumps(
    {
        "format": "prepost.topology",
        "version": "1.0",
        "name": "4 racks of 4",
        "host_rate": "100Gbit/s",
        "up_rate": "400Gbit/s",
        "rack_latency": "600ns",
        "core_latency": "600ns",
        "racks": [{"name": name, "hosts": f"{name}[1-4]"} for name in "abcd"],
    }
)


def noisy(base, noise):
    if noise == 0:
        return base
    if noise == NEIGHBOUR:
        return base.but(host__neighbours__count=1, host__neighbours__slice=SLICE)
    return base.but(
        host__preemption__rate=noise,
        host__preemption__length="100us",
        host__preemption__lengths="fixed",
    )


def offload_columns(offload, cpu):
    """What a preposted run takes, by parts, and how much longer the CPU-driven time is without and
    with the parts outside of the run."""
    return {
        "offload_us": data.microseconds(offload.completion),
        "arming_us": data.microseconds(offload.arming),
        "detection_us": data.microseconds(offload.detection),
        "ratio_armed_before": data.ratio(cpu / offload.completion),
        "ratio_all_counted": data.ratio(cpu / offload.whole),
    }


def map_rows(simulator, quick, reaction):
    base = BASE.but(host__completion=reaction, host__credit=reaction)
    cases = [
        (schedule, block, noise)
        for schedule in (("chain", "rack_chain") if quick else SCHEDULES)
        for block in ((256 * KiB, MiB) if quick else MAP_BLOCKS)
        for noise in ((0, 300) if quick else NOISE)
    ]
    runs, rows = [], []
    for schedule, block, noise in cases:
        topology = RACKS if schedule.startswith("rack") else ""
        plan = Plan(MAP_NODES, MAP_BYTES, block, schedule, topology=topology)
        runs.append(
            [Run(plan, base, "offload", topology=topology)]
            + [
                Run(plan, noisy(base, noise), "cpu", seed=seed, topology=topology)
                for seed in (SEEDS if noise in PREEMPTIONS[1:] else SEEDS[:1])
            ]
        )
    results = iter(simulator.simulate([run for group in runs for run in group]))
    for (schedule, block, noise), group in zip(cases, runs):
        offload, *cpu = [next(results) for _ in group]
        times = [result.cpu.completion for result in cpu]
        mean = sum(times) // len(times)
        rows.append(
            {
                "clock": "modelled",
                "profile": "fractus, no costs per message",
                "host_completion": reaction,
                "schedule": schedule,
                "block_bytes": block,
                "noise": noise,
                "seeds": len(times),
                "cpu_mean_us": data.microseconds(mean),
                "cpu_max_us": data.microseconds(max(times)),
                **offload_columns(offload.offload, mean),
            }
        )
    return rows


def speed_up(row, counted="all_counted"):
    return float(row[f"ratio_{counted}"])


def ratio_colours(values):
    """White at 1, logarithmic to both sides, as far below as above."""
    reach = max(1.5, *values, *(1 / value for value in values))
    return style.matplotlib.colors.LogNorm(1 / reach, reach)


def heat(panel, rows, x, y, cell, norm):
    """A map of `cell` with its value in each; x and y are columns."""
    columns, lines = data.values(rows, x), data.values(rows, y)
    image = [[cell(data.one(rows, **{x: column, y: line})) for column in columns] for line in lines]
    drawn = panel.pcolormesh(
        range(len(columns)),
        range(len(lines)),
        image,
        cmap="PuOr_r",
        norm=norm,
        shading="nearest",
    )
    for row, values in enumerate(image):
        for column, value in enumerate(values):
            panel.text(
                column,
                row,
                f"{value:.2f}" if value < 10 else f"{value:.0f}",
                ha="center",
                va="center",
                fontsize=6.5,
                color="white" if abs(norm(value) - 0.5) > 0.35 else "black",
                weight="bold" if value < 1 else "normal",
            )
    panel.set_xticks(range(len(columns)))
    panel.set_yticks(range(len(lines)))
    panel.grid(False)
    return drawn


def draw_map(rows):
    schedules = data.values(rows, "schedule")
    columns = min(4, len(schedules))
    figure, axes = style.figure(
        2 * -(-len(schedules) // columns), columns, height=1.6, sharex=True, sharey=True
    )
    counts = {"all_counted": "all counted", "armed_before": "run alone"}
    norm = ratio_colours([speed_up(row, counted) for row in rows for counted in counts])
    cases = [(schedule, counted) for counted in counts for schedule in schedules]
    for index, (schedule, counted) in enumerate(cases):
        panel = axes[index // columns][index % columns]
        found = data.select(rows, schedule=schedule)
        drawn = heat(panel, found, "block_bytes", "noise", lambda row: speed_up(row, counted), norm)
        panel.set_xticklabels(
            [
                style.bytes_text(int(block)).replace(" ", "").replace("iB", "")
                for block in data.values(found, "block_bytes")
            ]
        )
        panel.tick_params(labelsize=7.5)
        panel.set_yticklabels(data.values(found, "noise"))
        panel.set_title(f"{schedule}, {counts[counted]}", fontsize=7)
    for panel in axes[-1]:
        panel.set_xlabel("block, KiB or MiB")
    for row in axes:
        row[0].set_ylabel("preemptions/s, or\na busy neighbour")
    figure.colorbar(
        drawn,
        ax=axes,
        label="CPU-driven time / preposted time",
        ticks=[0.5, 0.8, 1, 2, 5, 10, 20],
        format="%g",
        shrink=0.5,
    )
    return figure


def map_claims(rows):
    says = Statement(
        "offload",
        "offload “would mitigate” that a preempted relay stalls its sender (not measured there)",
        f"{PUSHING}, 5.2.1",
        CONSTRUCTION,
    )

    def quiet(row):
        return data.one(rows, schedule=row["schedule"], block_bytes=row["block_bytes"], noise=0)

    slower = [
        (row["schedule"], row["block_bytes"])
        for noise in (PREEMPTIONS[-1], NEIGHBOUR)
        for row in data.select(rows, noise=noise)
        if speed_up(row) <= speed_up(quiet(row))
    ]
    yield says.holds(
        (
            "every schedule and block size: gain with the most preemptions, or a busy neighbour,"
            " beside none"
        ),
        "larger",
        f"larger in all but {len(slower)}",
        not slower,
    )
    neighbours = [
        float(row["cpu_mean_us"]) / float(quiet(row)["cpu_mean_us"])
        for row in data.select(rows, noise=NEIGHBOUR)
    ]
    yield says.ours.between(
        (
            "CPU-driven with a busy neighbour on each core / without, from"
            f" {min(neighbours):.2f} up, at most"
        ),
        1,
        2,
        max(neighbours),
    )
    pays = Statement("offload", "preposting pays with every block size and any noise", OURS, OWN)
    for counted, case, why in (
        (
            "all_counted",
            "arming and detection counted",
            (
                "Arming writes three WQEs per block of a chain's relay before the first byte moves,"
                " and a chain has little to gain without noise (lower half). A third of them are"
                " receives, which the CPU-driven side posts before its start as well, uncounted."
                " Large blocks have next to nothing to gain in any schedule, and detection alone"
                " can be more."
            ),
        ),
        ("armed_before", "armed before the message is there, the end seen for nothing", ""),
    ):
        losses = [row for row in rows if speed_up(row, counted) < 1]
        worst = min(rows, key=lambda row: speed_up(row, counted))
        yield pays.holds(
            f"{len(rows)} cases: CPU-driven / preposted time, {case}",
            "never below 1",
            f"{speed_up(worst, counted):.3f} at least ({worst['schedule']},"
            f" {style.bytes_text(int(worst['block_bytes']))}); below 1 in {len(losses)}"
            + (f" ({', '.join(data.values(losses, 'schedule'))})" if losses else ""),
            not losses,
            why,
        )


def map_remarks(rows):
    def gain(block):
        return 100 * max(
            speed_up(row, "armed_before") - 1
            for row in data.select(rows, block_bytes=block, noise=0)
        )

    def times_noise(row):
        return speed_up(row) / speed_up(
            data.one(rows, schedule=row["schedule"], block_bytes=row["block_bytes"], noise=0)
        )

    most = sorted(
        data.select(rows, block_bytes=MAP_BLOCKS[0], noise=PREEMPTIONS[-1]),
        key=times_noise,
        reverse=True,
    )
    factors = ", ".join(f"`{row['schedule']}` {times_noise(row):.1f} times" for row in most[:4])
    small = data.one(rows, schedule="binomial_pipeline", block_bytes=MAP_BLOCKS[0], noise=0)
    quiet = ", ".join(
        f"{speed_up(row):.2f} with {style.bytes_text(block)}"
        for block in MAP_BLOCKS
        for row in [data.one(rows, schedule="binomial_pipeline", block_bytes=block, noise=0)]
    )
    losses = [row for row in rows if speed_up(row) < 1]
    blocks = {}  # by schedule
    for row in losses:
        blocks.setdefault(row["schedule"], {}).setdefault(style.bytes_text(int(row["block_bytes"])))
    lost = "; ".join(f"`{schedule}` with {', '.join(its)}" for schedule, its in blocks.items())
    noisiest = max(int(row["noise"]) for row in losses)
    return (
        f"With quiet hosts, all counted, the pipeline gains by a factor of {quiet}. Armed before,"
        f" all schedules together gain at most {gain(MiB):.1f} % with 1 MiB, and"
        f" {gain(4 * MiB):.1f} % with 4 MiB. Small blocks gain by the host's reaction to each;"
        " noise multiplies it most in schedules in which a node has many neighbours:"
        f" {factors} with blocks of {style.bytes_text(MAP_BLOCKS[0])} and"
        f" {PREEMPTIONS[-1]} preemptions/s. Arming is what preposting pays with:"
        f" {float(small['arming_us']):,.0f} us beside a run of {float(small['offload_us']):,.0f} us"
        f" for the pipeline with blocks of {style.bytes_text(MAP_BLOCKS[0])}. It loses by that"
        f" where there is little to gain, in {len(losses)} of {len(rows)} cases, all with at most"
        f" {noisiest} preemptions/s: {lost}. Whoever can arm before the message is there has the"
        " lower half."
    )


# What it hangs on: the assumed costs of a WAIT and of a completion.
WAITS = ("50ns", "200ns", "1us", "3us", "10us")
REACTIONS = ("185ns", "400ns")
COMPLETIONS = ("100ns", "185ns", "400ns", "2us", "5us")
ASSUMED_BLOCKS = (16 * KiB, 64 * KiB, MiB)


def assumed_rows(simulator, quick):
    cases = [
        (block, wait, completion)
        for block in ((MiB,) if quick else ASSUMED_BLOCKS)
        for completion in COMPLETIONS
        for wait in WAITS
    ]
    runs = [
        Run(
            Plan(8, 16 * MiB, block),
            BASE.but(nic__wait=wait, host__completion=completion, host__credit=completion),
        )
        for block, wait, completion in cases
    ]
    return [
        {
            "clock": "modelled",
            "profile": "fractus, no costs per message, changed",
            "block_bytes": block,
            "nic_wait": wait,
            "host_completion": completion,
            "cpu_us": data.microseconds(result.cpu.completion),
            **offload_columns(result.offload, result.cpu.completion),
        }
        for (block, wait, completion), result in zip(cases, simulator.simulate(runs))
    ]


def draw_assumed(rows):
    blocks = data.values(rows, "block_bytes")
    figure, axes = style.figure(1, len(blocks), sharey=True, height=2.6)
    norm = style.matplotlib.colors.TwoSlopeNorm(1, 0.5, 2)
    for panel, block in zip(axes[0], blocks):
        found = data.select(rows, block_bytes=block)
        image = [
            [speed_up(row) for row in data.select(found, host_completion=completion)]
            for completion in COMPLETIONS
        ]
        drawn = panel.pcolormesh(
            range(len(WAITS)),
            range(len(COMPLETIONS)),
            image,
            cmap="PuOr_r",
            norm=norm,
            shading="nearest",
        )
        for y, values in enumerate(image):
            for x, value in enumerate(values):
                panel.text(
                    x,
                    y,
                    f"{value:.2f}",
                    ha="center",
                    va="center",
                    fontsize=7,
                    color="white" if value > 1.75 or value < 0.6 else "black",
                )
        panel.set_xticks(range(len(WAITS)), WAITS)
        panel.set_yticks(range(len(COMPLETIONS)), COMPLETIONS)
        panel.grid(False)
        panel.set_title(f"blocks of {style.bytes_text(int(block))}")
        panel.set_xlabel("NIC: a WAIT")
    axes[0][0].set_ylabel("host: a completion")
    figure.colorbar(
        drawn, ax=axes, label="CPU-driven / preposted", extend="both", ticks=[0.5, 0.75, 1, 1.5, 2]
    )
    return figure


def assumed_claims(rows):
    def gain(block, wait, completion):
        return speed_up(
            data.one(rows, block_bytes=block, nic_wait=wait, host_completion=completion)
        )

    pays = Statement(
        "offload",
        (
            "preposting pays without noise, too, by the profile's numbers, and no longer with slow"
            " WAITs"
        ),
        OURS,
        OWN,
    )
    for block, reaction in itertools.product(ASSUMED_BLOCKS, REACTIONS):
        completion = reaction.replace("ns", " ns")
        found = gain(block, "200ns", reaction)
        yield pays.holds(
            f"{style.bytes_text(block)}: WAIT 200 ns, completion {completion}",
            "above 1",
            f"{found:.3f}",
            found > 1,
        )
        for wait in ("1us", "3us"):
            found = gain(block, wait, reaction)
            case = (
                f"{style.bytes_text(block)}: WAIT {wait.replace('us', ' us')}, completion"
                f" {completion}"
            )
            yield pays.holds(case, "below 1", f"{found:.3f}", found < 1)


def assumed_remarks(rows):
    def lost(wait):
        return words.percent(
            1 - speed_up(row)
            for row in data.select(rows, nic_wait=wait, host_completion=REACTIONS[0])
        )

    return (
        "Both costs are assumed in all profiles, and they decide. With the profile's host, arming"
        " counted and no noise, preposting is slower with a WAIT of 1 us already: it has"
        f" {lost('1us')} less bandwidth than the CPU-driven side, by block size, and with one of 3"
        f" us {lost('3us')} less. Whoever has a card should measure this number first."
    )


def map_figure(name, reaction, caption):
    return Figure(
        name,
        f"fractus, {reaction.replace('ns', ' ns')} for a completion or credit",
        caption,
        functools.partial(map_rows, reaction=reaction),
        ("schedule", "block_bytes", "noise"),
        draw_map,
        None,
        map_claims,
        map_remarks,
    )


FIGURES = [
    map_figure(
        "offload-map",
        "185ns",
        (
            "Beyond the paper: when offload pays. CPU-driven time / preposted time, 16 nodes, 16"
            " MiB, by block size and noise; upper half: all counted; lower half: the run alone, as"
            f" if all was armed before and nobody looked for the end; bold: below 1. {COUNTED} Not"
            " counted on the CPU-driven side: receives that no credit grants (all of sequential,"
            " chains and trees, and of credits themselves), posted before the start, 100 ns each."
            " Noise: preemptions of 100 us, so many per second and core, means of"
            f" {len(SEEDS)} seeds; or on each core a busy neighbour, who has every other slice of"
            f" {SLICE} of a host that polls (docs/simulate.md), in step on all hosts, from which"
            " those are spared that sleep. CPU-driven hosts wait hybrid. The credits are `--ready"
            " auto`'s. Rack schedules have 4 racks of 4 with full uplinks, and their topology has"
            " no limit of ports both ways."
        ),
    ),
    map_figure(
        "offload-map-400",
        "400ns",
        (
            "The same with the larger value for a host's reaction, which Table 1 gives if its stall"
            " is taken for a cost of each block ([breakdown](#breakdown)). Which of the two is"
            " nearer to the truth is not known."
        ),
    ),
    Figure(
        "offload-assumptions",
        "fractus, two of its costs changed",
        (
            "What the map hangs on: the same ratio without noise, 8 nodes, 16 MiB, binomial"
            " pipeline, by what a WAIT takes (assumed in the profile: 200 ns) and what a host's"
            f" reaction to a completion or credit takes (185 ns in the profile). {COUNTED} The"
            " ratio without arming and detection is in the data."
        ),
        assumed_rows,
        ("block_bytes", "nic_wait", "host_completion"),
        draw_assumed,
        None,
        assumed_claims,
        assumed_remarks,
    ),
]
