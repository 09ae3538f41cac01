#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The manual and the completion have what --help has: COMMAND MANUAL-FOLDER.

Catches a subcommand or flag that is in one of them only, text that roff takes for requests or
drops, and completion that offers nothing or the flags of another subcommand."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

command, manual = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])


def output(*arguments, **options):
    return subprocess.run(arguments, capture_output=True, text=True, check=True, **options)


def words(text):
    return " ".join(text.split())


def page(name):
    """The page as text, on lines that are never filled up or hyphenated."""
    path = manual / "man1" / f"{name}.1"
    assert path.exists(), f"no page {name}"
    shown = output("groff", "-man", "-Tascii", "-P-cbou", "-rLL=5000n", "-rHY=0", "-ww", str(path))
    assert not shown.stderr, shown.stderr
    return words(shown.stdout)


def completed(*typed):
    script = (
        f'source {manual}/bash-completion/prepost; COMP_WORDS=("$@");'
        ' COMP_CWORD=$(($# - 1)); _prepost; echo "${COMPREPLY[*]}"'
    )
    return output("bash", "-c", script, "bash", *typed).stdout.split()


if not shutil.which("groff"):
    print("(skipped: groff is not installed)")
    sys.exit(77)
top = output(command, "--help").stdout
names = re.findall(r"(?m)^  (\w+) ", top[top.index("Subcommands:") :])
assert len(names) > 10, top
pages = {path.stem for path in (manual / "man1").iterdir()}
assert pages == {"prepost", *(f"prepost-{name}" for name in names)}, pages
assert completed("prepost", "") == [*names, "help", "version", "-h", "--help", "-v", "--version"]
assert completed("prepost", "help", "comp") == ["compare", "compile"] or completed(
    "prepost", "help", "comp"
) == ["compile", "compare"]
assert (
    "prepost"
    in output("bash", "-c", f"source {manual}/bash-completion/prepost; complete -p prepost").stdout
)
overview = page("prepost")
for name in names:
    assert f"prepost-{name}(1)" in overview, name
    shown, text = page(f"prepost-{name}"), output(command, name, "--help").stdout
    body = text.split("\n", 1)[1]
    # Each line of the options' descriptions, and of the footer with its examples, word for word.
    for line in body.splitlines():
        described = re.match(r"  (-\S+|[A-Z]\S*)(.*?)(?:  +(.*))?$", line)
        wanted = described.group(3) if described and described.group(3) else line
        if line.startswith("Usage:") or line in ("Positionals:", "Options:", "Examples:"):
            continue
        if line.endswith(":") and not line.startswith(" "):  # a group
            wanted = line[:-1]
        assert words(wanted) in shown, f"{name}: not in its page: {wanted}"
    flags = set(
        re.findall(r"(?<![\w-])--?[a-z][a-z-]*", "\n".join(re.findall(r"(?m)^  (-\S+)", body)))
    )
    assert set(completed("prepost", name, "-")) == flags, (
        name,
        flags,
        completed("prepost", name, "-"),
    )
assert completed("prepost", "compile", "--alg") == ["--algorithm"]
assert completed("prepost", "compile", "pl") == []  # files, by the shell itself
