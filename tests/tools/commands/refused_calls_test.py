# SPDX-License-Identifier: Apache-2.0
"""System calls that a container's profile or an older kernel refuses: COMMAND SOURCE REFUSE.

`run`, `node`, `push`, `receive` and a session in Python, with each call of the table refused: the
right bytes are everywhere, or an error says in one line what cannot be done, within the time limit;
and no process, file or memory is left. In each run one of the errors, by PREPOST_TEST_SEED, with
PREPOST_TEST_LONG all. Catches nodes that outlive their launcher, waits for a thread that never
starts, transfers that are thrown away in the end, and errors without a name."""
import concurrent.futures
import itertools
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

COMMAND, SOURCE, REFUSE = (os.path.abspath(path) for path in sys.argv[1:4])
SEED = int(os.environ.get("PREPOST_TEST_SEED", 1))
IS_LONG = "PREPOST_TEST_LONG" in os.environ
ERRORS = ["EPERM", "ENOSYS", "EAGAIN"]
CALLS = [
    "close_range",
    "pidfd_open",
    "clone3",
    "clone",
    "thread",
    "memfd_create",
    "linkat",
    "tmpfile",
    "process_vm_readv",
    "fchmod",
    "futimens",
    "fallocate",
]
LIMIT = 20  # seconds
SECRET = "a secret of more than 16 bytes"

# What may fail, with what it says. All else must work.
NO_THREAD = r"cannot start (the|a) thread .*\(clone\)"
NO_PROCESS = r"cannot start .*(\(fork\)|refuse|sh\b)"
FAILURES = {
    ("run", "clone3"): NO_THREAD,
    ("run", "clone"): NO_PROCESS + "|" + NO_THREAD,
    ("run", "thread"): NO_THREAD,
    ("push", "clone3"): NO_PROCESS,
    ("push", "clone"): NO_PROCESS + "|cannot fork|Cannot fork",
    ("push", "thread"): NO_THREAD,
    ("receive", "clone3"): NO_THREAD,
    ("receive", "clone"): NO_THREAD + "|[Cc]annot fork",
    ("receive", "thread"): NO_THREAD,
    ("node", "clone3"): NO_THREAD,
    ("node", "thread"): NO_THREAD,
    ("python", "clone3"): NO_THREAD,
    ("python", "thread"): NO_THREAD,
}
# What then is not as it should be, which verdicts say.
UNKEPT = {"fchmod": "mode", "futimens": "time"}
# An error for which the C library has another way.
WORKS = {("clone3", "ENOSYS")}

SESSIONS = """
import os, prepost
own = f"{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
members = [f"127.90.{own}", f"127.91.{own}"]
sessions = [
    prepost.Session(self=i, members=members, secret=b"a secret of more than 16 bytes")
    for i in range(2)
]
groups = [session.group(1) for session in sessions]
groups[0].send(open("image", "rb").read())
got = bytearray(3_000_000)
groups[1].receive(got)
open("out/python", "wb").write(got)
for session in sessions:
    session.close()
"""


def refused(words):
    return [REFUSE, words]


class Case:
    """One command with refused calls, in a folder of its own."""

    def __init__(self, kind, call, error, folder):
        self.kind, self.call, self.error = kind, call, error
        self.name = f"{kind} {call}={error}"
        self.folder = folder / f"{kind}-{call}-{error}"
        self.folder.mkdir()
        (self.folder / "out").mkdir()
        for name in ("image", "plan.json"):
            os.link(folder / name, self.folder / name)

    def agent(self, *wrapper):
        """An agent that runs the command here, through `wrapper`."""
        path = self.folder / "agent"
        path.write_text("#!/bin/sh\nshift\nexec " + " ".join([*wrapper, "sh", "-c", '"$*"\n']))
        path.chmod(0o700)
        return path

    def push(self, *wrapper):
        """The words of a push to two hosts whose receivers run through `wrapper`."""
        return [
            *[COMMAND, "push", "image", "--to", "127.0.0.1:out/a,127.0.0.2:out/b"],
            *["--agent", self.agent(*wrapper), "--remote-command", COMMAND],
            *["--failure-max", "3s", "--connect-timeout", "6"],
        ]

    def nodes(self):
        """Node 0 with refused calls, and node 1 without."""
        (self.folder / "secret").write_text(SECRET)
        (self.folder / "secret").chmod(0o600)
        own = os.getpid() >> 8 & 255, os.getpid() & 255
        place = CALLS.index(self.call) * len(ERRORS) + ERRORS.index(self.error)
        address = f"127.{100 + place}.{own[0]}.{own[1]}"
        port = 7811
        (self.folder / "peers").write_text(f"0 {address}:{port}\n1 {address}:{port + 1}\n")
        common = [COMMAND, "node", "pair.json", "--peers", "peers", "--secret-file", "secret"]
        common += ["--failure-max", "3s", "--connect-timeout", "6"]
        subprocess.run(
            [COMMAND, "compile", "--nodes", "2", "--message", "image", "-o", "pair.json"],
            cwd=self.folder,
            check=True,
            capture_output=True,
        )
        return (
            [*common, "--node", "1", "--output", "out/copy"],
            [*common, "--node", "0", "--input", "image"],
        )

    def run(self):
        words = f"{self.call}={self.error}"
        others, copies = [], 1
        if self.kind == "run":
            command = [*refused(words), COMMAND, "run", "plan.json", "--input", "image"]
            command += ["--output-dir", "out", "--failure-max", "3s"]
            copies = 3
        elif self.kind == "push":
            command, copies = [*refused(words), *self.push()], 2
        elif self.kind == "receive":
            command, copies = self.push(*refused(words)), 2
        elif self.kind == "node":
            command, other = self.nodes()
            command = [*refused(words), *command]
            others = [subprocess.Popen(other, cwd=self.folder, **PIPES)]
        else:
            command = [*refused(words), sys.executable, "-c", SESSIONS]
        began = time.monotonic()
        process = subprocess.Popen(command, cwd=self.folder, start_new_session=True, **PIPES)
        try:
            out, err = process.communicate(timeout=LIMIT)
            others_said = "".join(sum((other.communicate(timeout=LIMIT) for other in others), ()))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            for other in others:
                other.kill()
            return f"{self.name}: has not ended after {LIMIT} s"
        took = time.monotonic() - began
        return self.judge(process, out + err, copies, took) + self.left(process.pid, others_said)

    def judge(self, process, said, copies, took):
        may_fail = FAILURES.get((self.kind, self.call))
        if (self.call, self.error) in WORKS:
            may_fail = None
        files = [path for path in (self.folder / "out").rglob("*") if path.is_file()]
        image = (self.folder / "image").read_bytes()
        if process.returncode == 0:
            unkept = UNKEPT.get(self.call) if self.kind in ("push", "receive") else None
            if unkept and f"not kept: {unkept} of out/" not in said:
                return f"{self.name}: does not say that the {unkept} is not kept\n{said}"
            if len(files) == copies and all(path.read_bytes() == image for path in files):
                return ""
            return f"{self.name}: exit 0 with the files {files}\n{said}"
        if may_fail is None:
            return f"{self.name}: exit {process.returncode} after {took:.1f} s\n{said}"
        if files:
            return f"{self.name}: failed, and left {files}\n{said}"
        if process.returncode not in (1, 3):
            return f"{self.name}: exit {process.returncode}\n{said}"
        if not re.search(may_fail, said):
            return f"{self.name}: says nothing of {may_fail}\n{said}"
        return ""

    def left(self, session, others_said):
        """What is still there of the processes of the command."""
        due = time.monotonic() + 5
        while members := members_of(session):
            if time.monotonic() > due:
                return f"\n{self.name}: processes are left: {members}\n{others_said}"
            time.sleep(0.02)
        partial = list((self.folder / "out").rglob(".prepost*"))
        return f"\n{self.name}: left {partial}" if partial else ""


PIPES = {
    "stdin": subprocess.DEVNULL,
    "stdout": subprocess.PIPE,
    "stderr": subprocess.PIPE,
    "text": True,
}


def members_of(session):
    """The processes of a session that have not ended."""
    members = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = pathlib.Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(stat[3]) == session and stat[0] not in "ZX":
            members.append(int(pid))
    return members


HIDE_PROC = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
HIDE_PROC += ['mount -t tmpfs none /proc && exec "$0" "$@"']


def kill_and_wait(launcher, is_ready):
    """Of a command that is killed in the middle, all processes end soon."""
    due = time.monotonic() + LIMIT
    while not is_ready():
        assert launcher.poll() is None, launcher.stderr.read()
        assert time.monotonic() < due, "it does not start"
        time.sleep(0.005)
    os.kill(launcher.pid, signal.SIGKILL)
    launcher.wait()
    due = time.monotonic() + 8
    while members := members_of(launcher.pid):
        assert time.monotonic() < due, f"{members} outlive their launcher"
        time.sleep(0.02)
    launcher.stderr.close()


def check_killed_launcher(folder, can_hide):
    """A launcher that is killed takes its nodes with it, though they have inherited all its files
    because close_range is refused; with /proc and without."""
    for hides_proc in (False, True) if can_hide else (False,):
        command = [COMMAND, "run", "long.json", "--input", "large", "--output-dir", "killed"]
        command = [*HIDE_PROC, *command] if hides_proc else command
        launcher = subprocess.Popen(
            [*refused("close_range=EPERM"), *command],
            cwd=folder,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        kill_and_wait(launcher, lambda it=launcher: len(members_of(it.pid)) >= 5)


def check_killed_push(folder):
    """A push that is killed leaves no receiver and no part of a file, whatever call is refused;
    in each run one of those that it works without."""
    calls = [call for call in CALLS if ("push", call) not in FAILURES]
    (folder / "pushes").mkdir()
    for name in ("image", "plan.json"):
        os.link(folder / name, folder / "pushes" / name)
    case = Case("push", calls[SEED % len(calls)], "EPERM", folder / "pushes")
    refusing = refused(f"{case.call}=EPERM")
    words = [*refusing, *case.push(*refusing), "--name", "stream"]
    words[words.index("image")] = "-"
    launcher = subprocess.Popen(
        words, cwd=case.folder, start_new_session=True, **{**PIPES, "stdin": subprocess.PIPE}
    )
    launcher.stdin.write("x" * 3_000_000)
    launcher.stdin.flush()
    began = time.monotonic()
    # Of the stream, which does not end, something is there.
    kill_and_wait(
        launcher,
        lambda: len(members_of(launcher.pid)) >= 3 and time.monotonic() > began + 1,
    )
    launcher.stdin.close()
    launcher.stdout.close()
    left = [path for path in (case.folder / "out").rglob("*") if path.is_file()]
    assert not left, f"{case.name}: {left}"


def check_without_proc(folder):
    """Catches what is only noticed when all has been moved."""
    for words in (
        ["run", "plan.json", "--input", "image", "--output-dir", "no-proc"],
        ["push", "image", "--to", "localhost:no-proc/a,localhost:no-proc/b"],
    ):
        done = subprocess.run(
            [*HIDE_PROC, COMMAND, *words], cwd=folder, timeout=LIMIT, capture_output=True, text=True
        )
        assert done.returncode == 0, (words, done)
    copies = [path for path in (folder / "no-proc").rglob("*") if path.is_file()]
    image = (folder / "image").read_bytes()
    assert len(copies) == 5 and all(path.read_bytes() == image for path in copies), copies


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "image").write_bytes(os.urandom(3_000_000))
        with open(folder / "large", "wb") as large:
            large.truncate(600_000_000)
        for plan, message in (("plan.json", "image"), ("long.json", "large")):
            subprocess.run(
                [COMMAND, "compile", "--nodes", "4", "--message", message, "-o", plan],
                cwd=folder,
                check=True,
                capture_output=True,
            )
        probe = subprocess.run([REFUSE, "close_range=EPERM", "true"], capture_output=True)
        if probe.returncode == 125:
            print(f"skipped: {probe.stderr}")
            sys.exit(77)
        kinds = ["run", "node", "push", "receive"]
        kinds += ["python"] if "PYTHONPATH" in os.environ else []
        cases = []
        for number, (call, kind) in enumerate(itertools.product(CALLS, kinds)):
            errors = ERRORS if IS_LONG else [ERRORS[(SEED + number // len(kinds)) % len(ERRORS)]]
            cases += [Case(kind, call, error, folder) for error in errors]
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            faults = [fault for fault in pool.map(Case.run, cases) if fault]
        assert not faults, "\n".join(faults) + f"\nPREPOST_TEST_SEED={SEED}"
        can_hide = subprocess.run([*HIDE_PROC, "true"], capture_output=True).returncode == 0
        if not can_hide:
            print("no mount namespaces: not tried without /proc")
        check_killed_launcher(folder, can_hide)
        check_killed_push(folder)
        if can_hide:
            check_without_proc(folder)
        print(f"{len(cases)} cases, PREPOST_TEST_SEED={SEED}")


main()
