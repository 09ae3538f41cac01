# SPDX-License-Identifier: Apache-2.0
"""scripts/loggops_duplex.py: what it makes of exported plans is a schedule that can run: every
message has both its ends, with one size, and playing ops whose requirements are met ends with all
of them played. (LogGOPSim itself is not needed.)"""
import collections
import pathlib
import re
import subprocess
import sys

prepost, source = sys.argv[1], pathlib.Path(sys.argv[2])
sys.dont_write_bytecode = True
sys.path.insert(0, str(source / "scripts"))
from loggops_duplex import duplex  # noqa: E402


def exported(*flags):
    plan = subprocess.run(
        [
            prepost,
            "compile",
            "--block-bytes",
            "10",
            "--message-bytes",
            "45",
            "--ready",
            "window=1",
            "--send-window",
            "1",
            *flags,
        ],
        capture_output=True,
        check=True,
    ).stdout
    return subprocess.run(
        [prepost, "export", "--format", "goal", "-"], input=plan, capture_output=True, check=True
    ).stdout.decode()


def play(text):
    """Number of ops; fails where not all can be played."""
    ops, waits, rank = {}, collections.defaultdict(set), None
    for line in text.splitlines():
        if found := re.fullmatch(r"rank (\d+) \{", line):
            rank = int(found[1])
        elif found := re.fullmatch(
            r"(\w+): (send|recv) (\d+)b (?:to|from) (\d+) tag (\d+) cpu 0 nic [01]", line
        ):
            label, kind, size, peer, tag = found[1], found[2], *map(int, found.groups()[2:])
            assert (rank, label) not in ops, line
            ops[rank, label] = (
                kind,
                (rank, peer, tag) if kind == "send" else (peer, rank, tag),
                size,
            )
        elif found := re.fullmatch(r"(\w+): calc (\d+) cpu 0", line):
            ops[rank, found[1]] = ("calc", None, 0)
        elif found := re.fullmatch(r"(\w+) i?requires (\w+)", line):
            waits[rank, found[1]].add((rank, found[2]))
        else:
            assert line == "}" or line.startswith("num_ranks"), line
    ends = [
        {message: (op, size) for op, (kind, message, size) in ops.items() if kind == which}
        for which in ("send", "recv")
    ]
    assert ends[0].keys() == ends[1].keys(), "a message without one of its ends"
    assert len(ends[0]) * 2 == sum(
        kind != "calc" for kind, _, _ in ops.values()
    ), "two messages alike"
    for message, (op, size) in ends[0].items():
        assert ends[1][message][1] == size, f"{message}: sizes differ"
        waits[ends[1][message][0]].add(op)
    assert all(
        other in ops for others in waits.values() for other in others
    ), "waits for what is not there"
    after, open_waits = collections.defaultdict(list), {op: len(waits[op]) for op in ops}
    for op, others in waits.items():
        for other in others:
            after[other].append(op)
    ready, played = [op for op, count in open_waits.items() if count == 0], 0
    while ready:
        played += 1
        for op in after[ready.pop()]:
            open_waits[op] -= 1
            if open_waits[op] == 0:
                ready.append(op)
    assert played == len(ops), f"{len(ops) - played} ops wait for each other"
    return played


for algorithm in (
    "sequential",
    "chain",
    "binomial_tree",
    "binomial_pipeline",
    "circulant",
    "two_tree",
    "scatter_allgather",
):
    for nodes in ("2", "7", "8"):
        text = exported("--nodes", nodes, "--algorithm", algorithm)
        plain, costly = play(duplex(text)), play(duplex(text, post=3, handle=5))
        assert costly > plain > text.count(": send") * 2, (algorithm, nodes)

broken = duplex(exported("--nodes", "4")).replace(
    " recv 10b from 0 tag 0 ", " recv 10b from 0 tag 7 ", 1
)
try:
    play(broken)
except AssertionError:
    pass
else:
    raise AssertionError("a message without its receive was not seen")
try:
    duplex("num_ranks 1\nrank 0 {\nl1: calc 5\n}\n")
except ValueError as error:
    assert str(error).startswith("line 3:"), error
else:
    raise AssertionError("a line that export does not write was taken")
