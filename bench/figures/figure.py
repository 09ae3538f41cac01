# SPDX-License-Identifier: Apache-2.0
"""A figure: how its data are made, drawn, put into a table, and which statements it settles."""

import dataclasses
from collections.abc import Callable

# Both sides with and without what the other one is not charged: columns,
# and what panels of them are called.
PANELS = {
    "cpu_us": "CPU-driven, as RDMC",
    "cpu_no_message_costs_us": "CPU-driven, no costs per message",
    "offload_us": "preposted, armed before",
    "offload_counted_us": "preposted, arming and detection counted",
}
# For captions of figures with times of both, in which CPU-driven runs do as RDMC does.
MESSAGE_COSTS = (
    "CPU-driven times have RDMC's costs per message (`host.message_start`, `message_setup`),"
    " preposted ones have none, and neither arming nor detection."
)


@dataclasses.dataclass(frozen=True)
class Figure:
    name: str  # of its CSV, its picture, and its place in docs/figures.md
    profile: str  # by which profile: "sierra"; empty where nothing is modelled
    caption: str  # what is to be seen
    rows: Callable  # (simulator, quick) -> rows of the CSV; quick's are some of them, to the letter
    keys: tuple  # the columns that say what was run
    draw: Callable | None = None  # rows -> a matplotlib figure
    table: Callable | None = None  # rows -> (headings, rows of cells), for the page
    claims: Callable | None = None  # rows -> claims
    remarks: Callable | None = None  # rows -> the text below, with every number that is the data's
    is_measured: bool = False  # on this machine's clock: other data each time

    def note(self):
        """What stands below the picture, and before the caption."""
        if self.is_measured:
            return "measured on the real clock"
        return f"modelled, profile {self.profile}" if self.profile else "counted, not modelled"


def row_of(run, **rest):
    """How every row begins: the clock, and the profile that was used."""
    changes = "; ".join(f"{key}={value}" for key, value in run.profile.changes)
    return {
        "clock": "modelled",
        "profile": run.profile.name,
        **rest,
        **({"changed": changes} if changes else {}),
    }
