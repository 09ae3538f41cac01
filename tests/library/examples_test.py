#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The example programs of the library, as three members on this machine."""
import os
import pathlib
import subprocess
import sys
import tempfile

program = sys.argv[1]
with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    (folder / "secret").write_bytes(os.urandom(32).hex().encode())
    (folder / "file0").write_bytes(os.urandom(3_000_001))
    low = f"{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
    members = ",".join(f"127.{240 + i}.{low}" for i in range(3))
    processes = [
        subprocess.Popen([program, str(i), members, str(folder / "secret"), str(folder / f"file{i}")]) for i in range(3)
    ]
    for i, process in enumerate(processes):
        assert process.wait(timeout=50) == 0, f"member {i} failed"
    for i in (1, 2):
        assert (folder / f"file{i}").read_bytes() == (folder / "file0").read_bytes(), f"member {i} has another file"
