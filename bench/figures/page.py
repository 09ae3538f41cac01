# SPDX-License-Identifier: Apache-2.0
"""The parts of docs/figures.md between markers: pictures, captions and tables, from the data alone."""
import re

MARK = re.compile(r"<!-- scripts/figures writes (?P<name>[\w-]+) from here -->\n(?P<text>.*?)<!-- to here -->\n", re.DOTALL)


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
    parts.append(f"*{figure.note()[0].upper()}{figure.note()[1:]}. {figure.caption}* ([data](../bench/figures/data/{figure.name}.csv))\n")
    if claims:
        parts.append(claims_table(claims))
    if figure.table:
        parts.append(table(*figure.table(rows)))
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
        says = "; ".join(dict.fromkeys(claim.says for claim in found))
        where = "; ".join(dict.fromkeys(claim.where for claim in found))
        agree = sum(claim.agrees for claim in found)
        verdict = "yes" if agree == len(found) else f"**in {agree} of {len(found)}**" if agree else "**no**"
        why = " ".join(dict.fromkeys(claim.why for claim in found if claim.why))
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
