# SPDX-License-Identifier: Apache-2.0
"""Runs every command that the README, the docs and the built-in help show, and compares what it
prints with the page: COMMAND SOURCE-FOLDER [--write].

Blocks are those of tests/support/pages.py. Commands run in order, two pages at a time, each page in
a temporary folder that holds a small image.raw, a plan.json, its shards/, a rolled.json, node 3's
of it in rolled-3.json, and the examples. With a "prepost node" run all other nodes of its plan,
each at an address of its own of the loopback interface. A "prepost push" finds an ssh whose hosts
are folders of this machine. Commands for a card must be right up to it: they end with 3 and say
that it is missing. Where there is a card they are left out. A "prepost diff" may find differences.
What leaves no file and is shown by several pages runs for the first of them.

Of a command in a console block all that it prints is what the page shows, but for times and words
of this machine (pages.masked()), and it ends with 0, but for the last of a block `console fails`.
At most EXEMPT_MAX blocks are not compared, each with its reason on the page; those that take
minutes are with PREPOST_TEST_LONG. Files of the source that a page names, and what its links lead
to, are there. With --write the pages are changed to what the commands print."""
import concurrent.futures
import contextlib
import difflib
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

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import pages  # noqa: E402

COMMAND, SOURCE = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
WRITES = "--write" in sys.argv[3:]
SUBCOMMANDS = [
    "compile",
    "choose",
    "unroll",
    "verify",
    "stats",
    "explain",
    "diff",
    "draw",
    "lower",
    "run",
    "node",
    "compare",
    "simulate",
    "calibrate",
    "topology",
    "export",
    "import",
    "devices",
    "probe",
    "push",
]
EXEMPT_MAX = 5
#: Blocks of output on the pages: one that is hidden behind another word for its language would not
#: be missed otherwise. Those that only long runs compare are of these.
CONSOLE_MIN = 24
LONG_MAX = 3
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


def help_commands(text):
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        match = re.match(r"\s*(prepost .*)", line)
        if match:
            yield pages.Shown(match.group(1))


def commands_of(text):
    """The commands and files of a page, in order, each with its block."""
    for block in pages.blocks(text):
        if block.words and block.language not in ("sh", "console"):
            yield block, None
        for shown in pages.commands(block):
            yield block, shown


def write_page(path, outputs):
    """`outputs`: what is printed, by the first line of what the page shows of it and the line
    behind."""
    lines = path.read_text().splitlines()
    for (begin, end, indent), text in sorted(outputs.items(), reverse=True):
        lines[begin:end] = [(indent + line).rstrip() for line in pages.wrapped(text)]
    path.write_text("\n".join(lines) + "\n")


def main():
    agents_folder = tempfile.TemporaryDirectory()
    agents = pathlib.Path(agents_folder.name)
    for name in ["ssh", "ip"]:
        (agents / name).write_text(AGENT)
        (agents / name).chmod(0o700)
    environment = {
        **os.environ,
        "PATH": f"{agents}:{COMMAND.parent}:{os.environ['PATH']}",
        "PREPOST_SECRET": SECRET,
    }

    def run(line, folder):
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", line],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def run_without_card(line, folder):
        """The outcome of `line`: 0 if all that it lacks is its card."""
        if line.startswith("prepost node "):
            prepare_node(line, folder)
        done = run(line, folder)
        if done.returncode == 3 and re.search(
            r"(--)?device (mlx5_|verbs:)[^:]+: "
            r"(there is no|libibverbs has no|this prepost was built without|cannot load lib)",
            done.stderr,
        ):
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
            "".join(f"{i} {address}{i + 1}{ports.get(i, '')}\n" for i in range(plan["nodes"]))
        )
        pathlib.Path(folder, "sites.txt").write_text(
            "".join(
                f"{i} {address}{i + 1} site={'london' if i < 2 else 'tokyo'}\n"
                for i in range(plan["nodes"])
            )
        )
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
                arguments += ["--seal"] if "--seal" in words else []
                is_of_root = plan["collective"] in ["multicast", "scatter"]
                arguments += (
                    ["--input", "image.raw"] if other == plan["root"] or not is_of_root else []
                )
                others[other] = stack.enter_context(
                    subprocess.Popen(
                        [COMMAND, *arguments],
                        cwd=folder,
                        env=environment,
                        stdout=subprocess.DEVNULL,
                    )
                )
            done = run(line, folder)
            for other in others.values():
                done.returncode = done.returncode or other.wait(timeout=120)
        return done

    def run_calibrate(line, folder):
        """Without the seconds for which it looks at the clock."""
        return run(
            re.sub(r" --look \S+", "", line).replace("calibrate", "calibrate --look 100ms"), folder
        )

    def run_push(line, folder):
        pathlib.Path(folder, "notes.txt").write_text("notes")
        pathlib.Path(folder, "folder").mkdir(exist_ok=True)
        pathlib.Path(folder, "hosts.txt").write_text("node1\nroot@node2:images\n")
        pathlib.Path(folder, "sites.txt").write_text("node1 site=london\nnode2 site=tokyo\n")
        pathlib.Path(folder, "README.md").write_text("readme")
        return run(line.replace(":/srv/", ":srv/").replace(":/tmp", ":tmp"), folder)

    sources = {}
    for path in [SOURCE / "README.md", *sorted((SOURCE / "docs").glob("*.md"))]:
        sources[path] = list(commands_of(path.read_text()))
    for subcommand in SUBCOMMANDS:
        shown = run(f"prepost {subcommand} --help", "/")
        assert shown.returncode == 0, shown
        examples = list(help_commands(shown.stdout.partition("Examples:")[2]))
        assert examples, f"{subcommand} --help shows no examples"
        sources[pathlib.Path(f"{subcommand} --help")] = [(None, it) for it in examples]

    devices = json.loads(run("prepost devices --json", "/").stdout)["devices"]
    has_card = any(device["name"].startswith(("mlx5_", "verbs:")) for device in devices)
    is_long = "PREPOST_TEST_LONG" in os.environ
    shown_by = {}
    network = threading.Lock()  # nodes of two pages would have the same addresses

    files = tempfile.TemporaryDirectory()
    pathlib.Path(files.name, "image.raw").write_bytes(os.urandom(3_000_000))
    pathlib.Path(files.name, "examples").symlink_to(SOURCE / "examples")
    for flags in [
        "--message-bytes any -o rolled.json",
        "--message-bytes any --node 3 -o rolled-3.json",
        "--message image.raw -o plan.json",
        "--message image.raw --encoding shards -o shards/",
    ]:
        made = run(f"prepost compile --nodes 8 --block-bytes 400kB {flags}", files.name)
        assert made.returncode == 0, made.stderr

    def play(line, folder):
        needs_card = re.search(" mlx5_| verbs:", line.partition("#")[0]) is not None
        if needs_card:
            return run_without_card(line, folder)
        for word, way in [("node", run_node), ("push", run_push)]:
            if re.search(f"(^|\\| )prepost {word} ", line):
                with network:
                    return way(line, folder)
        return (run_calibrate if line.startswith("prepost calibrate ") else run)(line, folder)

    def run_page(path, entries):
        """How many commands ran, the blocks that were compared, and what is wrong."""
        source, count, compared, failures, outputs = path.name, 0, set(), [], {}
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(files.name, folder, symlinks=True, dirs_exist_ok=True)
            for block, shown in entries:
                if shown is None:
                    pathlib.Path(folder, block.words[0]).write_text("\n".join(block.lines) + "\n")
                    continue
                line = shown.command
                is_compared = shown.output is not None and not shown.reason
                if (not is_compared and ("..." in line or "PLAN" in line)) or shown.reason:
                    continue  # a form, not a command
                if block is not None and "long" in block.words and not is_long:
                    continue
                if re.search(" mlx5_| verbs:", line.partition("#")[0]) and has_card:
                    print(f"{source}: left out, as there is a card: {line}")
                    continue
                leaves_none = re.match(r"prepost (compare|devices|run) ", line) and not re.search(
                    r" -o | --output| --trace|>", line
                )
                if not is_compared and leaves_none and shown_by.setdefault(line, source) != source:
                    continue
                if "--allow-devices" in line:
                    print(f"{source}: left out, as it writes a device: {line}")
                    continue
                count += 1
                done = play(line, folder)
                printed = done.stdout + done.stderr
                if is_compared:
                    compared.add(block.begin)
                    measures = pages.MEASURES.search(line) is not None
                    fails = (
                        "fails" in block.words
                        and shown.begin == list(pages.commands(block))[-1].begin
                    )
                    if (done.returncode != 0) != fails:
                        failures.append(
                            f"{source}:{block.begin}: exit {done.returncode}, expected"
                            f" {'another than ' if fails else ''}0: {line}"
                        )
                    if pages.masked("\n".join(shown.output), measures) != pages.masked(
                        printed, measures
                    ):
                        begin = block.begin + shown.output_begin
                        outputs[begin, begin + len(shown.output), block.indent] = printed
                        failures.append(
                            f"{source}:{begin + 1}: {line}\n"
                            + "\n".join(
                                difflib.unified_diff(
                                    shown.output,
                                    printed.splitlines(),
                                    "the page",
                                    "is printed",
                                    lineterm="",
                                )
                            )
                        )
                elif done.returncode != 0 and not (
                    "prepost diff " in line and done.stderr.endswith(" differ\n")
                ):
                    failures.append(f"{source}: {line}\n  exit {done.returncode}: {done.stderr}")
        if WRITES and outputs:
            write_page(path, outputs)
        return count, compared, failures

    count, failures, exempt, console, long_blocks = 0, [], [], 0, 0
    for path in list(sources)[: -len(SUBCOMMANDS)]:
        failures += [
            f"{path.name}: there is no {name}"
            for name in pages.files_named(path.read_text())
            if not any((SOURCE / (name + suffix)).exists() for suffix in ("", ".cc"))
        ]
        failures += [
            f"{path.name}: the link {target} leads nowhere" for target in pages.dead_links(path)
        ]
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        done = list(threads.map(run_page, sources.keys(), sources.values()))
    for (path, entries), (of_page, compared, failures_of_page) in zip(sources.items(), done):
        count += of_page
        failures += failures_of_page
        exempt += {
            f"{path.name}:{block.begin}: {it.reason}"
            for block, it in entries
            if it is not None and it.reason
        }
        outputs = {
            block.begin: "long" in block.words
            for block, _ in entries
            if block is not None and block.language == "console"
        }
        console += len(outputs)
        long_blocks += sum(outputs.values())
        hidden = {
            block.begin
            for block in (pages.blocks(path.read_text()) if path.exists() else [])
            if block.language not in ("sh", "console", "indented")
            and not block.words
            and any(re.match(r"\$ |prepost ", text) for text in block.lines)
        }
        failures += [
            f"{path.name}:{begin}: commands in a block that is neither sh nor console"
            for begin in sorted(hidden)
        ]
        if outputs:
            later = sum(is_long_one and not is_long for is_long_one in outputs.values())
            print(
                f"{path.name}: compared what is printed with the blocks of lines"
                f" {sorted(compared)}; {later} only in long runs"
            )
        reasons = {block.begin for block, it in entries if it is not None and it.reason}
        left_out = {
            begin for begin, is_long_one in outputs.items() if is_long_one and not is_long
        } | reasons
        failures += [
            f"{path.name}:{begin}: not compared, and no reason is given"
            for begin in sorted(set(outputs) - left_out - compared)
            if not has_card
        ]
    print(
        *[f"not compared: {it}" for it in exempt],
        *failures,
        f"{count} documented commands, {len(failures)} failed",
        sep="\n",
    )
    assert console >= CONSOLE_MIN and long_blocks <= LONG_MAX, (console, long_blocks)
    assert len(exempt) <= EXEMPT_MAX, exempt
    sys.exit(1 if failures else 0)


main()
