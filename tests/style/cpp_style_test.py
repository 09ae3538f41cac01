#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No line of C++ is longer than 100 columns, and clang-tidy 16 finds no name of another shape and
no function of more than 100 lines: SOURCE-FOLDER BUILD-FOLDER.

Widths are those of all files. clang-tidy takes seconds for a file: it reads those of the last
commit, at most FILES_MAX of them, other ones for each PREPOST_TEST_SEED; all of the project with
PREPOST_TEST_LONG. BUILD-FOLDER gets a list of how files are compiled one by one. Without clang-tidy
16 only widths are checked."""
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[1]).resolve()
BUILD = pathlib.Path(sys.argv[2]).resolve()
WIDTH = 100
FILES_MAX = 8
TIDY = "clang-tidy-16"
DAMAGED = "struct point {\n  int X;\n};\nint Long() {\n" + 100 * "  ;\n" + "  return 0;\n}\n"
EXPECTED = ("struct 'point'", "public member 'X'", "function 'Long' exceeds")


def words(*command):
    return subprocess.run(command, cwd=SOURCE, capture_output=True, text=True).stdout.splitlines()


def sources():
    """All of C++, relative to the source folder; of a tree without git, too."""
    found = words("git", "ls-files", "*.cc", "*.h", "*.c")
    if not found:
        found = [
            str(path.relative_to(SOURCE))
            for suffix in ("cc", "h", "c")
            for path in SOURCE.rglob(f"*.{suffix}")
            if "build" not in path.relative_to(SOURCE).parts
        ]
    return found


def too_long(files):
    return [
        f"{file}:{number}: {len(line)} columns"
        for file in files
        if (SOURCE / file).is_file()
        for number, line in enumerate((SOURCE / file).read_text().splitlines(), 1)
        if len(line) > WIDTH
    ]


def tidy(file):
    """What it finds in one file and in what that includes."""
    done = subprocess.run(
        [TIDY, "-p", BUILD, "--quiet", file], cwd=SOURCE, capture_output=True, text=True
    )
    found = [line for line in done.stdout.splitlines() if re.search(r": (warning|error): ", line)]
    return found or ([done.stderr] if done.returncode else [])


def compiled():
    """The files that are compiled, from their list."""
    subprocess.run(
        ["cmake", "-S", SOURCE, "-B", BUILD, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug"]
        + ["-DCMAKE_UNITY_BUILD=OFF", "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON"]
        + ["-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"]
        + ["-DCMAKE_C_COMPILER=clang-16", "-DCMAKE_CXX_COMPILER=clang++-16"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    listed = json.loads((BUILD / "compile_commands.json").read_text())
    paths = (pathlib.Path(entry["file"]) for entry in listed)
    return sorted(
        {
            str(it.relative_to(SOURCE))
            for it in paths
            if it.suffix == ".cc" and it.is_relative_to(SOURCE) and not it.is_relative_to(BUILD)
        }
    )


def chosen(files):
    """Those to read: of a header that has changed the source of its name."""
    if os.environ.get("PREPOST_TEST_LONG"):
        return files
    changed = words("git", "diff-tree", "--no-commit-id", "--name-only", "-r", "-m", "HEAD")
    of_commit = {re.sub(r"\.h$", ".cc", name) for name in changed} & set(files)
    order = random.Random(os.environ.get("PREPOST_TEST_SEED", "1"))
    some = order.sample(sorted(of_commit), min(FILES_MAX, len(of_commit)))
    print(f"clang-tidy: {len(some)} of {len(of_commit)} files of the last commit")
    return some


def check_damage():
    """That the configuration lets it find what it is there for."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        shutil.copy(SOURCE / ".clang-tidy", folder)
        (folder / "damaged.cc").write_text(DAMAGED)
        command = [TIDY, "damaged.cc", "--", "-std=c++20"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        for expected in EXPECTED:
            assert expected in done.stdout, (expected, done.stdout)


def main():
    found = too_long(sources())
    if shutil.which(TIDY):
        check_damage()
        with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as workers:
            for lines in workers.map(tidy, chosen(compiled())):
                found += [line for line in lines if line not in found]
    else:
        print(f"{TIDY} is not installed: widths only")
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
