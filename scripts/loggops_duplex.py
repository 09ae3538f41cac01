# SPDX-License-Identifier: Apache-2.0
"""Duplex(): the GOAL text of an exported plan,
said again for nodes that send and receive at the same time.

In LogGOPSim a rank has one clock: while bytes come in it starts no send, and what an op waited for
counts from when that clock last moved. Here every node becomes three ranks, each doing one kind of
thing:

    3i      sends blocks (nic 0) and small messages (nic 1), in the order and with the
            requirements of the plan
    3i + 1  receives blocks
    3i + 2  receives credits and acknowledgements

The second and the third tell the first of each arrival by a message of one byte, which costs no
bandwidth when the gap per message is 0. So every message, and every acknowledgement of a block,
takes two hops from one sending rank to the other: the latency to simulate with is half of the
network's. A requirement on a send waits for its acknowledgement, as in a plan a send is completed
when it is delivered."""
import re

CREDIT, ARRIVAL, ACKNOWLEDGEMENT = 1 << 24, 1 << 26, 1 << 27  # first tags of each kind
OP = re.compile(r"(l\d+): (send|recv) (\d+)b (?:to|from) (\d+) tag (\d+)")
ORDER = re.compile(r"(l\d+) (requires|irequires) (l\d+)")


def parse(text):
    """Of `prepost export`: the ranks' ops, {label: (kind, bytes, peer, tag)}, and orders,
    (label, how, label)."""
    ranks = []
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        if re.fullmatch(r"rank \d+ \{", line):
            ranks.append(({}, []))
        elif found := OP.fullmatch(line):
            ranks[-1][0][found[1]] = (found[2], int(found[3]), int(found[4]), int(found[5]))
        elif found := ORDER.fullmatch(line):
            ranks[-1][1].append(found.groups())
        elif line not in ("", "}") and not line.startswith(("num_ranks", "//")):
            raise ValueError(f"line {number}: not what prepost export writes: {line}")
    return ranks


class Rank:
    """Ops and their order."""

    def __init__(self):
        self.ops, self.orders = [], []

    def op(self, label, kind, size, peer, tag, nic):
        self.ops.append(
            f"{label}: {kind} {size}b {'to' if kind == 'send' else 'from'} {peer} tag {tag} cpu 0"
            f" nic {nic}"
        )

    def calc(self, label, time):
        self.ops.append(f"{label}: calc {time} cpu 0")

    def order(self, label, how, other):
        self.orders.append(f"{label} {how} {other}")


def duplex(text, post=0, handle=0):
    """`post`: what a host takes for a send, `handle`: for a block or credit that arrived, an
    acknowledgement too."""
    nodes = parse(text)
    ranks = [Rank() for _ in range(3 * len(nodes))]
    taken = {
        (op[2], node, op[3]): label
        for node, (ops, _) in enumerate(nodes)
        for label, op in ops.items()
        if op[0] == "recv"
    }

    arrival = "a" if handle else "d"

    def arrives(node, label, at, tag):
        """What the sending rank does once rank `at` has received with its op `label`: `label`d ends
        it."""
        sender = ranks[3 * node]
        ranks[at].op(f"{label}h", "send", 1, 3 * node, tag, 1)
        ranks[at].order(f"{label}h", "requires", label)
        sender.op(f"{label}{arrival}", "recv", 1, at, tag, 1)
        if handle:
            sender.calc(f"{label}d", handle)
            sender.order(f"{label}d", "requires", f"{label}a")

    for node, (ops, orders) in enumerate(nodes):
        sender = ranks[3 * node]
        for label, (kind, size, peer, tag) in ops.items():
            block = tag < CREDIT
            at = 1 if block else 2  # of a node's ranks
            if kind == "recv":
                ranks[3 * node + at].op(label, "recv", size, 3 * peer, tag, 0 if block else 1)
                arrives(node, label, 3 * node + at, ARRIVAL + int(label[1:]))
                continue
            sender.op(label, "send", size, 3 * peer + at, tag, 0 if block else 1)
            if post:
                sender.calc(f"{label}p", post)
                sender.order(label, "requires", f"{label}p")
            if block:
                number = ACKNOWLEDGEMENT + int(label[1:])
                answer = f"from{node}{label}"
                ranks[3 * peer].op(answer, "send", 1, 3 * node + 2, number, 1)
                ranks[3 * peer].order(answer, "requires", f"{taken[node, peer, tag]}{arrival}")
                ranks[3 * node + 2].op(f"{label}k", "recv", 1, 3 * peer, number, 1)
                arrives(node, f"{label}k", 3 * node + 2, number)
        for label, how, other in orders:
            if ops[label][0] == "recv":
                raise ValueError(f"rank {node}: {label} is a receive that waits")
            first = f"{label}p" if post else label
            if how == "irequires":
                sender.order(first, how, other)
            else:
                sender.order(first, how, f"{other}d" if ops[other][0] == "recv" else f"{other}kd")
    parts = [f"num_ranks {len(ranks)}"]
    for number, rank in enumerate(ranks):
        parts += [f"rank {number} {{", *rank.ops, *rank.orders, "}"]
    return "\n".join(parts) + "\n"
