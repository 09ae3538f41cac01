# SPDX-License-Identifier: Apache-2.0
"""Runs every command that the README, the docs and the built-in help show: COMMAND SOURCE-FOLDER.

A documented command is a line of a code block, or of a help text's examples, that begins with "prepost ". They run in order
in one temporary folder that holds a small image.raw, a plan.json and the examples."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

COMMAND, SOURCE = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
SUBCOMMANDS = ["compile", "verify", "draw", "lower", "run", "compare"]


def commands_of(text, in_code_only):
    fenced = False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        is_code = not in_code_only or fenced or line.startswith("    ")
        match = re.match(r"\s*(?:\$ )?(prepost .*)", line)
        if is_code and match:
            yield match.group(1)


def main():
    environment = {**os.environ, "PATH": f"{COMMAND.parent}:{os.environ['PATH']}"}

    def run(line, folder):
        return subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=folder, env=environment, capture_output=True,
                              text=True, timeout=120)

    sources = {}
    for path in [SOURCE / "README.md", *sorted((SOURCE / "docs").glob("*.md"))]:
        sources[path.name] = list(commands_of(path.read_text(), in_code_only=True))
    for subcommand in SUBCOMMANDS:
        shown = run(f"prepost {subcommand} --help", "/")
        assert shown.returncode == 0, shown
        examples = shown.stdout.partition("Examples:")[2]
        sources[f"{subcommand} --help"] = list(commands_of(examples, in_code_only=False))
        assert sources[f"{subcommand} --help"], f"{subcommand} --help shows no examples"

    count = failures = 0
    for source, lines in sources.items():
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "image.raw").write_bytes(os.urandom(3_000_000))
            pathlib.Path(folder, "examples").symlink_to(SOURCE / "examples")
            made = run("prepost compile --nodes 8 --message image.raw --block-bytes 400kB -o plan.json", folder)
            assert made.returncode == 0, made.stderr
            for line in lines:
                if "..." in line or "PLAN" in line:
                    continue  # a form, not a command
                count += 1
                done = run(line, folder)
                if done.returncode != 0:
                    failures += 1
                    print(f"{source}: {line}\n  exit {done.returncode}: {done.stderr}")
    print(f"{count} documented commands, {failures} failed")
    assert count > 10
    sys.exit(1 if failures else 0)


main()
