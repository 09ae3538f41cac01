# SPDX-License-Identifier: Apache-2.0
"""scripts/figures: makes the figures of docs/figures.md, or checks that page,
pictures and data belong together."""

import argparse
import pathlib
import re
import shutil
import sys
import tempfile
import time

from . import data, page, quotes
from .families import FIGURES
from .simulator import SOURCE, CommandFailed, Simulator

DESCRIPTION = """Makes the data (CSV), pictures (SVG) and tables of docs/figures.md. All but one of
them are modelled: `prepost simulate` says how long transfers take on the clusters of
examples/profiles. The last one, what that costs, is measured on this machine, which should be
idle."""


ELSEWHERE = {"loggops"}  # data beside ours that other commands write: scripts/loggops-check


class Places:
    """Where things are written: in the repository, or below a folder."""

    def __init__(self, out):
        self.data = out / "data" if out else SOURCE / "bench" / "figures" / "data"
        self.pictures = (
            out / "images" / "figures" if out else SOURCE / "docs" / "images" / "figures"
        )
        self.page = out / "figures.md" if out else SOURCE / "docs" / "figures.md"

    def make(self):
        for folder in (self.data, self.pictures):
            folder.mkdir(parents=True, exist_ok=True)

    def csv(self, figure):
        return self.data / f"{figure.name}.csv"

    def svg(self, figure):
        return self.pictures / f"{figure.name}.svg"


def description(figure, places):
    """What a picture's metadata say; with it a picture shows of which data it is."""
    return (
        f"{'measured' if figure.is_measured else 'modelled'}; {figure.name}; data sha256"
        f" {data.digest(places.csv(figure))}"
    )


def draw(figure, places):
    if figure.draw:
        from . import style  # only here: data and tables can be made without matplotlib

        places.svg(figure).write_text(
            style.svg(
                figure.draw(data.read(places.csv(figure))),
                figure.note(),
                description(figure, places),
            )
        )


def claims_of(figure, places):
    return list(figure.claims(data.read(places.csv(figure)))) if figure.claims else []


def blocks_of(places):
    """All blocks of the page, from the data; and what is wrong with the claims."""
    claims = [(figure, claims_of(figure, places)) for figure in FIGURES]
    blocks = {
        figure.name: page.block(figure, data.read(places.csv(figure)), its, figure.draw is not None)
        for figure, its in claims
    }
    blocks["claims"] = page.summary([(figure.name, its) for figure, its in claims])
    blocks["counts"] = page.counts([claim for _, its in claims for claim in its])
    problems = [
        f"{figure.name}: {claim.problem()}"
        for figure, its in claims
        for claim in its
        if claim.problem()
    ]
    return blocks, problems


def check(places):
    """What does not belong together, in words."""
    missing = [figure.name for figure in FIGURES if not places.csv(figure).exists()]
    if missing:
        return [f"there are no data of {', '.join(missing)}"]
    blocks, problems = blocks_of(places)
    if page.replace(places.page.read_text(), blocks) != places.page.read_text():
        problems.append(f"{places.page.name} does not have what the data say")
    problems += [
        f"{places.page.name}: {problem}" for problem in quotes.problems(places.page.read_text())
    ]
    problems += [
        f"{places.page.name}:{line}: '{result}' is written by hand: a figure's remarks have it from"
        " the data"
        for line, result in page.results_by_hand(places.page.read_text())
    ]
    for figure in FIGURES:
        if not figure.draw:
            continue
        found = (
            re.search(r"data sha256 \w+", places.svg(figure).read_text())
            if places.svg(figure).exists()
            else None
        )
        if not found or found[0] not in description(figure, places):
            problems.append(
                f"{places.svg(figure).name} is not of the data in {places.csv(figure).name}"
            )
    wanted = {figure.name for figure in FIGURES} | ELSEWHERE
    problems += [
        f"{path} belongs to no figure"
        for path in sorted(places.data.glob("*.csv")) + sorted(places.pictures.glob("*.svg"))
        if path.stem not in wanted
    ]
    return problems


def simulate(figures, places, flags):
    with tempfile.TemporaryDirectory(prefix="figures-") as folder:
        simulator = Simulator(flags.command, folder, flags.jobs)
        for figure in figures:
            if figure.is_measured and flags.modelled:
                if not places.csv(figure).exists():  # those of the repository
                    shutil.copy(Places(None).csv(figure), places.csv(figure))
                continue
            begin, before = time.monotonic(), simulator.count
            rows = figure.rows(simulator, flags.quick)
            data.write(places.csv(figure), rows)
            print(
                (
                    f"{figure.name}: {len(rows)} rows of {simulator.count - before} runs in"
                    f" {time.monotonic() - begin:.1f} s"
                ),
                flush=True,
            )


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="scripts/figures",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="only this figure; may be given again"
    )
    parser.add_argument(
        "--out",
        type=pathlib.Path,
        metavar="DIR",
        help="write below this folder, not into the repository",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a few small sizes of each figure, without checking claims; needs --out",
    )
    parser.add_argument(
        "--from-data",
        action="store_true",
        help="pictures and tables from the data that are there; simulate nothing",
    )
    parser.add_argument(
        "--modelled",
        action="store_true",
        help="leave what is measured on this machine's clock as it is",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="only say whether data, pictures and page belong together, and claims hold",
    )
    parser.add_argument("--list", action="store_true", help="print the figures' names")
    parser.add_argument(
        "--command",
        type=pathlib.Path,
        metavar="PATH",
        help="the prepost to run [build/bench/bin/prepost, built before]",
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="runs at the same time [all cores]")
    flags = parser.parse_args(arguments)
    names = [figure.name for figure in FIGURES]
    for name in flags.only or []:
        if name not in names:
            parser.error(f"--only: there is no figure '{name}', there are: {', '.join(names)}")
    if flags.quick and not flags.out:
        parser.error("--quick needs --out: the repository has the full figures")
    return flags


def main(arguments):
    flags = parse(arguments)
    if flags.list:
        print("\n".join(figure.name for figure in FIGURES))
        return 0
    places = Places(flags.out)
    figures = [figure for figure in FIGURES if not flags.only or figure.name in flags.only]
    if not flags.check:
        places.make()
        try:
            if not flags.from_data:
                simulate(figures, places, flags)
        except CommandFailed as failed:
            print(f"figures: {failed}", file=sys.stderr)
            return 1
        for figure in figures:
            if places.csv(figure).exists():
                draw(figure, places)
    if flags.quick:
        return 0
    if flags.out and not flags.check:
        places.page.write_text((SOURCE / "docs" / "figures.md").read_text())
    if not flags.check and all(places.csv(figure).exists() for figure in FIGURES):
        blocks, _ = blocks_of(places)
        places.page.write_text(page.replace(places.page.read_text(), blocks))
    problems = check(places) if not (flags.out and flags.only) else []
    for problem in problems:
        print(f"figures: {problem}", file=sys.stderr)
    if flags.check and not problems:
        print(
            f"figures: page, pictures and data of {len(FIGURES)} tables belong together, and what"
            " disagrees has its reason"
        )
    return 1 if problems else 0
