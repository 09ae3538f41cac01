# SPDX-License-Identifier: Apache-2.0
"""A group's members as processes: how bench/network and bench/host start bench/session_bench and
what stands for it."""
import json
import subprocess
import sys


def json_lines(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def outputs_of(words_of, members, environment=None):
    """What each member printed. `words_of(i)`: the command of member i. Ends the program if one
    fails."""
    processes = [
        subprocess.Popen(
            list(map(str, words_of(i))), stdout=subprocess.PIPE, text=True, env=environment
        )
        for i in range(members)
    ]
    outputs = [process.communicate(timeout=600)[0] for process in processes]
    if any(process.returncode != 0 for process in processes):
        sys.exit(f"{sys.argv[0]}: a member failed")
    return outputs


def run_members(words_of, members, environment=None):
    """The JSON lines of member 0, with the processor time of all members in "cpu_seconds", and in
    "seconds", where members say when they have begun and had messages, how long each took.
    The others are outputs_of()'s."""
    outputs = list(map(json_lines, outputs_of(words_of, members, environment)))
    lines = outputs[0]
    for line in lines:
        own = [
            it["cpu_seconds"]
            for output in outputs
            for it in output
            if it["bytes"] == line["bytes"] and "cpu_seconds" in it
        ]
        if len(own) == members:  # else member 0 has said it of all
            line["cpu_seconds"] = sum(own)
        had = [
            it["had"]
            for output in outputs
            for it in output
            if it["bytes"] == line["bytes"] and "had" in it
        ]
        if had:
            ends = [max(times) for times in zip(*had)]
            line["seconds"] = [
                (end - begun) / line["burst"] for begun, end in zip(line["begun"], ends)
            ]
    return lines


def cpu_per_gigabyte(line, burst=1):
    """Of a line: processor seconds of all members for each 10^9 bytes that a member receives; None:
    not known, or no bytes. `burst`: messages in each time."""
    received = line["bytes"] * burst * len(line["seconds"]) * (line["members"] - 1)
    if line.get("cpu_seconds") is None or received == 0:
        return None
    return line["cpu_seconds"] / (received / 1e9)
