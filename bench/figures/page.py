# SPDX-License-Identifier: Apache-2.0
"""The parts of docs/figures.md between markers: pictures, captions, tables and remarks,
from the data alone."""

import itertools
import re
import textwrap

from .claims import CALIBRATION, CONSTRUCTION, KINDS, OWN, TEST

MARK = re.compile(
    r"<!-- scripts/figures writes (?P<name>[\w-]+) from here -->\n(?P<text>.*?)<!-- to here -->\n",
    re.DOTALL,
)

# What is measured or modelled: a number with a unit. Sizes, counts and the papers' figures stand in
# the text around the markers.
RESULT = re.compile(r"\d[\d.,]*(?:\s(?:to|and)\s\d[\d.,]*)?\s(?:%|[num]?s\b|times\b|[GM]bit/s|M/s)")


def table(headings, rows):
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    lines += [
        "| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows
    ]
    return "\n".join(lines) + "\n"


def fill(text, **rest):
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False, **rest)


def claims_text(claims):
    """A table for each statement, and below it the reasons of differences."""
    parts = []
    for (id_, says, where), group in itertools.groupby(
        claims, key=lambda claim: (claim.id, claim.says, claim.where)
    ):
        group = list(group)
        parts.append(fill(f"**{id_[0].upper()}{id_[1:]}**: {says} ({where}).") + "\n")
        rows = [
            [it.case, it.expected, it.obtained, it.kind, "yes" if it.agrees else "**no**"]
            for it in group
        ]
        parts.append(table(["case", "expected", "obtained", "kind", "agrees?"], rows))
        if reasons := reasons_of(group):
            parts.append(reasons)
    return "\n".join(parts)


def reasons_of(claims):
    """Why claims differ, each reason once."""
    cases = {}
    for claim in claims:
        if claim.why:
            cases.setdefault(claim.why, []).append(claim.case)
    return "".join(
        fill(f"* *{'; '.join(its)}*: {why}", subsequent_indent="  ") + "\n"
        for why, its in cases.items()
    )


def counts(claims):
    """The page's first lines: what the checks are, and how many tests agree."""
    kinds = {kind: [claim for claim in claims if claim.kind == kind] for kind in KINDS}
    agree = {kind: sum(claim.agrees for claim in its) for kind, its in kinds.items()}
    tests = len(kinds[TEST])
    return (
        "\n"
        + fill(
            f"**{tests} checks on this page test a statement of the papers: {agree[TEST]} of them"
            f" agree, and {tests - agree[TEST]} do not.** A test's case and tolerance are those of"
            " the paper's text, from before the result, and a row that disagrees is worth more"
            f" than one that was moved until it agreed. In {len(kinds[CALIBRATION])} more a number"
            " of the model was fitted to the very statement (calibrations:"
            f" {agree[CALIBRATION]} agree), {len(kinds[CONSTRUCTION])} are decided without the"
            f" model's numbers (constructions: {agree[CONSTRUCTION]} agree), and"
            f" {len(kinds[OWN])} are aims and expectations of our own ({agree[OWN]} hold)."
        )
        + "\n\n"
    )


def block(figure, rows, claims, has_picture):
    """What stands on the page for a figure."""
    parts = [f'<a id="{figure.name}"></a>\n']
    if has_picture:
        parts.append(f"![{figure.name}](images/figures/{figure.name}.svg)\n")
    parts.append(
        fill(
            f"*{figure.note()[0].upper()}{figure.note()[1:]}. {figure.caption}*"
            f" ([data](../bench/figures/data/{figure.name}.csv))"
        )
        + "\n"
    )
    if claims:
        parts.append(claims_text(claims))
    if figure.table:
        parts.append(table(*figure.table(rows)))
    if figure.remarks:
        parts.append(fill(figure.remarks(rows)) + "\n")
    return "\n" + "\n".join(parts) + "\n"


def summary(claims_of):
    """All statements, and how many checks of each kind agree: those with a number of our list, in
    its order, then the others, in the page's; in the end all together. What is our own alone is
    left out. claims_of: (figure's name, its claims)."""
    numbered, others = {}, {}
    for name, claims in claims_of:
        for claim in claims:
            rows, key = (
                (numbered, int(claim.id[1:]))
                if re.fullmatch(r"C\d+", claim.id)
                else (others, (claim.id, claim.says))
            )
            rows.setdefault(key, []).append((name, claim))
    lines = []
    for its in [numbered[key] for key in sorted(numbered)] + list(others.values()):
        found = [claim for _, claim in its]
        if any(claim.kind != OWN for claim in found):
            figures = ", ".join(
                f"[{name}](#{name})" for name in dict.fromkeys(name for name, _ in its)
            )
            id_ = found[0].id[0].upper() + found[0].id[1:]
            lines.append([id_, f"{found[0].says} ({found[0].where})", *agreeing(found), figures])
    lines.append(["all", "", *agreeing(claim for _, claims in claims_of for claim in claims), ""])
    return (
        "\n"
        + table(["", "the papers say", "tests", "calibrations", "constructions", "figure"], lines)
        + "\n"
    )


def agreeing(claims):
    """How many tests, calibrations and constructions agree: "3 of 4"."""
    claims = list(claims)
    kinds = [
        [claim.agrees for claim in claims if claim.kind == kind]
        for kind in (TEST, CALIBRATION, CONSTRUCTION)
    ]
    return [f"{sum(its)} of {len(its)}" if its else "" for its in kinds]


def replace(text, blocks):
    """`text` with the blocks of these names in place of what was between their markers. A block
    without a place is an error."""
    places = [match["name"] for match in MARK.finditer(text)]
    missing = sorted(set(blocks) - set(places))
    if missing:
        raise LookupError(f"docs/figures.md has no markers for {', '.join(missing)}")

    def put(match):
        if match["name"] not in blocks:
            return match[0]
        return (
            f"<!-- scripts/figures writes {match['name']} from here"
            f" -->\n{blocks[match['name']]}<!-- to here -->\n"
        )

    return MARK.sub(put, text)


def results_by_hand(text):
    """Results outside of the markers, which new data would leave as they are: (line, text)."""
    outside = MARK.sub(lambda match: "\n" * match[0].count("\n"), text)
    return [
        (outside.count("\n", 0, found.start()) + 1, found[0]) for found in RESULT.finditer(outside)
    ]
