# SPDX-License-Identifier: Apache-2.0
"""tests/support/pages.py: what masked() hides of two outputs, and what it does not. Catches a mask
that makes figures equal which a command prints the same every time, and links that lead nowhere and
are not found."""
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import pages  # noqa: E402

TABLE = (
    "milliseconds                cpu-driven  preposted\n"
    "  median                       5.779      4.893\n"
)
SAME = (
    ("wake-ups   118..136   8", "wake-ups   97   8"),
    ("wake-ups   118..136   8", "wake-ups   97   6..8"),
    ("requests for events during it   8..156   0", "requests for events during it   12..17   0"),
    (
        "node1  ok: 3.00 MB in 1.21 s, 2.48 MB/s, verified",
        "node1  ok: 3.00 MB in 960 ms, 3.1 MB/s, verified",
    ),
    (TABLE, TABLE.replace("5.779", "8.001").replace("4.893", "7.250")),
    (
        "1.48 by medians; by pair 0.10 to 59.22, median 1.33",
        "2.01 by medians; by pair 1.00 to 3.50, median 2.00",
    ),
    ("beside them, on 2 cores", "beside them, on 16 cores"),
    ("a line\nthat goes on", "a line that\n  goes on"),
)
OTHER = (
    ("wake-ups   118..136   8", "wake-ups   118..136   9"),
    ("requests for events during it   8..156   0", "requests for events during it   8..156   9000"),
    (
        "node1  ok: 3.00 MB in 1.21 s, 2.48 MB/s, verified",
        "node1  ok: 9.00 MB in 1.21 s, 2.48 MB/s, verified",
    ),
    (
        "node1  ok: 3.00 MB in 1.21 s, 2.48 MB/s, verified",
        "node1  ok: 3.00 MB in 1.21 s, 2.48 MB/s, no sum",
    ),
    ("doorbells during it   77   0", "doorbells during it   77   1"),
    ("completions read   168   8", "completions read   169   8"),
    ("a factor of 1.48", "a factor of 0.02"),
)


def main():
    for one, other in SAME:
        assert pages.masked(one, True) == pages.masked(other, True), (one, other)
    for one, other in OTHER:
        assert pages.masked(one, True) != pages.masked(other, True), (one, other)
    for one, other in SAME[:-1]:  # what computes prints the same everywhere
        assert pages.masked(one, False) != pages.masked(other, False), (one, other)
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder, "page.md")
        page.write_text(
            "# Why `it` is so\n\n```sh\n# no heading\n```\n"
            "[a](#why-it-is-so) [b](#no-heading) [c](page.md) [d](none.md)"
            " [e](page.md#why-it-is-so) [f](page.md#none) [g](https://example.org/none)\n"
        )
        assert list(pages.dead_links(page)) == ["#no-heading", "none.md", "page.md#none"], list(
            pages.dead_links(page)
        )


main()
