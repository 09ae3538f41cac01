#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The example programs of the library, as three members on this machine."""
import os
import pathlib
import subprocess
import sys
import tempfile

MEMBERS = 3


def run(*command):
    """A process of each member; what they print."""
    processes = [
        subprocess.Popen([part.format(i=i) for part in command], stdout=subprocess.PIPE, text=True)
        for i in range(MEMBERS)
    ]
    printed = [process.communicate(timeout=50)[0] for process in processes]
    for i, process in enumerate(processes):
        assert process.returncode == 0, f"member {i} of {command[0]} failed"
    return printed


def main():
    broadcast, *allreduces = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "secret").write_bytes(os.urandom(32).hex().encode())
        (folder / "file0").write_bytes(os.urandom(3_000_001))
        low = f"{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
        members = ",".join(f"127.{240 + i}.{low}" for i in range(MEMBERS))
        run(broadcast, "{i}", members, str(folder / "secret"), f"{folder}/file{{i}}")
        for i in (1, 2):
            assert (folder / f"file{i}").read_bytes() == (
                folder / "file0"
            ).read_bytes(), f"member {i} has another file"
        others = ",".join(f"127.{240 + i}.{low}:{7900 + i}" for i in range(MEMBERS))
        for program, where in [
            (program, where) for program in allreduces for where in (members, others)
        ]:
            for i, line in enumerate(run(program, "{i}", where, str(folder / "secret"))):
                assert (
                    line == "ranks add up to 3, values to 4.5\n"
                ), f"member {i} of {program}: {line}"


main()
