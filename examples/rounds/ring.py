#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A schedule of one's own, as a generator of rounds: a ring that is used both ways, compared with
schedules of the compiler.

    ring.py [NODES [BLOCKS]]     # 8 nodes and 32 blocks; writes ring.svg

Even blocks go 0, 1, 2, ... and odd ones 0, n - 1, n - 2, ...; one block leaves the root in each
round. With an even number of nodes no node sends or receives two blocks in one round. ring.py 4 4
has the rounds of ring-4.txt.
"""
import argparse
import pathlib

import prepost


def ring(nodes, blocks):
    """The rounds: lists of (sender, receiver, block)."""
    for round in range(blocks + nodes - 2):
        # A block makes its first hop in the round of its number, and then one hop in each.
        yield [
            hop(nodes, block, round - block)
            for block in range(max(0, round - nodes + 2), min(round + 1, blocks))
        ]


def hop(nodes, block, hops):
    """The transfer of `block` that has made `hops` hops."""
    way = 1 if block % 2 == 0 else -1
    return way * hops % nodes, way * (hops + 1) % nodes, block


def main():
    parser = argparse.ArgumentParser(
        description="Compares a ring that is used both ways with schedules of the compiler."
    )
    parser.add_argument("nodes", type=int, nargs="?", default=8)
    parser.add_argument("blocks", type=int, nargs="?", default=32)
    arguments = parser.parse_args()
    nodes, blocks = arguments.nodes, arguments.blocks
    plans = [prepost.compile(rounds=ring(nodes, blocks), message_bytes=blocks << 20)]
    plans += [
        prepost.compile(
            nodes=nodes, message_bytes=blocks << 20, block_bytes=1 << 20, algorithm=algorithm
        )
        for algorithm in ("chain", "binomial_pipeline")
    ]
    print(f"{nodes} nodes, {blocks} blocks of 1 MiB; modelled times on the cluster fractus")
    for plan in plans:
        assert plan.verify() == []
        run = plan.simulate("fractus", executor="cpu")["cpu"]
        print(
            f"{plan.algorithm:20} {plan.rounds:4} rounds {run['completion_seconds'] * 1e3:9.3f} ms"
        )
    pathlib.Path("ring.svg").write_text(plans[0].draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
