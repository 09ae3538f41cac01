# SPDX-License-Identifier: Apache-2.0
"""Long paths: what TCP gets of one by round trip, loss and streams, and through a policer: the TCP
side of Kissel and Swany's figures 6, 8 and 9. At 10 Gb/s modelled; at 400 Mbit/s and below measured
over the link of bench/network/sites.py, and modelled beside it."""

import csv
import json
import os
import subprocess
import sys

from . import data, style
from .claims import KISSEL, OURS, OWN, Statement
from .figure import Figure
from .simulator import MiB, SOURCE, Plan, Run, no_costs

PROFILE = no_costs("tcp-10g")
MTU = 9000
PAYLOAD = (MTU - 52) / (MTU + 14)  # of an Ethernet frame
GOODPUT = 9.9e9 / 8  # of 10 Gb/s with packets of 9000 bytes, as the paper has it
EDGES_MS = 4  # round trip of both
WAN_MS = (0, 10, 20, 30, 40, 50, 60, 80, 100, 120)
LOSSES = (0, 1e-5, 1e-4)
STREAMS = (1, 8)
SECONDS = 60  # of a transfer at full rate
POLICED = 5e9 / 8
BURST = 1e6
PACE = 0.97
SCRIPT = SOURCE / "bench" / "network" / "path_rates.py"


def topology(
    rate, round_trip_ms, loss, streams, jitter_ms=0.0, policed=None, pace=None, queue=None
):
    """Two hosts, and that path between them."""
    path = {
        "between": ["a", "b"],
        "rate": rate,
        "rtt": round_trip_ms / 1e3,
        "jitter": jitter_ms / 1e3,
        "loss": loss,
        "streams": streams,
        "mtu": MTU,
        **({"police": {"rate": policed, "burst": BURST}} if policed else {}),
        **({"pace": pace} if pace else {}),
        **({"queue": queue} if queue else {}),
    }
    sites = [{"name": name, "hosts": f"{name}1"} for name in "ab"]
    return json.dumps(
        {
            "format": "prepost.topology",
            "version": "1.1",
            "host_rate": 2 * rate,
            "sites": sites,
            "paths": [path],
        }
    )


def run_of(path, bytes_):
    """A message over it, whose blocks are not what limits it."""
    plan = Plan(2, int(bytes_), block_bytes=16 * MiB, algorithm="chain", topology=path)
    return Run(plan, PROFILE, "cpu", topology=path)


def seconds(result):
    return result.cpu.completion / 1e12


def rows(simulator, quick):
    cases = [
        (wan, loss, streams)
        for wan in (WAN_MS[:2] if quick else WAN_MS)
        for loss in (LOSSES[:2] if quick else LOSSES)
        for streams in STREAMS
    ]
    runs = [
        run_of(topology(GOODPUT, wan + EDGES_MS, loss, streams, 0.2), GOODPUT * SECONDS)
        for wan, loss, streams in cases
    ]
    return [
        {
            "clock": "modelled",
            "profile": "tcp-10g, its links alone",
            "wan_ms": wan,
            "loss": f"{loss:g}",
            "streams": streams,
            "gbit_per_s": data.ratio(GOODPUT * 8 * SECONDS / 1e9 / seconds(result)),
        }
        for (wan, loss, streams), result in zip(cases, simulator.simulate(runs))
    ]


def policer_rows(simulator, quick):
    cases = [
        (streams, paced)
        for streams in (STREAMS[:1] if quick else STREAMS)
        for paced in (False, True)
    ]
    runs = [
        run_of(
            topology(
                GOODPUT, 120, 0, streams, policed=POLICED, pace=PACE * POLICED if paced else None
            ),
            POLICED * SECONDS,
        )
        for streams, paced in cases
    ]
    return [
        {
            "clock": "modelled",
            "profile": "tcp-10g, its links alone",
            "streams": streams,
            "paced": "yes" if paced else "no",
            "gbit_per_s": data.ratio(POLICED * 8 * SECONDS / 1e9 / seconds(result)),
        }
        for (streams, paced), result in zip(cases, simulator.simulate(runs))
    ]


def measured_rows(simulator, quick):
    words = [sys.executable, SCRIPT]
    if quick:
        words += ["--round-trips", "30", "--losses", "0", "--streams", "8", "--no-policer"]
    if os.geteuid() != 0:
        words = ["sudo", *words]
    done = subprocess.run(list(map(str, words)), stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"figures: {SCRIPT.name} failed")
    found = list(csv.DictReader(done.stdout.splitlines()))
    runs = []
    for row in found:
        rate, policed = 400e6 / 8 * PAYLOAD, 100e6 / 8 * PAYLOAD
        is_policed = row["kind"] != "path"
        path = topology(
            rate,
            float(row["round_trip_ms"]),
            float(row["loss"]),
            (
                int(row["streams"]) if float(row["round_trip_ms"]) >= 5 else 1
            ),  # sessions open several on long paths only
            policed=policed if is_policed else None,
            pace=PACE * policed if row["kind"] == "policed and paced" else None,
        )
        runs.append(run_of(path, (100e6 if is_policed else 400e6) / 8 * 8))
    return [
        {
            "clock": "real",
            **row,
            "modelled_mbit_per_s": (
                f"{(100 if row['kind'] != 'path' else 400) * 8 / seconds(result):.1f}"
            ),
        }
        for row, result in zip(found, simulator.simulate(runs))
    ]


def rate(row):
    return float(row["gbit_per_s"])


def at(rows_, wan, loss, streams):
    return rate(data.one(rows_, wan_ms=wan, loss=f"{loss:g}", streams=streams))


def draw(rows_):
    figure, axes = style.figure(1, len(LOSSES), height=2.4, sharey="row")
    for panel, loss in zip(axes[0], LOSSES):
        for index, streams in enumerate(STREAMS):
            found = data.select(rows_, loss=f"{loss:g}", streams=streams)
            label = "1 stream" if streams == 1 else f"{streams} streams"
            style.line(
                panel, [float(row["wan_ms"]) for row in found], list(map(rate, found)), index, label
            )
        panel.set_title("no loss" if loss == 0 else f"loss {100 * loss:g} %")
        panel.set_xlabel("round trip of the long path, ms")
        panel.set_ylim(0, 11)
    axes[0][0].set_ylabel("Gb/s")
    style.legend_below(figure, axes[0][0])
    return figure


def measured_draw(rows_):
    found = data.select(rows_, kind="path")
    losses = data.values(found, "loss")
    figure, axes = style.figure(1, len(losses), height=2.4, sharey="row")
    for panel, loss in zip(axes[0], losses):
        for index, streams in enumerate(data.values(found, "streams")):
            some = data.select(found, loss=loss, streams=streams)
            trips = [float(row["round_trip_ms"]) for row in some]
            label = "1 stream" if streams == "1" else f"{streams} streams"
            style.line(
                panel,
                trips,
                [float(row["mbit_per_s"]) for row in some],
                index,
                f"{label}, measured",
            )
            style.line(
                panel,
                trips,
                [float(row["modelled_mbit_per_s"]) for row in some],
                index,
                f"{label}, modelled",
                linestyle="--",
                markerfacecolor="white",
            )
        panel.set_title("no loss" if loss == "0" else f"loss {100 * float(loss):g} %")
        panel.set_xlabel("round trip, ms")
        panel.set_ylim(0, 440)
    axes[0][0].set_ylabel("Mbit/s")
    style.legend_below(figure, axes[0][0])
    return figure


def policer_table(rows_):
    return ("streams", "paced to 97 % of the policer", "Gb/s"), [
        (row["streams"], row["paced"], f"{rate(row):.2f}") for row in rows_
    ]


def measured_table(rows_):
    return (
        "streams",
        "through the policer of 100 Mbit/s",
        "measured, Mbit/s",
        "modelled, Mbit/s",
    ), [
        (row["streams"], row["kind"], row["mbit_per_s"], row["modelled_mbit_per_s"])
        for row in rows_
        if row["kind"] != "path"
    ]


def claims(rows_):
    clean = Statement(
        "Kissel's figure 6a",
        (
            "at low latency without loss one TCP stream and parallel ones are on par,"
            " “approximately 9.3Gb/s”; at 120 ms Phoebus is 5 % better than parallel streams and 20"
            " % than one"
        ),
        f"{KISSEL}, V.A",
    )
    for streams in STREAMS:
        yield clean.constructed.near(
            f"0 ms, streams: {streams}",
            9.3,
            at(rows_, 0, 0, streams),
            0.1,
            "Gb/s",
            WHY_RATE.get(streams, ""),
        )
    for streams, above in ((8, 1.05), (1, 1.2)):
        yield clean.near(
            f"120 ms, streams: {streams}: of what it gets at 0 ms",
            1 / above,
            at(rows_, 120, 0, streams) / at(rows_, 0, 0, streams),
            0.05,
            why=WHY_CLEAN.get(streams, ""),
        )
    lossy = Statement(
        "Kissel's figures 6b and 6c",
        (
            "parallel streams mitigate loss and latency; with a loss of 0.001 % one stream over"
            " Phoebus, which comes near parallel streams at 120 ms, outperforms one of TCP “by over"
            " 300%”; with 0.01 % there is “over a 6-fold improvement in the highest latency and"
            " loss case”"
        ),
        f"{KISSEL}, V.A",
    )
    one, parallel = at(rows_, 120, 1e-5, 1), at(rows_, 120, 1e-5, 8)
    yield lossy.holds(
        "0.001 %, 120 ms: parallel streams beside one",
        "more than 3 times as much",
        f"{parallel:.2f} and {one:.2f} Gb/s, {parallel / one:.1f} times",
        parallel > 3 * one,
    )
    worst = at(rows_, 120, 1e-4, 8)
    yield lossy.holds(
        "0.01 %, 120 ms: parallel streams, of 9.3 Gb/s",
        "less than a sixth",
        f"{worst:.2f} Gb/s, 1 / {9.3 / worst:.1f}",
        worst < 9.3 / 6,
    )
    for loss in LOSSES[1:]:
        better = [wan for wan in WAN_MS if at(rows_, wan, loss, 8) > at(rows_, wan, loss, 1)]
        yield lossy.holds(
            f"{100 * loss:g} %: round trips at which parallel streams get more than one",
            "all",
            f"{len(better)} of {len(WAN_MS)}",
            len(better) == len(WAN_MS),
        )
    figure8 = Statement(
        "Kissel's figure 8",
        (
            "“As latency increases beyond 60ms, both single and parallel TCP performance begins to"
            " drop”; before it is saturated quickly"
        ),
        f"{KISSEL}, V.B",
    )
    for streams in STREAMS:
        near, far, least = (at(rows_, wan, 0, streams) for wan in (60, 120, 0))
        yield figure8.holds(
            f"streams: {streams}: at 60 ms, of 0 ms, and at 120 ms, of 60 ms",
            "at least 0.95, and less than 1",
            f"{near / least:.3f} and {far / near:.3f}",
            near >= 0.95 * least and far < near,
        )


WHY_RATE = {}
WHY_CLEAN = {
    1: (
        "The paper's hosts have the TCP of Linux 2.6.32, whose windows begin with 3 packets; the"
        " model's begin with 10 and double until the path is full, and its hosts take no time."
    )
}


def policer_claims(rows_):
    policer = Statement(
        "Kissel's figure 9",
        (
            "through a policer of 5 Gb/s with bursts of 1 MB at 120 ms TCP “severely backs off, and"
            " even parallel TCP streams is unable to consistently saturate the path”"
        ),
        f"{KISSEL}, V.C",
    )
    for streams, most in ((1, 0.9), (8, 0.95)):
        found = rate(data.one(rows_, streams=streams, paced="no")) / 5
        yield policer.holds(
            f"streams: {streams}: of the policer's rate",
            f"less than {most}",
            f"{found:.3f}",
            found < most,
        )
    for streams in STREAMS:
        found = rate(data.one(rows_, streams=streams, paced="yes")) / 5
        yield policer.ours.holds(
            f"streams: {streams}, paced to 97 % of it: of the policer's rate",
            "at least 0.85",
            f"{found:.3f}",
            found >= 0.85,
        )


def measured_claims(rows_):
    model = Statement("the model of long paths", "it foretells what is measured", OURS, OWN)
    for kind, within, why in (
        ("path", 0.1, WHY_MEASURED.get("path", "")),
        ("policed", 0.25, WHY_MEASURED.get("policed", "")),
        ("policed and paced", 0.1, ""),
    ):
        for streams in STREAMS:
            found = data.select(rows_, kind=kind, streams=streams)
            ratios = [float(row["modelled_mbit_per_s"]) / float(row["mbit_per_s"]) for row in found]
            worst = max(ratios, key=lambda it: abs(it - 1))
            yield model.between(
                (
                    f"{kind}, streams: {streams}: modelled / measured, farthest from 1 of"
                    f" {len(ratios)}"
                ),
                1 - within,
                1 + within,
                worst,
                why=why if not 1 - within <= worst <= 1 + within else "",
            )


WHY_MEASURED = {
    "path": (
        "With 0.01 % one stream loses about five packets in eight seconds, and when the first of"
        " them is lost decides: the link and the model draw one case each."
    )
}

FIGURES = [
    Figure(
        name="wan-tcp",
        profile="tcp-10g",
        caption=(
            "What a message of 60 s gets of a path of 10 Gb/s (9.9 Gb/s of payload in packets of"
            " 9000 bytes) over TCP with CUBIC, by the path's round trip, to which edges add 4 ms,"
            " and jitter 0.2 ms; hosts take no time."
        ),
        rows=rows,
        keys=("wan_ms", "loss", "streams"),
        draw=draw,
        claims=claims,
    ),
    Figure(
        name="wan-policer",
        profile="tcp-10g",
        caption="The same at 120 ms through a policer of 5 Gb/s with bursts of 1 MB.",
        rows=policer_rows,
        keys=("streams", "paced"),
        table=policer_table,
        claims=policer_claims,
    ),
    Figure(
        name="wan-measured",
        profile="",
        caption=(
            "The same at 400 Mbit/s: messages of 8 s between two machines, over the link of"
            " bench/network/sites.py with a queue of one round trip, CUBIC, buffers that hold the"
            " path (`bench/network/path_rates.py`); and what the model says of these paths."
        ),
        rows=measured_rows,
        keys=("kind", "round_trip_ms", "loss", "streams"),
        draw=measured_draw,
        table=measured_table,
        claims=measured_claims,
        is_measured=True,
    ),
]
