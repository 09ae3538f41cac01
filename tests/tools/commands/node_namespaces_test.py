# SPDX-License-Identifier: Apache-2.0
"""`prepost node` between machines, and `prepost run` on one: COMMAND. Each machine is a network
namespace; a switch in another one joins them.

Checks that a plan's copies are right, also where a link is away for a while, and that everyone
reports it when the link of one node is cut during a transfer, or the loopback device under a run.
Needs root and iproute2, otherwise it says so
and ends with code 77 (skipped). Nothing is made outside of the namespaces."""
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from namespaces import PREFIX, ip, limit_rate, namespaces, skip  # noqa: E402

COMMAND = sys.argv[1]
NODES = 4
FAILURE_MAX = 2  # --failure-max of the nodes, seconds
END_MAX = FAILURE_MAX + 0.5 + 4  # for all to report; the last is slack for a loaded machine
HANG = 100
RTO_MAX_MS = 44  # TCP_RTO_MAX_MS, since Linux 6.15


def received_bytes(node, device="eth0"):
    text = ip("-n", PREFIX + str(node), "-s", "-o", "link", "show", device).stdout
    return int(text.partition("RX:")[2].split("\\")[1].split()[0])


class Group:
    """All nodes of a plan, one process each."""

    def __init__(self, folder, flags=()):
        self.folder = folder
        self.processes = []
        for node in range(NODES):
            file = (
                ["--input", folder / "image"]
                if node == 0
                else ["--output", folder / f"copy-{node}"]
            )
            words = [
                "ip",
                "netns",
                "exec",
                PREFIX + str(node),
                COMMAND,
                "node",
                folder / "plan.json",
                "--node",
                str(node),
                "--peers",
                folder / "peers",
                "--secret-file",
                folder / "secret",
                *file,
                *flags,
            ]
            self.processes.append(
                subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()

    def await_transfer(self):
        before = received_bytes(NODES - 1)
        due = time.monotonic() + HANG
        while received_bytes(NODES - 1) < before + 2_000_000:
            assert (
                time.monotonic() < due and self.processes[0].poll() is None
            ), "the transfer does not begin"
            time.sleep(0.01)

    def ends(self, seconds):
        """(code, stderr) of each node."""
        due = time.monotonic() + seconds
        ends = []
        for process in self.processes:
            _, err = process.communicate(timeout=max(due - time.monotonic(), 0.001))
            ends.append((process.returncode, err))
        return ends


def check_copies(folder):
    with Group(folder) as group:
        for node, (code, err) in enumerate(group.ends(HANG)):
            assert code == 0, f"node {node}: {err}"
    image = (folder / "image").read_bytes()
    for node in range(1, NODES):
        copy = folder / f"copy-{node}"
        assert copy.read_bytes() == image, f"the copy of node {node} is wrong"
        copy.unlink()


def check_outage(folder):
    """The kernel's tries double in distance, up to two seconds where it can be told so."""
    with socket.socket() as probe:
        try:
            probe.setsockopt(socket.IPPROTO_TCP, RTO_MAX_MS, 2000)
        except OSError:
            return print("this kernel does not bound the time between two tries: no outage")
    victim = PREFIX + "2"
    with Group(folder, ["--failure-max", "12s"]) as group:
        group.await_transfer()
        ip("-n", victim, "link", "set", "eth0", "down")
        time.sleep(4)
        ip("-n", victim, "link", "set", "eth0", "up")
        for node, (code, err) in enumerate(group.ends(HANG)):
            assert code == 0, f"node {node}: {err}"
    image = (folder / "image").read_bytes()
    for node in range(1, NODES):
        copy = folder / f"copy-{node}"
        assert copy.read_bytes() == image, f"the copy of node {node} is wrong"
        copy.unlink()


def check_cut(folder, victim):
    with Group(folder, ["--failure-max", f"{FAILURE_MAX}s"]) as group:
        group.await_transfer()
        ip("-n", PREFIX + str(victim), "link", "set", "eth0", "down")
        cut = time.monotonic()
        ends = group.ends(END_MAX)
        print(
            f"all had ended {time.monotonic() - cut:.2f} s after the cut, at --failure-max"
            f" {FAILURE_MAX}s"
        )
    for node, (code, err) in enumerate(ends):
        print(f"link of node {victim} cut, node {node}: {code}: {err.strip()}")
        assert code == 1 and err.count("\n") == 1, (node, code, err)
        if node != 0 and victim in (0, node):
            expected = r"node 0 \(10\.99\.0\.1:\d+\), the root, has said nothing"
        else:
            expected = rf"node {victim or '[123]'} \(10\.99\.0\.\d:\d+\) has said nothing"
        assert re.search(expected, err), (node, expected)
    left = [path.name for path in folder.iterdir() if path.name.startswith(("copy", ".prepost"))]
    assert not left, left
    ip("-n", PREFIX + str(victim), "link", "set", "eth0", "up")


def check_cut_under_a_run(folder):
    name = PREFIX + "0"
    ip("-n", name, "link", "set", "lo", "up")
    ip(
        "netns",
        "exec",
        name,
        "tc",
        "qdisc",
        "add",
        "dev",
        "lo",
        "root",
        "tbf",
        "rate",
        "60mbit",
        "burst",
        "256k",
        "latency",
        "50ms",
    )
    words = [
        "ip",
        "netns",
        "exec",
        name,
        COMMAND,
        "run",
        "--nodes",
        str(NODES),
        "--transport",
        "tcp",
        "--input",
        folder / "image",
        "--output-dir",
        folder / "copies",
        "--failure-max",
        f"{FAILURE_MAX}s",
    ]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as run:
        before = received_bytes(0, "lo")
        due = time.monotonic() + HANG
        while received_bytes(0, "lo") < before + 2_000_000:
            assert time.monotonic() < due and run.poll() is None, "the transfer does not begin"
            time.sleep(0.01)
        ip("-n", name, "link", "set", "lo", "down")
        cut = time.monotonic()
        _, err = run.communicate(timeout=END_MAX)
    print(f"loopback cut: {run.returncode} after {time.monotonic() - cut:.2f} s: {err.strip()}")
    assert run.returncode == 1 and err.count("\n") == 1, (run.returncode, err)
    assert re.search(
        r"node \d does not acknowledge what node \d has sent|lost its connection", err
    ), err
    assert not (folder / "copies").exists()


def main():
    with namespaces("node_namespaces", NODES), tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "image").write_bytes(os.urandom(40_000_001))
        (folder / "secret").write_text("the secret of this test\n")
        (folder / "secret").chmod(0o600)
        (folder / "peers").write_text(
            "".join(f"{node} 10.99.0.{node + 1}\n" for node in range(NODES))
        )
        subprocess.run(
            [
                COMMAND,
                "compile",
                "--nodes",
                str(NODES),
                "--message",
                folder / "image",
                "--block-bytes",
                "500kB",
                "-o",
                folder / "plan.json",
            ],
            check=True,
        )
        check_copies(folder)
        if not limit_rate(range(NODES), "60mbit"):
            skip(
                "node_namespaces",
                "copies are right; the kernel cannot limit rates (tc tbf), so no link was cut",
            )
        for victim in [2, 0]:
            check_cut(folder, victim)
        check_outage(folder)
        check_cut_under_a_run(folder)


main()
