# SPDX-License-Identifier: Apache-2.0
"""The parts of docs/figures.md between markers: pictures, captions, tables and remarks, from the data alone."""

import re
import textwrap

MARK = re.compile(r"<!-- scripts/figures writes (?P<name>[\w-]+) from here -->\n(?P<text>.*?)<!-- to here -->\n", re.DOTALL)

# What is measured or modelled: a number with a unit. Sizes, counts and the papers' figures stand in the text around the markers.
RESULT = re.compile(r"\d[\d.,]*(?:\s(?:to|and)\s\d[\d.,]*)?\s(?:%|[num]?s\b|times\b|[GM]bit/s|M/s)")


def table(headings, rows):
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    lines += ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def claims_table(claims):
    rows = []
    before = None
    for claim in claims:
        said = f"{claim.id}: {claim.says} ({claim.where})" if (claim.id, claim.says) != before else ""
        before = (claim.id, claim.says)
        rows.append([said, claim.case, claim.expected, claim.obtained, "yes" if claim.agrees else "**no**", claim.why])
    return table(["the paper says", "case", "expected", "obtained", "agrees?", "why not"], rows)


def block(figure, rows, claims, has_picture):
    """What stands on the page for a figure."""
    parts = [f'<a id="{figure.name}"></a>\n']
    if has_picture:
        parts.append(f"![{figure.name}](images/figures/{figure.name}.svg)\n")
    parts.append(
        f"*{figure.note()[0].upper()}{figure.note()[1:]}. {figure.caption}* ([data](../bench/figures/data/{figure.name}.csv))\n"
    )
    if claims:
        parts.append(claims_table(claims))
    if figure.table:
        parts.append(table(*figure.table(rows)))
    if figure.remarks:
        parts.append(textwrap.fill(figure.remarks(rows), 150, break_long_words=False, break_on_hyphens=False) + "\n")
    return "\n" + "\n".join(parts) + "\n"


def summary(claims_of):
    """All statements with a number of the papers' list, in its order; claims_of: (figure's name, its claims)."""
    rows = {}
    for name, claims in claims_of:
        for claim in claims:
            if re.fullmatch(r"C\d+", claim.id):
                rows.setdefault(int(claim.id[1:]), []).append((name, claim))
    lines = []
    for key in sorted(rows):
        found = [claim for _, claim in rows[key]]
        figures = ", ".join(f"[{name}](#{name})" for name in dict.fromkeys(name for name, _ in rows[key]))
        statements = list(dict.fromkeys(claim.says for claim in found))
        says = "; ".join(it for it in statements if not any(other != it and other.startswith(it) for other in statements))
        where = "; ".join(dict.fromkeys(part for claim in found for part in claim.where.split("; ")))
        agree = sum(claim.agrees for claim in found)
        verdict = "yes" if agree == len(found) else f"**in {agree} of {len(found)}**" if agree else "**no**"
        cases = {}  # by reason
        for claim in found:
            if claim.why:
                cases.setdefault(claim.why, []).append(claim.case)
        why = " ".join(f"*{'; '.join(its)}*: {reason}" for reason, its in cases.items())
        lines.append([f"C{key}", f"{says} ({where})", len(found), verdict, why, figures])
    return "\n" + table(["", "the papers say", "checks", "agrees?", "why not", "figure"], lines) + "\n"


def replace(text, blocks):
    """`text` with the blocks of these names in place of what was between their markers. A block without a place is an error."""
    places = [match["name"] for match in MARK.finditer(text)]
    missing = sorted(set(blocks) - set(places))
    if missing:
        raise LookupError(f"docs/figures.md has no markers for {', '.join(missing)}")

    def put(match):
        if match["name"] not in blocks:
            return match[0]
        return f"<!-- scripts/figures writes {match['name']} from here -->\n{blocks[match['name']]}<!-- to here -->\n"

    return MARK.sub(put, text)


def results_by_hand(text):
    """Results outside of the markers, which new data would leave as they are: (line, text)."""
    outside = MARK.sub(lambda match: "\n" * match[0].count("\n"), text)
    return [(outside.count("\n", 0, found.start()) + 1, found[0]) for found in RESULT.finditer(outside)]
