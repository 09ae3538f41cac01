#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What build/.../bench/session_bench measures, from Python: how long a group takes to bring a
message to all of its members, from send() at the root to when the slowest has received it, by one
clock. One process per member; bench/host/run.py --python starts them.

    session_bench.py SELF HOST[:PORT],... --bytes 64KiB,1MiB

Members do what those in C++ do: they enter a barrier, after which messages come, and receive them,
into the buffers of a pool, of which there is one for each message under way.
"""
import argparse
import json
import mmap
import pathlib
import resource
import sys
import time

import prepost

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "peers"))
from peers import size_of  # noqa: E402


# Behind a barrier, which others leave later, and before the next, so that what a member does there
# is not in the time of another.
SETTLE_SECONDS = 200e-6


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def measure(group, message, options):
    """When the root has begun, or another member has received, each burst of messages, and this
    member's seconds of processor time."""
    times = []
    cpu = 0
    for i in range(options.warm_up + options.repeat):
        if i == options.warm_up:
            cpu = cpu_seconds()
        if message is None:
            group.enter_barrier()
            for _ in range(options.burst):
                group.receive().release()
            time_of = time.monotonic()
            time.sleep(SETTLE_SECONDS)
        else:
            group.barrier()
            time.sleep(SETTLE_SECONDS)
            time_of = time.monotonic()
            for _ in range(options.burst):
                group.send(message)
            time.sleep(SETTLE_SECONDS)
        if i >= options.warm_up:
            times.append(time_of)
    return times, cpu_seconds() - cpu


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("self", type=int, help="this member's number; 0 sends")
    parser.add_argument("members", help="HOST[:PORT] of each, with commas")
    parser.add_argument("--bytes", required=True, help="sizes, with commas")
    parser.add_argument("--repeat", type=int, default=5, help="measurements of each size")
    parser.add_argument("--warm-up", type=int, default=1, help="messages before those")
    parser.add_argument(
        "--burst", type=int, default=1, help="messages sent at once, whose time is shared out"
    )
    parser.add_argument("--algorithm", default="auto", help="as Session.group()")
    parser.add_argument("--block-bytes", type=size_of, default=0, help="as Session.group()")
    parser.add_argument("--waiting", default="hybrid", help="polling, hybrid, interrupt")
    parser.add_argument("--no-local-copies", action="store_true", help="TCP also on one machine")
    options = parser.parse_args()
    sizes = [size_of(size) for size in options.bytes.split(",")]
    members = options.members.split(",")
    is_root = options.self == 0
    message = memoryview(mmap.mmap(-1, max(sizes))) if is_root else None  # at a page, as in C++
    if is_root:
        message[:] = (bytes(range(256)) * (max(sizes) // 256 + 1))[: max(sizes)]
    pool = None if is_root else prepost.MemoryPool(max(sizes), options.burst)
    with prepost.Session(
        self=options.self,
        members=members,
        secret="only for measurements",
        waiting=options.waiting,
        local_copies=not options.no_local_copies,
    ) as session:
        with session.group(
            1,
            algorithm=options.algorithm,
            block_bytes=options.block_bytes,
            pool=pool,
        ) as group:
            for size in sizes:
                times, cpu = measure(group, message[:size] if is_root else None, options)
                line = {
                    "bytes": size,
                    "members": len(members),
                    "cpu_seconds": cpu,
                    "burst": options.burst,
                    "begun" if is_root else "had": times,
                }
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
