# SPDX-License-Identifier: Apache-2.0
"""scripts/demo, but for the building, on files of several sizes and names:
COMMAND SOURCE-FOLDER."""
import os
import pathlib
import subprocess
import sys
import tempfile

COMMAND, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
PICTURES = ["spacetime.svg", "graph.svg"]


def demo(*arguments, folder):
    return subprocess.run(
        [SOURCE / "scripts" / "demo", "--prepost", COMMAND, "--output", folder / "out", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
    )


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    for file_name, size in [
        ("empty", 0),
        ("ten", 10),
        ("a file with spaces.bin", 3_000_000),
        ("-large", 20_000_000),
    ]:
        data = os.urandom(size)
        (folder / file_name).write_bytes(data)
        done = demo(folder / file_name, folder=folder)
        assert done.returncode == 0, (file_name, done.stdout, done.stderr)
        assert "All copies are identical to the original" in done.stdout, done.stdout
        assert f"({size:,} bytes)" in done.stdout, done.stdout
        for way in ["cpu", "offload"]:
            for node in range(1, 8):
                copy = folder / "out" / way / f"node-{node}" / file_name
                assert copy.read_bytes() == data, copy
        for picture in PICTURES:
            assert (folder / "out" / picture).read_text().rstrip().endswith("</svg>"), picture
    missing = demo(folder / "nothing", folder=folder)
    assert missing.returncode == 1 and "cannot read" in missing.stderr, missing
    kept = folder / "out" / "kept"
    kept.write_bytes(b"mine")
    inside = demo(kept, folder=folder)
    assert (
        inside.returncode == 1 and "about to be replaced" in inside.stderr and kept.exists()
    ), inside
    print("4 demos ran")
