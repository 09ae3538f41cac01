#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the command links: COMMAND.

Graphviz, libibverbs and libmlx5 are not needed to start it; without them graphs and mlx5 devices
fail with the name of the package, and everything else works. Catches a library that is linked
again, and a call through a table that was not loaded."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

command = os.path.abspath(sys.argv[1])


def run(*arguments, without=None):
    """Where `without` is a library, there is only an empty file of its name."""
    environment = dict(os.environ)
    if without:
        pathlib.Path("hidden").mkdir(exist_ok=True)
        pathlib.Path("hidden", without).touch()
        environment["LD_LIBRARY_PATH"] = os.path.abspath("hidden")
    return subprocess.run([command, *arguments], capture_output=True, text=True, env=environment)


def check(condition, *what):
    if not condition:
        sys.exit(" ".join(map(str, what)))


dynamic = subprocess.run(
    ["readelf", "-d", command], capture_output=True, text=True, check=True
).stdout
needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
check("libc.so.6" in needed, "not read:", dynamic)
for name in ("gvc", "cgraph", "ibverbs", "mlx5", "LLVM", "python"):
    check(not any(name in library for library in needed), "the command needs", name, needed)

with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    compiled = run(
        "compile",
        "--nodes",
        "4",
        "--message-bytes",
        "4096",
        "--block-bytes",
        "1024",
        "-o",
        "plan.json",
    )
    check(compiled.returncode == 0, compiled)
    drawn = run("draw", "plan.json", "--view", "graph", "-o", "with.svg")
    check(drawn.returncode == 0 and "</svg>" in pathlib.Path("with.svg").read_text(), drawn)
    refused = run(
        "draw", "plan.json", "--view", "graph", "-o", "without.svg", without="libgvc.so.6"
    )
    check(refused.returncode == 3 and "package libgvc6" in refused.stderr, refused)
    check(not pathlib.Path("without.svg").exists(), "a picture without Graphviz")
    other = run("draw", "plan.json", "-o", "other.svg", without="libgvc.so.6")
    check(other.returncode == 0, "space-time pictures need Graphviz:", other)

    listed = run("devices")
    check(listed.returncode == 0, listed)
    if "built without libmlx5" not in listed.stdout:
        listed = run("devices", without="libmlx5.so.1")
        check(listed.returncode == 0 and "package ibverbs-providers" in listed.stdout, listed)
        check("emulated" in listed.stdout, listed)
