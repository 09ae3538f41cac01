# SPDX-License-Identifier: Apache-2.0
"""Machines for a test: network namespaces, joined by a switch in another one. Needs root and
iproute2; a test without them says so and ends with code 77 (skipped). Nothing is made outside of
the namespaces."""
import contextlib
import os
import subprocess
import sys

PREFIX = f"prepost-test-{os.getpid()}-"
SKIPPED = 77


def skip(test, reason):
    print(f"[  SKIPPED ] {test} ({reason})")
    sys.exit(SKIPPED)


def ip(*words, check=True):
    return subprocess.run(["ip", *words], check=check, capture_output=True, text=True)


def remove(prefix):
    for line in ip("netns", "list", check=False).stdout.splitlines():
        name = line.split()[0]
        if name.startswith(prefix):
            ip("netns", "del", name, check=False)


def remove_stale():
    """Namespaces of tests that were killed."""
    for line in ip("netns", "list", check=False).stdout.splitlines():
        parts = line.split()[0].split("-")
        if parts[:2] == ["prepost", "test"] and not os.path.exists(f"/proc/{parts[2]}"):
            remove("-".join(parts[:3]) + "-")


def connect_all(nodes):
    """The switch and the nodes; node i is 10.99.0.(i + 1)."""
    switch = PREFIX + "switch"
    ip("netns", "add", switch)
    ip("-n", switch, "link", "add", "bridge", "type", "bridge")
    ip("-n", switch, "link", "set", "bridge", "up")
    for node in range(nodes):
        namespace = PREFIX + str(node)
        ip("netns", "add", namespace)
        ip(
            "-n",
            switch,
            "link",
            "add",
            f"port{node}",
            "type",
            "veth",
            "peer",
            "name",
            "eth0",
            "netns",
            namespace,
        )
        ip("-n", switch, "link", "set", f"port{node}", "master", "bridge", "up")
        ip("-n", namespace, "addr", "add", f"10.99.0.{node + 1}/24", "dev", "eth0")
        ip("-n", namespace, "link", "set", "eth0", "up")
        ip("-n", namespace, "link", "set", "lo", "up")


def limit_rate(nodes, rate):
    """Whether the kernel can."""
    for node in nodes:
        done = subprocess.run(
            [
                "tc",
                "-n",
                PREFIX + str(node),
                "qdisc",
                "add",
                "dev",
                "eth0",
                "root",
                "tbf",
                "rate",
                rate,
                "burst",
                "64kb",
                "latency",
                "100ms",
            ],
            capture_output=True,
        )
        if done.returncode != 0:
            return False
    return True


@contextlib.contextmanager
def namespaces(test, nodes):
    """PREFIX + "0" and on, while it lives."""
    if os.geteuid() != 0:
        skip(test, "needs root for network namespaces")
    try:
        remove_stale()
        ip("netns", "add", PREFIX + "probe")
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        skip(test, f"cannot make network namespaces: {error}")
    try:
        connect_all(nodes)
        yield
    finally:
        remove(PREFIX)
