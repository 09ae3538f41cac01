#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Python is written as black writes it, no line is longer than 100 columns, and flake8 finds
nothing: SOURCE-FOLDER.

Catches files that were not formatted, names that nothing uses, long comments and texts, which black
leaves as they are, and scripts without a suffix that `black .` and `flake8` would not see. Another
year's black formats otherwise: with one only the widths are checked."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[1]).resolve()
CONFIGURATION = ("pyproject.toml", ".flake8")
YEAR = "23"  # of Debian 12's black; its releases of one year format alike
OTHERS = {".git", ".cache", "__pycache__", "build", "demo-output"}  # folders that are no source
DAMAGED = {
    "one/long.py": "# a " + 97 * "x" + "\n",
    "two/unformatted.pyi": "names = ['one']\n",
    "scripts/figures": "#!/usr/bin/python3\nimport sys\n",
}
EXPECTED = (
    r"one/long\.py:1:101: E501 .*101 > 100",
    r"would reformat .*two/unformatted\.pyi",
    r"scripts/figures:2:1: F401 'sys'",
)


def is_python(path):
    if path.suffix:
        return path.suffix in (".py", ".pyi")
    with path.open("rb") as file:
        return re.match(rb"#!.*python", file.readline(200)) is not None


def python_files(root):
    """By their paths in it. Folders of builds and of virtual environments are left out."""
    for folder, folders, names in os.walk(root):
        here = pathlib.Path(folder)
        if here != root and not {"CMakeCache.txt", "pyvenv.cfg"}.isdisjoint(names):
            folders.clear()
            continue
        folders[:] = sorted(set(folders) - OTHERS)
        paths = (here / name for name in sorted(names))
        yield from (it.relative_to(root) for it in paths if it.is_file() and is_python(it))


def output(root, *words):
    """What a command prints that finds something; "" where it finds nothing."""
    done = subprocess.run(words, cwd=root, capture_output=True, text=True)
    return done.stdout + done.stderr if done.returncode else ""


def problems(root, files, is_formatted):
    """What both say; without `is_formatted` lines that are too long alone."""
    if not is_formatted:
        return output(root, "flake8", "--select", "E501", *files)
    formats = output(root, "black", "--config", "pyproject.toml", "--check", *files)
    return formats + output(root, "flake8", *files)


def check_damage(is_formatted):
    """That the configuration lets the tools find what they are there for."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for file in CONFIGURATION:
            shutil.copy(SOURCE / file, folder)
        for file, text in DAMAGED.items():
            (folder / file).parent.mkdir()
            (folder / file).write_text(text)
        files = list(python_files(folder))
        assert sorted(map(str, files)) == sorted(DAMAGED), files
        found = problems(folder, files, is_formatted)
        for expected in EXPECTED if is_formatted else EXPECTED[:1]:
            assert re.search(expected, found), (expected, found)


def main():
    missing = [tool for tool in ("black", "flake8") if not shutil.which(tool)]
    if missing:
        print(f"(skipped: {' and '.join(missing)} not installed: scripts/deps --test)")
        sys.exit(77)
    version = subprocess.run(["black", "--version"], capture_output=True, text=True, check=True)
    version = re.search(r"\d+(\.\d+)*", version.stdout)[0]
    is_formatted = version.partition(".")[0] == YEAR
    if not is_formatted:
        print(f"black {version} is not of the year {YEAR}: only widths are checked")
    check_damage(is_formatted)
    files = list(python_files(SOURCE))
    assert pathlib.Path("tests/style/python_style_test.py") in files, files
    texts = {file: (SOURCE / file).read_text() for file in CONFIGURATION}
    found = "".join(
        f"{path} has no suffix, and {file} does not name it\n"
        for path in files
        if not path.suffix
        for file, text in texts.items()
        if not re.search(rf"\b{re.escape(path.name)}\b", text)
    )
    found += problems(SOURCE, files, is_formatted)
    if found:
        sys.exit(f"{found}`black .` and `flake8` show the same; black mends what it finds")
    print(f"{len(files)} files of Python")


main()
