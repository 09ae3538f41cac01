# SPDX-License-Identifier: Apache-2.0
"""A statement of a paper beside what the model gives: expected, obtained, and whether they agree,
by a tolerance that is written down.

Not every check is a test. A number that was fitted to a statement cannot but agree with it, and
neither can what holds by construction, so each check says what it is. A test's case and tolerance
are of the paper's text: they are written before the result, and stay when it disagrees.

A difference needs a reason that was written beforehand, and a reason needs a difference:
scripts/figures fails where one is there without the other, so that neither a new disagreement nor
an outdated excuse goes unnoticed."""

import dataclasses

PUSHING = "RDMC, “Pushing Bytes”"
EARLIER = "RDMC, the earlier version"
DSN = "RDMC, DSN 2018"
KISSEL = "Kissel and Swany"
OURS = "ours"

# What a check is. Only tests count as agreement with a paper.
TEST = "test"  # nothing in the model was fitted to the statement
CALIBRATION = "calibration"  # a number of the model was fitted to the very statement
# Arithmetic, a closed form of the schedule, or what the case puts in: it cannot fail by the model.
CONSTRUCTION = "construction"
OWN = "our own"  # no paper says so: an aim or an expectation of ours
KINDS = (TEST, CALIBRATION, CONSTRUCTION, OWN)


@dataclasses.dataclass(frozen=True)
class Claim:
    id: str  # "C4"
    says: str  # the paper's statement, in our words
    where: str  # which paper, which figure or section
    case: str  # what was run: "n = 8"
    expected: str  # with its unit
    obtained: str
    agrees: bool
    why: str  # of a difference
    kind: str

    def verdict(self):
        return "agrees" if self.agrees else "differs"

    def problem(self):
        if not self.agrees and not self.why:
            return (
                f"{self.id}, {self.case}: expected {self.expected}, obtained {self.obtained}, and"
                " no reason is given"
            )
        if self.agrees and self.why:
            return (
                f"{self.id}, {self.case}: expected {self.expected}, obtained {self.obtained}:"
                " agrees, but a reason for a difference is given"
            )
        return None


def number(value, digits=4):
    """At most so many significant digits, never an exponent."""
    if value == 0:
        return "0"
    text = f"{value:.{digits}g}"
    if "e" in text:
        text = f"{float(text):.0f}" if abs(value) >= 1 else f"{value:.{digits + 8}f}".rstrip("0")
    return text


@dataclasses.dataclass(frozen=True)
class Statement:
    """What the claims of one row have in common."""

    id: str
    says: str
    where: str
    kind: str = TEST

    @property
    def calibrated(self):
        """For checks against what a number of the model was fitted to."""
        return dataclasses.replace(self, kind=CALIBRATION)

    @property
    def constructed(self):
        """For checks that hold by construction."""
        return dataclasses.replace(self, kind=CONSTRUCTION)

    @property
    def ours(self):
        """For checks beside a paper's statement that it does not make."""
        return dataclasses.replace(self, kind=OWN)

    def _claim(self, case, expected, obtained, agrees, why):
        return Claim(
            self.id, self.says, self.where, case, expected, obtained, agrees, why, self.kind
        )

    def near(self, case, expected, obtained, within, unit="", why="", digits=4):
        """`within`: the relative difference that is allowed; 0 is to the last digit."""
        unit = f" {unit}" if unit and not unit.startswith("x") else unit
        agrees = abs(obtained - expected) <= within * abs(expected)
        expected_text = f"{number(expected, digits)}{unit}" + (
            f" ± {number(100 * within, 2)} %" if within else ""
        )
        return self._claim(case, expected_text, f"{number(obtained, digits)}{unit}", agrees, why)

    def between(self, case, low, high, obtained, unit="", why="", digits=4):
        unit = f" {unit}" if unit and not unit.startswith("x") else unit
        return self._claim(
            case,
            f"{number(low, digits)} to {number(high, digits)}{unit}",
            f"{number(obtained, digits)}{unit}",
            low <= obtained <= high,
            why,
        )

    def same(self, case, expected, obtained, why=""):
        """Two texts or counts."""
        return self._claim(case, str(expected), str(obtained), str(expected) == str(obtained), why)

    def holds(self, case, expected, obtained, agrees, why=""):
        """A relation that `expected` puts in words, and what was found, with its numbers."""
        return self._claim(case, expected, obtained, bool(agrees), why)
