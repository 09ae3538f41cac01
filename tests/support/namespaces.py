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


def limit_device(namespace, device, rate):
    """What it sends. Whether the kernel can."""
    limit = ["tbf", "rate", rate, "burst", "64kb", "latency", "100ms"]
    words = ["tc", "-n", namespace, "qdisc", "replace", "dev", device, "root", *limit]
    return subprocess.run(words, capture_output=True).returncode == 0


def limit_rate(nodes, rate):
    """Of what each sends. Whether the kernel can."""
    return all(limit_device(PREFIX + str(node), "eth0", rate) for node in nodes)


def limit_both_ways(node, rate):
    """Of what it sends and what it gets."""
    limit_rate([node], rate)
    limit_device(PREFIX + "switch", f"port{node}", rate)


def isolate(node, is_isolated):
    """A node that is isolated reaches those that are not."""
    state = "on" if is_isolated else "off"
    words = ["link", "set", "dev", f"port{node}", "isolated", state]
    subprocess.run(["bridge", "-n", PREFIX + "switch", *words], check=True)


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
