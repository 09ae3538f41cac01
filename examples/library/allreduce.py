#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds up one number per member and a vector of floats, at all members, in Python:

    allreduce.py SELF HOST[:PORT],HOST[:PORT],... SECRET-FILE
"""
import pathlib
import sys

import numpy

import prepost


def main():
    if len(sys.argv) != 4:
        sys.exit("usage: allreduce.py SELF HOST,... SECRET-FILE")
    self, members = int(sys.argv[1]), sys.argv[2].split(",")
    try:
        with prepost.Session(
            self=self, members=members, secret=pathlib.Path(sys.argv[3]).read_bytes()
        ) as session:
            with session.collectives(1) as group:  # the same calls in the same order at all members
                ranks = group.allreduce(numpy.array([self], dtype=numpy.uint64))
                sums = group.allreduce(numpy.full(1_000_000, 0.5 + self, dtype=numpy.float32))
                print(f"ranks add up to {ranks[0]}, values to {sums[0]:g}")
    except (prepost.Error, OSError) as error:
        sys.exit(f"allreduce.py: {error}")


if __name__ == "__main__":
    main()
