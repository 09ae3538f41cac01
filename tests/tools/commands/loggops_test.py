# SPDX-License-Identifier: Apache-2.0
"""scripts/loggops-check: COMMAND SOURCE-FOLDER.

docs/simulate.md has what bench/figures/data/loggops.csv says, and --ours sees a time that is not
the file's. LogGOPSim itself is not needed; scripts/test --long simulates our half of the whole file
anew."""

import csv
import importlib.machinery
import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

COMMAND, SOURCE = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
SCRIPT, FILE = (
    SOURCE / "scripts" / "loggops-check",
    SOURCE / "bench" / "figures" / "data" / "loggops.csv",
)
sys.dont_write_bytecode = True
sys.path.insert(0, str(SCRIPT.parent))
loader = importlib.machinery.SourceFileLoader("loggops_check", str(SCRIPT))
check = importlib.util.module_from_spec(importlib.util.spec_from_loader("loggops_check", loader))
loader.exec_module(check)


class LogGops(unittest.TestCase):
    def test_page_has_the_file(self):
        text = re.sub(r"\s+", " ", (SOURCE / "docs" / "simulate.md").read_text())
        rows = check.read(FILE)
        for words in check.page(rows):
            self.assertIn(words, text)
        rows[-1]["cpu_ns"] *= 1.01  # hosts of 200 ns and 700 ns
        self.assertNotIn(check.page(rows)[3], text)

    def ours(self, rows):
        """Exit status and output of --ours with a file of these rows."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "rows.csv")
            with path.open("w", newline="") as file:
                writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
            done = subprocess.run(
                [SCRIPT, "--ours", path, "--prepost", COMMAND], capture_output=True, text=True
            )
            return done.returncode, done.stdout + done.stderr

    def test_ours_anew(self):
        with open(FILE, newline="") as file:
            few = [
                row
                for row in csv.DictReader(file)
                if (row["algorithm"], row["nodes"]) == ("circulant", "7")
            ]
        self.assertEqual(
            {(row["send_ns"], row["arrival_ns"]) for row in few},
            {(str(send), str(arrival)) for send, arrival in check.HOSTS},
        )
        status, said = self.ours(few)
        self.assertEqual(status, 0, said)
        self.assertIn(f"{len(few)} plans simulated anew, 0 times differ", said)
        few[0]["offload_ns"] = few[1]["offload_ns"]
        status, said = self.ours(few)
        self.assertEqual(status, 1, said)
        self.assertRegex(said, r"differs: .*'circulant'.*: now offload_ns is \d+\.\d+\n$")


unittest.main(argv=sys.argv[:1])
