#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What build/.../bench/session_bench measures, from Python: how long a group takes to bring a
message to all of its members, at the root, from send() to the notice that all have it. One process
per member; bench/host/run.py --python starts them.

    session_bench.py SELF HOST[:PORT],... --bytes 64KiB,1MiB

Members do what those in C++ do with --receive: they enter a barrier, after which messages come, and
receive them, into the buffers of a pool, of which there is one for each message under way.
"""
import argparse
import json
import mmap
import pathlib
import resource
import statistics
import sys
import time

import prepost

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "peers"))
from peers import size_of  # noqa: E402


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def send_all(group, message, burst):
    start = time.perf_counter()
    for _ in range(burst):
        group.send(message)
    group.wait_delivered()
    return time.perf_counter() - start


def measure(group, message, options):
    """The seconds of each message, and the root's seconds of processor time;
    both at the root only."""
    seconds = []
    cpu = 0
    for i in range(options.warm_up + options.repeat):
        if message is None:
            if i == options.warm_up:
                cpu = cpu_seconds()
            group.enter_barrier()
            for _ in range(options.burst):
                group.receive().release()
            continue
        group.barrier()
        if i == options.warm_up:
            cpu = cpu_seconds()
        taken = send_all(group, message, options.burst)
        if i >= options.warm_up:
            seconds.append(taken / options.burst)
    return sorted(seconds), cpu_seconds() - cpu


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
            notify_delivered=True,
            pool=pool,
        ) as group:
            for size in sizes:
                seconds, cpu = measure(group, message[:size] if is_root else None, options)
                line = {"bytes": size, "members": len(members), "cpu_seconds": cpu}
                if is_root:
                    line |= {
                        "algorithm": options.algorithm,
                        "block_bytes": options.block_bytes,
                        "min": seconds[0],
                        "median": statistics.median(seconds),
                        "max": seconds[-1],
                        "seconds": seconds,
                    }
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
