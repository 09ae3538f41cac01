#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs outside this tree with what is installed: CMAKE BUILD-FOLDER SOURCE-FOLDER
PYTHON-OR-EMPTY CXX CC.

Installs the build into a folder, builds broadcast.cc and allreduce.cc against its CMake package and
broadcast.c and allreduce.c against its pkg-config file, and has them and the same in Python work
with each other, as members of one session. With PREPOST_TEST_LONG also makes a .deb, unpacks it,
and runs the command from there. Catches headers, libraries and package files that are not
installed, or that only work where they were built; internal headers that are; and languages that do
not understand each other."""
import os
import pathlib
import subprocess
import sys
import tempfile

cmake, build, source, python, cxx, cc = sys.argv[1:]
build, source = pathlib.Path(build), pathlib.Path(source)
examples = source / "examples/library"


def run(*command, **options):
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, **options
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    prefix = folder / "moved" / "prefix"
    run(cmake, "--install", build, "--prefix", folder / "prefix")
    prefix.parent.mkdir()
    (folder / "prefix").rename(prefix)  # package files are relative to where they are
    library = next(prefix.rglob("libprepost.so")).parent
    assert {
        str(path.relative_to(prefix / "include")) for path in (prefix / "include").rglob("*.h")
    } == {str(path.relative_to(source / "include")) for path in (source / "include").rglob("*.h")}
    for installed in (
        "bin/prepost",
        "share/man/man1/prepost.1",
        "share/man/man1/prepost-run.1",
        "share/bash-completion/completions/prepost",
        "share/doc/prepost/LICENSE",
        "share/doc/prepost/docs/library.md",
    ):
        assert (prefix / installed).is_file(), installed
    assert run(prefix / "bin/prepost", "--version").startswith("prepost ")

    # By the CMake package.
    run(
        cmake,
        "-G",
        "Ninja",
        "-S",
        source / "tests/install/program",
        "-B",
        folder / "cmake",
        f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_CXX_COMPILER={cxx}",
        f"-DCMAKE_C_COMPILER={cc}",
        f"-DSOURCE={examples / 'broadcast.cc'}",
        f"-DCALLS={examples / 'allreduce.cc'}",
    )
    run(cmake, "--build", folder / "cmake")
    # By pkg-config.
    environment = dict(os.environ, PKG_CONFIG_PATH=str(library / "pkgconfig"))
    flags = run("pkg-config", "--cflags", "--libs", "prepost", env=environment).split()
    run(
        cc,
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-o",
        folder / "broadcast_c",
        examples / "broadcast.c",
        *flags,
    )
    run(
        cc,
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-o",
        folder / "allreduce_c",
        examples / "allreduce.c",
        *flags,
    )
    programs = [[folder / "cmake/broadcast"], [folder / "broadcast_c"]]
    callers = [[folder / "cmake/allreduce"], [folder / "allreduce_c"]]
    environment = dict(os.environ, LD_LIBRARY_PATH=str(library))
    if python:
        programs.append([python, examples / "broadcast.py"])
        has_numpy = (
            subprocess.run([python, "-c", "import numpy"], stderr=subprocess.DEVNULL).returncode
            == 0
        )
        callers.append([python, examples / "allreduce.py"] if has_numpy else callers[0])
        environment["PYTHONPATH"] = str(next(prefix.rglob("dist-packages")))
    else:
        programs.append(programs[0])
        callers.append(callers[0])

    (folder / "secret").write_bytes(os.urandom(32))
    message = os.urandom(3_000_001)
    members = ",".join(
        f"127.{232 + i}.{os.getpid() >> 8 & 255}.{os.getpid() & 255}" for i in range(3)
    )
    for first in range(3):  # each is the root once
        files = [folder / f"file{first}{i}" for i in range(3)]
        files[0].write_bytes(message)
        running = [
            subprocess.Popen(
                [
                    *map(str, programs[(first + i) % 3]),
                    str(i),
                    members,
                    folder / "secret",
                    files[i],
                ],
                env=environment,
                cwd=folder,
            )
            for i in range(3)
        ]
        assert [process.wait(timeout=40) for process in running] == [0, 0, 0]
        assert all(file.read_bytes() == message for file in files)

    running = [
        subprocess.Popen(
            [*map(str, callers[i]), str(i), members, folder / "secret"],
            env=environment,
            cwd=folder,
            stdout=subprocess.PIPE,
            text=True,
        )
        for i in range(3)
    ]
    assert [process.communicate(timeout=40)[0] for process in running] == [
        "ranks add up to 3, values to 4.5\n"
    ] * 3

    if "PREPOST_TEST_LONG" in os.environ:
        run("cpack", "-B", folder / "package", cwd=build)
        [package] = (folder / "package").glob("*.deb")
        depends = run("dpkg-deb", "-f", package, "Depends")
        assert (
            "libsodium23" in depends and "libgvc" not in depends and "ibverbs" not in depends
        ), depends
        run("dpkg", "-x", package, folder / "root")
        assert run(folder / "root/usr/bin/prepost", "--version").startswith("prepost ")
