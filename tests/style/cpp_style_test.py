#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""C++ is written as clang-format 14 writes it, no line is longer than 100 columns, and clang-tidy
16 finds no name of another shape and no function of more than 100 lines: SOURCE-FOLDER
BUILD-FOLDER.

Format and widths are those of all files. clang-tidy takes seconds for a file: it reads those of the
last commit, at most FILES_MAX of them, other ones for each PREPOST_TEST_SEED; all of the project
with PREPOST_TEST_LONG. BUILD-FOLDER gets a list of how files are compiled one by one."""
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
FILES_MAX = 4
TIDY = "clang-tidy-16"
FORMAT = "clang-format-14"
SKIPPED = 77
DAMAGED = "struct point {\n  int X;\n};\nint Long() {\n" + 100 * "  ;\n" + " return 0;\n}\n"
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


def badly_formatted(files):
    files = [file for file in files if not file.endswith(".c")]
    done = subprocess.run(
        [FORMAT, "--dry-run", "--Werror", *files], cwd=SOURCE, capture_output=True, text=True
    )
    return [line for line in done.stderr.splitlines() if ": error: " in line]


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


def source_of(name, files):
    """A file of `files` that shows clang-tidy the changed file `name`; none: it is no C++."""
    source = re.sub(r"\.h$", ".cc", name)
    if source in files or not name.endswith(".h"):
        return source if source in files else None
    users = words("git", "grep", "-lF", f'#include "{name}"')
    return next((it for it in users if it in files), None)


def chosen(files):
    """Those to read: for a header the source of its name, or one that includes it."""
    if os.environ.get("PREPOST_TEST_LONG"):
        return files
    changed = words("git", "diff-tree", "--no-commit-id", "--name-only", "-r", "-m", "HEAD")
    of_commit = {source_of(name, set(files)) for name in changed} - {None}
    order = random.Random(os.environ.get("PREPOST_TEST_SEED", "1"))
    some = order.sample(sorted(of_commit), min(FILES_MAX, len(of_commit)))
    print(f"clang-tidy: {len(some)} of {len(of_commit)} files of the last commit")
    return some


def check_damage():
    """That the configuration lets it find what it is there for."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for file in (".clang-tidy", ".clang-format"):
            shutil.copy(SOURCE / file, folder)
        (folder / "damaged.cc").write_text(DAMAGED)
        command = [TIDY, "damaged.cc", "--", "-std=c++20"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        for expected in EXPECTED:
            assert expected in done.stdout, (expected, done.stdout)
        assert badly_formatted([str(folder / "damaged.cc")])
        assert not too_long([str(folder / "damaged.cc")])
        (folder / "damaged.cc").write_text("// " + WIDTH * "x" + "\n")
        assert too_long([str(folder / "damaged.cc")])


def main():
    files = sources()
    found = too_long(files)
    missing = [tool for tool in (FORMAT, TIDY) if not shutil.which(tool)]
    if not missing:
        check_damage()
        found += badly_formatted(files)
        with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as workers:
            for lines in workers.map(tidy, chosen(compiled())):
                found += [line for line in lines if line not in found]
    print("\n".join(found))
    if found:
        return 1
    if missing:
        print(f"{' and '.join(missing)} not installed: only widths were checked")
    return SKIPPED if missing else 0


if __name__ == "__main__":
    sys.exit(main())
