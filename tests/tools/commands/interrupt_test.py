# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and SIGTERM at every moment from the first on: COMMAND SOURCE-FOLDER. The seed is
PREPOST_TEST_SEED, or 1.

Each command is interrupted at random moments, and, where strace is installed, right after system
calls that make or remove something: while it loads its plan, makes folders and copies, starts and
arms its nodes, transfers, sums and commits. Whenever it comes, the exit is 130 (or, before the
command has begun, the signal's own, which shells show as 130), with at most one line, and no file,
process or shared memory stays. Where it comes too late the exit is 0 and everything is there.

Catches signals that are held too late or let go too early, a cleanup that knows only the end of the
preparation, and reports that blame a node which got the signal, too."""
import collections
import itertools
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

COMMAND, SOURCE = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).absolute()
SEED = int(os.environ.get("PREPOST_TEST_SEED", 1))
TINY = str(SOURCE / "examples" / "devices" / "tiny.json")
FRACTUS = str(SOURCE / "examples" / "profiles" / "fractus.json")
MOMENTS = 6  # of each command, by time
CALLS_MAX = 10**6 if "PREPOST_TEST_LONG" in os.environ else 8  # of each command, by system call
HANG = 60  # seconds
STRACE = shutil.which("strace")
MAKING = re.compile(
    r"(mkdir|rename|renameat2?|link|linkat|unlink|unlinkat|rmdir|memfd_create|ftruncate|fallocate"
    r"|eventfd2|socketpair|clone3?|vfork|signalfd4)\(|(?P<opens>open|openat)\(.*O_CREAT"
)

RUN = ["run", "plan.json", "--input", "image", "--output-dir", "made/copies"]
COMMANDS = {
    "compile": [
        "compile",
        "--nodes",
        "16",
        "--message",
        "image",
        "--block-bytes",
        "10kB",
        "-o",
        "made.json",
    ],
    "run on tcp": [*RUN, "--executor", "cpu", "--transport", "tcp"],
    "run on shm": [*RUN, "--executor", "cpu", "--transport", "shm", "--trace", "trace.json"],
    "run on emulated": [
        *RUN,
        "--executor",
        "offload",
        "--device",
        "emulated",
        "--trace",
        "trace.json",
    ],
    "run on mlx5:emulated": [*RUN, "--executor", "offload", "--device", "mlx5:emulated"],
    "run in parts": [*RUN, "--executor", "offload", "--mode", "managed", "--device-profile", TINY],
    "compare": ["compare", "plan.json", "--repeat", "1"],
    "compile into shards": [
        "compile",
        "--nodes",
        "300",
        "--algorithm",
        "binomial_pipeline",
        "--message-bytes",
        "3MB",
        "--block-bytes",
        "100kB",
        "--encoding",
        "shards",
        "-o",
        "shards",
    ],
    "lower": ["lower", "plan.json", "-o", "queues.bin"],
    "lower --from-list": ["lower", "plan.json", "--from-list", "queues.txt", "-o", "queues.json"],
    "sweep": [
        "simulate",
        "plan.json",
        "--profile",
        FRACTUS,
        "--sweep",
        "seed=1:20:+1",
        "--csv",
        "made.csv",
    ],
    "simulate --trace": [
        "simulate",
        "plan.json",
        "--profile",
        FRACTUS,
        "--executor",
        "cpu",
        "--trace",
        "trace.json",
    ],
    "probe": ["probe", "--device", "mlx5:emulated"],
}


def files_of(folder):
    """Name and content of all files, and the folders; None for what depends on the run."""
    return {
        str(path.relative_to(folder)): (
            path.read_bytes() if path.is_file() and path.name != "trace.json" else None
        )
        for path in folder.rglob("*")
    }


def members_of(session):
    """The processes of a session that have not ended."""
    members = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = pathlib.Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == session and fields[0] not in "ZX":
            members.append(pid)
    return members


def shared_memory_of(pid):
    """What has a name and outlives a process."""
    named = [path.name for path in pathlib.Path("/dev/shm").glob("*prepost*")]
    segments = pathlib.Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    return named + [line for line in segments if int(line.split()[4]) == pid]


class Interrupted:
    """One command, interrupted again and again in one folder."""

    def __init__(self, name, folder):
        self.name, self.folder = name, folder
        self.before = files_of(folder)
        begin = time.monotonic()
        self.run([COMMAND, *COMMANDS[name]], lambda process: None, "the first run")
        self.duration = time.monotonic() - begin
        self.outcomes = collections.Counter()

    def run(self, words, interrupt, moment):
        """Runs, calls `interrupt` with the process, checks everything,
        and leaves the folder as it was."""
        process = subprocess.Popen(
            words,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            interrupt(process)
            out, err = process.communicate(timeout=HANG)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        due = time.monotonic() + HANG
        while members_of(process.pid) and time.monotonic() < due:
            time.sleep(0.001)
        left = files_of(self.folder)
        what = (
            f"{self.name}, {moment}: exit {process.returncode}, {err!r}, made"
            f" {sorted(left.keys() - self.before.keys())}"
        )
        assert not members_of(process.pid), f"{what}: processes stay"
        assert not shared_memory_of(process.pid), f"{what}: shared memory stays"
        if process.returncode == 0:
            self.check_done(left, what)
        else:
            assert process.returncode in (130, -signal.SIGINT, -signal.SIGTERM), what
            assert err == ("prepost: interrupted\n" if process.returncode == 130 else ""), what
            # A file that a flag names has its name when it is complete,
            # however the process then ends.
            is_late = ("-o" in words or "simulate" in words) and left == self.done
            assert left == self.before or is_late, what
            assert out == "" or words[1] != "run", what
        for name in left.keys() - self.before.keys():
            path = self.folder / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        return process.returncode

    def check_done(self, left, what):
        if not hasattr(self, "done"):
            self.done = left
            assert left.keys() >= self.before.keys(), what
        assert left == self.done, what

    def at_random_times(self, generator):
        for _ in range(MOMENTS):
            at = generator.random() ** 1.5 * self.duration  # more of the early ones
            all_processes = generator.random() < 0.5  # as at a terminal
            number = (
                signal.SIGINT
                if all_processes
                else generator.choice([signal.SIGINT, signal.SIGTERM])
            )

            def interrupt(process):
                time.sleep(at)
                (os.killpg if all_processes else os.kill)(process.pid, number)

            moment = (
                f"{number.name} {'to all processes ' if all_processes else ''}after"
                f" {1000 * at:.3f} ms"
            )
            self.outcomes[self.run([COMMAND, *COMMANDS[self.name]], interrupt, moment)] += 1

    def at_system_calls(self, generator, log):
        """Only those of the command's own process;
        its nodes' processes hear of it by their launcher."""
        words = [STRACE, "-qq", "-o", log, COMMAND, *COMMANDS[self.name]]
        if self.run(words, lambda process: None, "traced") != 0:
            return
        counts, calls = collections.Counter(), []
        for line in log.read_text(errors="replace").splitlines():
            name = line.partition("(")[0]
            counts[name] += 1
            if MAKING.match(line):
                calls.append((name, counts[name]))
        for name, index in sorted(
            generator.sample(calls, min(len(calls), CALLS_MAX)), key=calls.index
        ):
            words = [
                STRACE,
                "-qq",
                "-o",
                log,
                "-e",
                f"inject={name}:signal=SIGINT:when={index}",
                COMMAND,
                *COMMANDS[self.name],
            ]
            self.outcomes[self.run(words, lambda process: None, f"in {name} number {index}")] += 1
        assert (
            self.outcomes[130] > 0 or COMMANDS[self.name][0] != "run"
        ), f"{self.name}: never interrupted after it had made something"


def can_trace():
    done = STRACE and subprocess.run(
        [
            STRACE,
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            "inject=getpid:error=EPERM:when=9999",
            COMMAND,
            "--version",
        ],
        capture_output=True,
    )
    return bool(done) and done.returncode == 0


def while_reading(folder):
    """A plan that takes long to come: there is a reader as soon as the pipe can be opened."""
    pipe = folder / "slow.json"
    os.mkfifo(pipe)
    all_words = (
        ["verify", pipe.name],
        ["lower", pipe.name],
        ["run", pipe.name, "--input", "image"],
        ["compile", pipe.name],
    )
    for words, number in itertools.product(
        all_words, [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    ):
        process = subprocess.Popen(
            [COMMAND, *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        with open(pipe, "w"):
            process.send_signal(number)
            out, err = process.communicate(timeout=HANG)
        what = f"{words}, {number.name}: {process.returncode}, {out!r}, {err!r}"
        assert (process.returncode, out, err) == (130, "", "prepost: interrupted\n"), what
    pipe.unlink()


def main():
    print(f"seed {SEED}")
    generator = random.Random(SEED)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "work"
        folder.mkdir()
        (folder / "image").write_bytes(generator.randbytes(2_000_001))
        make = dict(cwd=folder, check=True, stdout=subprocess.PIPE)
        # With credits: a device that holds few receives runs it, too.
        subprocess.run(
            [
                COMMAND,
                "compile",
                "--nodes",
                "5",
                "--message",
                "image",
                "--block-bytes",
                "50kB",
                "--ready",
                "window=1",
                "-o",
                "plan.json",
            ],
            **make,
        )
        listing = subprocess.run([COMMAND, "lower", "plan.json", "--list"], **make).stdout
        (folder / "queues.txt").write_bytes(listing)
        while_reading(folder)
        traces = can_trace()
        if not traces:
            print("strace is missing or may not trace: nothing is interrupted at its system calls")
        for name in COMMANDS:
            command = Interrupted(name, folder)
            command.at_random_times(generator)
            if traces:
                command.at_system_calls(generator, folder.parent / "calls")
            outcomes = ", ".join(
                f"{count} x {code}" for code, count in sorted(command.outcomes.items())
            )
            print(
                f"{name}: {1000 * command.duration:.0f} ms uninterrupted; exits: {outcomes}",
                flush=True,
            )


main()
