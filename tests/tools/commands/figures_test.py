# SPDX-License-Identifier: Apache-2.0
"""scripts/figures: COMMAND SOURCE-FOLDER.

The committed page, pictures and data belong together, and every statement of a paper agrees or has
its reason; damage to any of them is noticed. The same data give the same pictures, byte for byte.
With PREPOST_TEST_LONG small cases of all figures are simulated again: their rows are the committed
ones, to the letter, so a change of the model without new figures shows."""

import csv
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

COMMAND, SOURCE = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
DATA, PICTURES = SOURCE / "bench" / "figures" / "data", SOURCE / "docs" / "images" / "figures"
sys.path.insert(0, str(SOURCE / "bench"))
sys.dont_write_bytecode = True
from figures import main, quotes  # noqa: E402 (after its folder is known)

AS_NEW = (
    "the model gives other times than the committed figures have: if it should, run scripts/figures"
    " --modelled and read the difference"
)


def figures(*arguments):
    return subprocess.run(
        [SOURCE / "scripts" / "figures", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=280,
    )


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


class Committed(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.out = pathlib.Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)

    def copy(self):
        shutil.copytree(DATA, self.out / "data")
        shutil.copytree(PICTURES, self.out / "images" / "figures")
        shutil.copy(SOURCE / "docs" / "figures.md", self.out / "figures.md")

    def damaged(self, path, pattern, replacement):
        """What --check says when the first `pattern` in this file is another text."""
        file = self.out / path
        text = file.read_text()
        new = re.sub(pattern, replacement, text, count=1)
        self.assertTrue(text != new, f"{path} has no {pattern}")
        file.write_text(new)
        said = self.check()
        file.write_text(text)
        return "\n".join(said)

    def check(self):
        return main.check(main.Places(self.out))

    def test_belongs_together(self):
        self.assertEqual(main.check(main.Places(None)), [])

    def test_damage_is_noticed(self):
        self.copy()
        # A time of C2 and C4: the claims no longer hold, the page is not of these data,
        # nor is the picture.
        said = self.damaged("data/schedules.csv", r"(binomial_pipeline,8,256),258,", r"\1,268,")
        self.assertIn("C4, n = 8, k = 256", said)
        self.assertIn("figures.md does not have what the data say", said)
        self.assertIn("schedules.svg is not of the data", said)
        self.assertIn(
            "does not have what the data say",
            self.damaged("figures.md", r"\| yes \|", "| **no** |"),
        )
        self.assertIn(
            "latency.svg is not of the data",
            self.damaged("images/figures/latency.svg", "sha256 .", "sha256 x"),
        )
        # The delay costs a little more than its length: no tolerance is left.
        self.assertIn(
            "n = 16, CPU-driven, one delay",
            self.damaged("data/windows.csv", r"(16,window=1,1,67,67,67),71\n", r"\1,71.2\n"),
        )
        # A case in which preposting does not pay even when all was armed before.
        self.assertIn(
            "armed before the message is there",
            self.damaged(
                "data/offload-map.csv", r"(chain,4194304,0,.*),1\.\d+,(\d\.\d+\n)", r"\1,0.999,\2"
            ),
        )
        # A time that only the text below a figure mentions; and a result that somebody writes into
        # the text by hand.
        self.assertIn(
            "figures.md does not have what the data say",
            self.damaged(
                "data/offload-assumptions.csv", r"(,16384,1us,185ns,.*),0\.77\d+\n", r"\1,0.95\n"
            ),
        )
        self.assertRegex(
            self.damaged(
                "figures.md",
                r"\n(    scripts/figures --quick)",
                r"\nThey get 98.6 to 99.9 % of it.\1",
            ),
            r"figures.md:\d+: '98.6 to 99.9 %' is written by hand",
        )
        self.assertRegex(
            self.damaged(
                "figures.md",
                r"\n(\* \*\*Hosts\.\*\*)",
                r"\n* They write “at full speed” (RDMC, “Pushing Bytes”, 4.2).\n\1",
            ),
            (
                r"figures.md: \d+: “at full speed” is in quotation marks, and quotes.py does not"
                r" have it"
            ),
        )
        # More than the uplinks of racks can carry, by the bytes that went over them.
        self.assertIn(
            "apt, all 36 cases: beside what the busiest link leaves",
            self.damaged(
                "data/concurrent.csv",
                r"(,apt,100 MB,all,14,14,3,[\d.]+,[\d.]+),18\.\d+,",
                r"\1,18.7,",
            ),
        )
        # A difference that is gone, but whose reason still stands there.
        self.assertIn(
            "a reason for a difference is given",
            self.damaged("data/copies.csv", r"(binomial_pipeline,512),[\d.]+,", r"\1,358000,"),
        )
        (self.out / "data" / "left-over.csv").write_text("a\n1\n")
        self.assertIn("left-over.csv belongs to no figure", "\n".join(self.check()))

    def test_the_list_of_statements_has_all_checks(self):
        text = (SOURCE / "docs" / "figures.md").read_text()
        tests, agree = map(
            int,
            re.search(
                r"\*\*(\d+) checks on this page test a statement of the papers: (\d+) of them", text
            ).groups(),
        )
        *listed, total = re.search(r"\| the papers say \|.*\n\|[-|]*\n((?:\|.*\n)+)", text)[
            1
        ].splitlines()
        self.assertIn(f"| all |  | {agree} of {tests} |", total)
        for column in (3, 4, 5):  # tests, calibrations and constructions
            counted = [
                tuple(map(int, line.split("|")[column].split(" of ")))
                for line in listed
                if line.split("|")[column].strip()
            ]
            self.assertEqual(
                total.split("|")[column].strip(),
                " of ".join(str(sum(its)) for its in zip(*counted)),
            )

    def test_quotes_have_their_source(self):
        text = (SOURCE / "docs" / "figures.md").read_text()
        self.assertEqual(quotes.problems(text), [])
        unnamed = (
            r"\d+: “about a third of a second” is quoted without its source, RDMC, the earlier"
            r" version, 4.1"
        )
        for pattern, replacement, expected in (
            (r"(\*\*C3\*\*[^|]*earlier\s+version,\s+)4\.1\)", r"\g<1>4.1.2)", unnamed),
            (r"(\*\*C3\*\*[^|]*)RDMC,\s+the\s+earlier\s+version", r"\1RDMC, DSN 2018", unnamed),
            (
                r"“performed well”",
                "performed well",
                "“performed well” of quotes.py is nowhere on the page",
            ),
        ):
            new = re.sub(pattern, replacement, text, count=1)
            self.assertTrue(text != new, f"the page has no {pattern}")
            self.assertRegex("\n".join(quotes.problems(new)), expected)

    def test_ratios_are_of_the_times(self):
        for name, cpu in (
            ("offload-map", "cpu_mean_us"),
            ("offload-map-400", "cpu_mean_us"),
            ("offload-assumptions", "cpu_us"),
        ):
            for row in rows(DATA / f"{name}.csv"):
                run = float(row["offload_us"])
                counted = run + float(row["arming_us"]) + float(row["detection_us"])
                self.assertGreater(float(row["arming_us"]), 0, row)
                self.assertAlmostEqual(
                    float(row["ratio_armed_before"]), float(row[cpu]) / run, delta=1e-4, msg=row
                )
                self.assertAlmostEqual(
                    float(row["ratio_all_counted"]), float(row[cpu]) / counted, delta=1e-4, msg=row
                )

    def test_same_data_same_pictures(self):
        self.copy()
        for name in ("schedules", "steps"):
            figure = next(it for it in main.FIGURES if it.name == name)
            main.draw(figure, main.Places(self.out))
            picture = (self.out / "images" / "figures" / f"{name}.svg").read_text()
            self.assertIn("modelled, profile", picture)
            self.assertTrue(
                picture == (PICTURES / f"{name}.svg").read_text(),
                f"{name}.svg is drawn otherwise than the committed one",
            )


@unittest.skipUnless(os.environ.get("PREPOST_TEST_LONG"), "PREPOST_TEST_LONG is not set")
class Again(unittest.TestCase):
    def test_small_cases_are_the_committed_rows(self):
        with tempfile.TemporaryDirectory() as folder:
            done = figures("--quick", "--modelled", "--out", folder, "--command", COMMAND)
            self.assertEqual(done.returncode, 0, done)
            for name in (figure.name for figure in main.FIGURES if not figure.is_measured):
                found, committed = rows(pathlib.Path(folder, "data", f"{name}.csv")), rows(
                    DATA / f"{name}.csv"
                )
                self.assertGreater(len(found), 0, name)
                for row in found:
                    self.assertTrue(row in committed, f"{name}: {row}: {AS_NEW}")

    def test_what_is_measured(self):
        if (
            not pathlib.Path(COMMAND)
            .resolve()
            .parents[1]
            .joinpath("bench", "virtual_bench")
            .exists()
        ):
            self.skipTest("the build has no bench/virtual_bench")
        for flags, is_anew in (([], True), (["--modelled"], False)):
            with tempfile.TemporaryDirectory() as folder:
                done = figures(
                    "--quick", "--out", folder, "--command", COMMAND, "--only", "cost", *flags
                )
                self.assertEqual(done.returncode, 0, done)
                found = rows(pathlib.Path(folder, "data", "cost.csv"))
                self.assertEqual(found == rows(DATA / "cost.csv"), not is_anew)
                self.assertEqual({row["clock"] for row in found}, {"real"})


class Words(unittest.TestCase):
    def test_wrong_use(self):
        for arguments, expected in (
            ((["--only", "nothing"]), "there is no figure 'nothing', there are: schedules, "),
            (["--quick"], "--quick needs --out"),
        ):
            done = figures(*arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn(expected, done.stderr)

    def test_failing_command(self):
        with tempfile.TemporaryDirectory() as folder:
            done = figures("--quick", "--out", folder, "--only", "skew", "--command", "/bin/false")
            self.assertEqual(done.returncode, 1)
            self.assertIn("figures: /bin/false compile", done.stderr)


unittest.main(argv=sys.argv[:1])
