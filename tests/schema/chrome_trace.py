# SPDX-License-Identifier: Apache-2.0
"""The rules of the Chrome trace event format as Perfetto's JSON importer applies them, written
after its documentation and source and knowing nothing of our writer. problems(trace) gives every
rule that a trace breaks, in words.

An importer sorts events by time, those of one time in the order of the file, and keeps a stack of
open slices per thread. A slice must lie within the one below it on the stack. Both ends of an arrow
belong to the newest slice of their thread, which must enclose them."""
import decimal
import math

METADATA = {
    "process_name": "name",
    "thread_name": "name",
    "process_sort_index": "sort_index",
    "thread_sort_index": "sort_index",
}
# What is skipped, or worse, ends the reading of the file, when another key stands there.
TOP_LEVEL = {"traceEvents", "displayTimeUnit", "otherData", "metadata", "systemTraceEvents"}


def is_integer(value):
    return isinstance(value, int) and not isinstance(value, bool)


def nanoseconds(value):
    """A time of the file, which is in microseconds; None when it is none."""
    if isinstance(value, bool) or not isinstance(value, (int, decimal.Decimal)):
        return None
    scaled = decimal.Decimal(value) * 1000
    return int(scaled) if scaled.is_finite() and scaled == int(scaled) and scaled >= 0 else None


def form_problems(event):
    """Keys and types of one event."""
    if not isinstance(event, dict):
        return ["is no object"]
    phase = event.get("ph")
    if phase not in ("M", "X", "B", "E", "i", "s", "f"):
        return [f"phase {phase!r} is not known"]
    found = []
    for key in (
        ["pid"] if phase == "M" and str(event.get("name")).startswith("process") else ["pid", "tid"]
    ):
        if not is_integer(event.get(key)) or not 0 <= event[key] < 2**32:
            found.append(f"{key} is {event.get(key)!r}")
    if not isinstance(event.get("name"), str) or not event["name"]:
        found.append("has no name")
    if phase == "M":
        key = METADATA.get(event.get("name"))
        value = event.get("args", {}).get(key) if isinstance(event.get("args"), dict) else None
        wanted = isinstance(value, str) if key == "name" else is_integer(value)
        return (
            found
            if wanted
            else found + [f"metadata {event.get('name')!r} with args {event.get('args')!r}"]
        )
    if nanoseconds(event.get("ts")) is None:
        found.append(f"ts is {event.get('ts')!r}")
    if phase == "X" and nanoseconds(event.get("dur")) is None:
        found.append(f"dur is {event.get('dur')!r}")
    if phase == "i" and event.get("s") not in ("t", "p", "g"):
        found.append(f"scope is {event.get('s')!r}")
    if phase in "sf" and not (is_integer(event.get("id")) and isinstance(event.get("cat"), str)):
        found.append("an arrow without id or cat")
    if "args" in event and not isinstance(event["args"], dict):
        found.append("args is no object")
    return found


class Threads:
    """The open slices of every thread while events come in the order of time."""

    def __init__(self):
        self.open = {}

    def add(self, event, begin, end):
        stack = self.open.setdefault((event["pid"], event["tid"]), [])
        while stack and stack[-1][1] <= begin:
            stack.pop()
        overlaps = bool(stack) and end > stack[-1][1]
        stack.append((begin, end, event))
        return overlaps

    def newest(self, event):
        stack = self.open.get((event["pid"], event["tid"]))
        return stack[-1] if stack else None


def order_problems(events):
    """Slices and arrows of events of good form, in the order of time."""
    threads, arrows = Threads(), {}
    timed = [
        (nanoseconds(event["ts"]), index, event)
        for index, event in enumerate(events)
        if event["ph"] != "M"
    ]
    for time, index, event in sorted(timed, key=lambda entry: entry[:2]):
        phase = event["ph"]
        if phase == "i" and event["s"] != "t":
            continue  # on a track of the process
        if phase in "XBi":
            end = {
                "X": lambda: time + nanoseconds(event["dur"]),
                "B": lambda: math.inf,
                "i": lambda: time,
            }[phase]()
            if threads.add(event, time, end):
                yield f"event {index}: {event['name']!r} ends after the slice that it begins in"
            continue
        if phase == "E":
            slice_ = threads.newest(event)
            if slice_ is None or slice_[2]["ph"] != "B":
                yield f"event {index}: an end without a beginning"
            continue
        slice_ = threads.newest(event)
        if slice_ is None or slice_[2]["ph"] == "i" or not slice_[0] <= time < slice_[1]:
            yield f"event {index}: no slice encloses this end of an arrow"
        ends = arrows.setdefault((event["cat"], event["name"], event["id"]), [])
        ends.append(phase)
        if ends not in (["s"], ["s", "f"]):
            yield f"event {index}: the ends of arrow {event['id']} come as {ends}"
        if phase == "f" and event.get("bp") != "e":
            yield f"event {index}: the arrow ends at the next slice, not this one"
    for key, ends in arrows.items():
        if ends != ["s", "f"]:
            yield f"arrow {key} has only {ends}"


def problems(trace):
    if not isinstance(trace, dict) or not isinstance(trace.get("traceEvents"), list):
        return ["not the JSON object form"]
    found = [f"key {key!r} ends the reading" for key in trace if key not in TOP_LEVEL]
    if trace.get("displayTimeUnit") not in (None, "ms", "ns"):
        found.append("displayTimeUnit")
    events = trace["traceEvents"]
    for index, event in enumerate(events):
        found += [f"event {index}: {problem}" for problem in form_problems(event)]
    if found:
        return found
    named = {
        name: {(e["pid"], e.get("tid")) for e in events if e["name"] == name} for name in METADATA
    }
    for event in events:
        if event["ph"] != "M" and (event["pid"], event["tid"]) not in named["thread_name"]:
            found.append(f"thread {event['tid']} of process {event['pid']} has no name")
        if (event["pid"], None) not in named["process_name"]:
            found.append(f"process {event['pid']} has no name")
    return found + list(order_problems(events))
