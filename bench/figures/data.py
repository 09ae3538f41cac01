# SPDX-License-Identifier: Apache-2.0
"""The CSV files of figures: one row per run, what was run first, then what came out. Times are
exact: picoseconds as microseconds with six decimals."""

import csv
import hashlib
import io
import pathlib


def microseconds(picoseconds):
    """ "83.88608": exact, without needless zeros."""
    if picoseconds is None:
        return ""
    whole, part = divmod(picoseconds, 10**6)
    return f"{whole}.{part:06d}".rstrip("0").rstrip(".")


def signed_microseconds(picoseconds):
    return ("-" if picoseconds < 0 else "") + microseconds(abs(picoseconds))


def ratio(value):
    return f"{value:.6g}"


def text_of(rows):
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow(row)
    return out.getvalue()


def write(path, rows):
    pathlib.Path(path).write_text(text_of(rows))


def read(path):
    """Rows of texts; use `float(row["cpu_us"])`."""
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def select(rows, **wanted):
    """The rows whose columns are these."""
    for key, value in wanted.items():
        text = str(value)
        rows = [row for row in rows if row[key] == text]
    return rows


def one(rows, **wanted):
    found = select(rows, **wanted)
    if len(found) != 1:
        raise LookupError(f"{len(found)} rows have {wanted}, expected 1")
    return found[0]


def values(rows, column):
    """The different values of a column, in the order of the rows."""
    return list(dict.fromkeys(row[column] for row in rows))
