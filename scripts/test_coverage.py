#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What samples cover after how many commits, by what tests printed in the last run of each preset;
`scripts/test --coverage`.

A sample (tests/support/sample.h) takes one part of its cases, the next one with the next commit on
the line of first parents. It prints how many parts there are and how far apart, at most, are those
with a label. This collects that."""
import collections
import pathlib
import re
import sys

PRESETS = ("dev", "asan", "tsan")
LOG = "build/{}/Testing/Temporary/LastTest.log"
SAMPLED = re.compile(
    r"^sampled: (\d+) of (\d+) cases, part \d+ of \d+, all within (\d+) commits?(.*?);"
    r" PREPOST_GRID_SEED=(\d+)$"
)
EACH = re.compile(r"each (\S+) of (\d+) within (\d+) commits?")
SLOT = re.compile(
    r"^slot_\d+ is \S+: each schedule of \d+ within (\d+) commits?; PREPOST_GRID_SEED=\d+$"
)

# What the table is asked for most often: preset, instances, label, words. "slot": schedules take
# turns in the slots of all tests.
SMALL_PLANS = r"/MulticastTest\.EverySmallPlanDelivers/"
CPU_OVER_NIC = SMALL_PLANS + r"\w+_over_emulated_driven$"
QUESTIONS = (
    (
        "dev",
        SMALL_PLANS + r"fabric_\w+_driven$",
        "schedule",
        "each schedule over libfabric, driven by CPUs",
    ),
    (
        "dev",
        SMALL_PLANS + r"fabric_\w+_preposted$",
        "schedule",
        "each schedule over libfabric, preposted",
    ),
    ("asan", None, "slot", "each schedule with the address and undefined-behaviour sanitizers"),
    ("tsan", None, "slot", "each schedule with the thread sanitizer"),
    ("dev", CPU_OVER_NIC, "wait", "each way of waiting, with each schedule"),
    ("dev", CPU_OVER_NIC, "ring", "each size of rings, with each schedule"),
)


class Row:
    """A test, with all its instances."""

    def __init__(self):
        self.instances = self.taken = self.cases = self.whole = 0
        self.each = {}  # label: how many there are, commits


def without_parameters(test):
    """program/Instance/Suite.Test/parameters is program/Suite.Test"""
    words = test.split("/")
    at = next((i for i, word in enumerate(words) if "." in word), len(words) - 1)
    return f"{words[0]}/{words[at]}"


def read(log):
    """Rows by test, the commits of labels by instance, those of slots (0: none), seeds."""
    rows, labels = collections.defaultdict(Row), {}
    slots, seeds, row = 0, set(), Row()
    for line in log.splitlines():
        if begin := re.match(r"^\d+/\d+ Testing: (.*)$", line):
            instance = begin[1]
            test = without_parameters(instance)
        elif found := SLOT.match(line):
            slots = max(slots, int(found[1]))
        elif found := SAMPLED.match(line):
            row = rows[test]
            row.instances += 1
            row.taken += int(found[1])
            row.cases += int(found[2])
            row.whole = max(row.whole, int(found[3]))
            for label, count, commits in EACH.findall(found[4]):
                has = row.each.get(label, (0, 0))
                row.each[label] = (max(has[0], int(count)), max(has[1], int(commits)))
                labels[instance, label] = int(commits)
            seeds.add(found[5])
    return rows, labels, slots, seeds


def main():
    runs = {}
    for preset in PRESETS:
        path = pathlib.Path(LOG.format(preset))
        if path.exists():
            runs[preset] = read(path.read_text(errors="replace"))
    if not runs:
        print("no preset has been tested: scripts/test", file=sys.stderr)
        return 3
    for preset, (rows, _, _, seeds) in runs.items():
        print(f"{preset}, of its last run, PREPOST_GRID_SEED={' '.join(sorted(seeds)) or 'none'}")
        if not rows:
            print("  nothing was sampled\n")
            continue
        width = max(len(test) for test in rows)
        print(
            f"  {'test':<{width}} instances   taken    cases  all within  each within, in commits"
        )
        for test, row in sorted(rows.items()):
            each = ", ".join(
                f"{label} ({count}) {commits}"
                for label, (count, commits) in sorted(row.each.items())
            )
            print(
                f"  {test:<{width}} {row.instances:9} {row.taken:7} {row.cases:8}"
                f" {row.whole:11}  {each}".rstrip()
            )
        print()
    for preset, instances, label, words in QUESTIONS:
        _, labels, slots, _ = runs.get(preset, ({}, {}, 0, set()))
        found = [
            commits
            for (instance, its), commits in labels.items()
            if its == label and re.search(instances or "", instance)
        ]
        commits = slots if label == "slot" else max(found, default=0)
        print(
            f"{words}: "
            + (
                f"within {commits} commit{'s' * (commits > 1)}"
                if commits
                else f"not in the last run of {preset}"
            )
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
