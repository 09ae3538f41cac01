# SPDX-License-Identifier: Apache-2.0
"""Runs every command that the README, the docs and the built-in help show: COMMAND SOURCE-FOLDER.

A documented command is a line of a code block, or of a help text's examples, that begins with "prepost ", and the lines that
continue it, each behind a backslash. They run in order,
two pages at a time, each in a temporary folder that holds a small image.raw, a plan.json, its shards/, a rolled.json, node 3's of it in
rolled-3.json, and the examples. With a "prepost node" run all other nodes of
its plan, each at an address of its own of the loopback interface. A "prepost push" finds an ssh whose hosts are folders of
this machine. Commands for a card must be right up to it: they end with 3
and say that it is missing. A "prepost diff" may find differences. Where there is a card they are left out. What leaves no file and is
shown by several pages runs for the first of them.

Of the commands in SHOWN the page shows the output, too: in the first block behind them, whose lines without "..." are printed."""
import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading

COMMAND, SOURCE = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
SUBCOMMANDS = ["compile", "choose", "unroll", "verify", "stats", "explain", "diff", "draw", "lower", "run", "node", "compare",
               "simulate", "calibrate", "topology", "export", "import", "devices", "probe", "push"]
SHOWN = {("simulate.md", "prepost simulate eight.json --profile fractus")}
SECRET = "the secret of the documented commands"
AGENT = """#!/bin/sh
# As ssh: options, the host, the command. Also as ip netns exec.
while [ "$1" = -o ] || [ "$1" = netns ] || [ "$1" = exec ]; do
  [ "$1" = -o ] && shift
  shift
done
mkdir -p "$1" && cd "$1" && shift
SSH_CONNECTION="127.0.0.1 1 127.0.0.1 22" exec "$@"
"""


def commands_of(text, in_code_only):
    fenced = False
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        if line.startswith("```"):
            fenced = not fenced
        is_code = not in_code_only or fenced or line.startswith("    ")
        match = re.match(r"\s*(?:\$ )?(prepost .*)", line)
        if is_code and match:
            yield match.group(1)


def shown_output(text, line):
    """The lines that the page `text` shows of what `line` prints."""
    behind = text.partition(line + "\n")[2]
    return [it for it in behind.split("```")[1].splitlines() if it and "..." not in it]


def main():
    agents_folder = tempfile.TemporaryDirectory()
    agents = pathlib.Path(agents_folder.name)
    for name in ["ssh", "ip"]:
        (agents / name).write_text(AGENT)
        (agents / name).chmod(0o700)
    environment = {**os.environ, "PATH": f"{agents}:{COMMAND.parent}:{os.environ['PATH']}", "PREPOST_SECRET": SECRET}

    def run(line, folder):
        return subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=folder, env=environment, capture_output=True,
                              text=True, timeout=120)

    def run_without_card(line, folder):
        """The outcome of `line`: 0 if all that it lacks is its card."""
        if line.startswith("prepost node "):
            prepare_node(line, folder)
        done = run(line, folder)
        if done.returncode == 3 and re.search(r"(--)?device (mlx5_|verbs:)[^:]+: (there is no|libibverbs has no|this prepost was built without|cannot load lib)", done.stderr):
            done.returncode = 0
        return done

    def prepare_node(line, folder):
        """The files that `line` needs; its plan and its node."""
        words = shlex.split(line, comments=True)
        path = pathlib.Path(folder, words[2])
        plan = json.loads((path / "index.json" if path.is_dir() else path).read_text())
        node = int(words[words.index("--node") + 1])
        address = f"127.{os.getpid() // 200 % 200 + 1}.{os.getpid() % 200}."
        ports = {node: ":7000-7010"} if "--port" in words else {}
        pathlib.Path(folder, "peers.txt").write_text(
            "".join(f"{i} {address}{i + 1}{ports.get(i, '')}\n" for i in range(plan["nodes"])))
        secret = pathlib.Path(folder, "secret")
        secret.write_text(SECRET + "\n")
        secret.chmod(0o600)
        return plan, node

    def run_node(line, folder):
        """The outcome of `line`, with the others."""
        words = shlex.split(line, comments=True)
        plan, node = prepare_node(line, folder)
        with contextlib.ExitStack() as stack:
            others = {}
            for other in set(range(plan["nodes"])) - {node}:
                # One node's file of a rolled plan is of no use to the others.
                file = "rolled.json" if words[2].startswith("rolled-") else words[2]
                arguments = ["node", file, "--node", str(other), "--peers", "peers.txt"]
                if "--message-bytes" in words:
                    arguments += ["--message-bytes", words[words.index("--message-bytes") + 1]]
                arguments += ["--input", "image.raw"] if other == plan["root"] else []
                others[other] = stack.enter_context(subprocess.Popen([COMMAND, *arguments], cwd=folder, env=environment,
                                                                     stdout=subprocess.DEVNULL))
            done = run(line, folder)
            for other in others.values():
                done.returncode = done.returncode or other.wait(timeout=120)
        return done

    def run_calibrate(line, folder):
        """Without the seconds for which it looks at the clock."""
        return run(re.sub(r" --look \S+", "", line).replace("calibrate", "calibrate --look 100ms"), folder)

    def run_push(line, folder):
        if "--allow-devices" in line:
            line = f"[ ! -e /dev/prepost ] || {line}"  # never
        pathlib.Path(folder, "notes.txt").write_text("notes")
        pathlib.Path(folder, "folder").mkdir(exist_ok=True)
        pathlib.Path(folder, "hosts.txt").write_text("node1\nroot@node2:images\n")
        pathlib.Path(folder, "README.md").write_text("readme")
        return run(line.replace(":/srv/", ":srv/").replace(":/tmp", ":tmp"), folder)

    sources = {}
    for path in [SOURCE / "README.md", *sorted((SOURCE / "docs").glob("*.md"))]:
        sources[path.name] = list(commands_of(path.read_text(), in_code_only=True))
    for subcommand in SUBCOMMANDS:
        shown = run(f"prepost {subcommand} --help", "/")
        assert shown.returncode == 0, shown
        examples = shown.stdout.partition("Examples:")[2]
        sources[f"{subcommand} --help"] = list(commands_of(examples, in_code_only=False))
        assert sources[f"{subcommand} --help"], f"{subcommand} --help shows no examples"

    devices = json.loads(run("prepost devices --json", "/").stdout)["devices"]
    has_card = any(device["name"].startswith(("mlx5_", "verbs:")) for device in devices)
    compared = set()
    shown_by = {}
    network = threading.Lock()  # nodes of two pages would have the same addresses

    files = tempfile.TemporaryDirectory()
    pathlib.Path(files.name, "image.raw").write_bytes(os.urandom(3_000_000))
    pathlib.Path(files.name, "examples").symlink_to(SOURCE / "examples")
    for flags in ["--message-bytes any -o rolled.json", "--message-bytes any --node 3 -o rolled-3.json", "--message image.raw -o plan.json",
                  "--message image.raw --encoding shards -o shards/"]:
        made = run(f"prepost compile --nodes 8 --block-bytes 400kB {flags}", files.name)
        assert made.returncode == 0, made.stderr

    def run_page(source, lines):
        """How many lines ran, and what is wrong with those that failed."""
        count, failures = 0, []
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(files.name, folder, symlinks=True, dirs_exist_ok=True)
            for line in lines:
                if "..." in line or "PLAN" in line:
                    continue  # a form, not a command
                needs_card = re.search(" mlx5_| verbs:", line.partition("#")[0]) is not None
                if needs_card and has_card:
                    print(f"{source}: left out, as there is a card: {line}")
                    continue
                leaves_none = re.match(r"prepost (compare|devices|run) ", line) and not re.search(r" -o | --output| --trace|>", line)
                if leaves_none and shown_by.setdefault(line, source) != source:
                    continue
                count += 1
                play = run_without_card if needs_card else run_node if line.startswith("prepost node ") else run_push if " push " in line else run_calibrate if line.startswith("prepost calibrate ") else run
                with network if play in (run_node, run_push) else contextlib.nullcontext():
                    done = play(line, folder)
                if "prepost diff " in line and done.stderr.endswith(" differ\n"):
                    done.returncode = 0  # 1 is its answer
                missing = []
                if (source, line) in SHOWN:
                    compared.add((source, line))
                    page = (SOURCE / "docs" / source).read_text()
                    missing = [it for it in shown_output(page, line) if it not in done.stdout.splitlines()]
                if done.returncode != 0 or missing:
                    failures.append("\n  it does not print: ".join(
                        [f"{source}: {line}\n  exit {done.returncode}: {done.stderr}", *missing]))
        return count, failures

    count, failures = 0, []
    with concurrent.futures.ThreadPoolExecutor(2) as pages:
        for of_page, failures_of_page in pages.map(run_page, sources.keys(), sources.values()):
            count += of_page
            failures += failures_of_page
    print(*failures, f"{count} documented commands, {len(failures)} failed", sep="\n")
    assert count > 10
    assert compared == SHOWN, f"no longer documented: {SHOWN - compared}"
    sys.exit(1 if failures else 0)


main()
