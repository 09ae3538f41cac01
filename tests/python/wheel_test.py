# SPDX-License-Identifier: Apache-2.0
"""`pip install .` makes a package that can be used: SOURCE-FOLDER in PREPOST_SOURCE. Takes minutes:
with PREPOST_TEST_LONG only.

The wheel is built from the source alone, without an index, and unpacked into a folder of its own.
Catches files that it lacks, and modules that only work where they were built."""
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77
PROGRAM = """
import pathlib, sys, prepost
assert pathlib.Path(prepost.__file__).is_relative_to(sys.argv[1]), prepost.__file__
plan = prepost.compile(nodes=4, message_bytes=1 << 20, algorithm="chain")
assert plan.verify() == [] and "<svg" in plan.draw()
with prepost.Session(self=0, members=["127.0.0.1:0"], secret=bytes(16)) as session:
    assert session.group(1).broadcast(b"message", 20) == b"message"
print(prepost.__version__)
"""


def run(*command, **options):
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def main():
    if "PREPOST_TEST_LONG" not in os.environ:
        print("skipped: PREPOST_TEST_LONG is not set")
        return SKIPPED
    for module in ("pip", "scikit_build_core"):
        if importlib.util.find_spec(module) is None:
            print(f"skipped: {sys.executable} has no {module}")
            return SKIPPED
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        run(
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--no-index",
            "--no-build-isolation",
            "--no-deps",
            "--wheel-dir",
            folder / "wheels",
            f"--config-settings=build-dir={folder / 'build'}",
            os.environ["PREPOST_SOURCE"],
            env=environment,
        )
        [wheel] = (folder / "wheels").iterdir()
        run(
            sys.executable,
            "-m",
            "pip",
            "install",
            "--no-index",
            "--no-deps",
            "--target",
            folder / "packages",
            wheel,
            env=environment,
        )
        packages = folder / "packages"
        version = run(
            sys.executable,
            "-c",
            PROGRAM,
            packages,
            cwd=folder,
            env=dict(environment, PYTHONPATH=str(packages)),
        )
        assert f"prepost_multicast-{version.strip()}-" in wheel.name, (version, wheel.name)
    return 0


sys.exit(main())
