# SPDX-License-Identifier: Apache-2.0
"""Two sites of two machines with a long path between them, all that crosses it: COMMAND WAN_LINK,
the Python package in PYTHONPATH.

`push`, groups, `node` over TCP and over libfabric bring the same bytes to all, in whatever order
hosts are named each block crosses once, what does not fit the sites is said, and when the path is
cut everybody hears of it in time. Needs root, iproute2 and /dev/net/tun; without them it says so
and ends with code 77 (skipped)."""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path[:0] = [
    str(pathlib.Path(__file__).resolve().parents[2] / "support"),
    str(pathlib.Path(__file__).resolve().parents[3] / "bench/network"),
]
import namespaces  # noqa: E402
from sites import Sites  # noqa: E402

COMMAND, WAN_LINK = sys.argv[1:3]
ROUND_TRIP = 0.06
PATH = {"A,B": f"rate=100e6,queue=1e6,delay={ROUND_TRIP / 2}"}
ORDER = [0, 2, 1, 3]  # hosts as they are named: A, B, A, B
SIZE = 2_000_003
SECRET = "of the machines of two sites"
HANG = 60
FAILURE_MAX = 2.0
SLACK = 4.0  # for a loaded machine

MEMBER = """
import sys, time, prepost
number, size = int(sys.argv[1]), int(sys.argv[2])
members, secret = sys.argv[3].split(","), sys.argv[5]
sites = sys.argv[4].split(",") if sys.argv[4] else None
with prepost.Session(self=number, members=members, secret=secret, sites=sites) as session:
    group = session.group(1)
    message = bytes(range(256)) * (size // 256)
    group.wait_opened(30)
    print("notes", group.notes(), flush=True)
    try:
        for _ in range(2):
            got = group.broadcast(message) if number == 0 else group.receive(timeout=30)
            assert bytes(got) == message
        group.destroy(30)
    except prepost.TransferError as error:
        print("failed", time.time(), error, flush=True)
        sys.exit(1)
"""


def crossed(sites):
    """Bytes that left site A for site B."""
    return next(it["bytes"] for it in sites.packets if it["from"] == "A")


def two_sites():
    return Sites(namespaces.PREFIX, [2, 2], PATH, WAN_LINK, mtu=1500)


def check_push(folder, image):
    hosts = folder / "hosts"
    with two_sites() as sites:
        hosts.write_text(
            "".join(
                f"{sites.space(i)}:{folder}/at-{i} {sites.addresses[i]}"
                f" site={sites.names[sites.site_of[i]]}\n"
                for i in ORDER[1:]
            )
        )
        words = [
            *sites.inside(0),
            COMMAND,
            "push",
            image,
            "--hosts",
            hosts,
            "--agent",
            "ip netns exec",
            "--remote-command",
            COMMAND,
        ]
        done = subprocess.run(words, capture_output=True, text=True, timeout=HANG)
        assert (
            done.returncode == 2 and "--site NAME says where this machine is" in done.stderr
        ), done.stderr
        done = subprocess.run([*words, "--site", "A"], capture_output=True, text=True, timeout=HANG)
        assert (
            done.returncode == 0
            and "each block enters each site once\n" in done.stderr
            and "round trip" not in done.stderr
        ), (done.stdout, done.stderr)
        for i in ORDER[1:]:
            assert (
                folder / f"at-{i}" / "image"
            ).read_bytes() == image.read_bytes(), f"machine {i} has something else"
    assert crossed(sites) < 1.5 * SIZE, f"{crossed(sites)} bytes crossed, of {SIZE}"


def start_members(sites, folder, size, with_sites=True):
    member = folder / "member.py"
    member.write_text(MEMBER)
    addresses = ",".join(sites.addresses[i] for i in ORDER)
    names = ",".join(sites.names[sites.site_of[i]] for i in ORDER) if with_sites else ""
    return [
        subprocess.Popen(
            [
                *sites.inside(i),
                sys.executable,
                member,
                str(number),
                str(size),
                addresses,
                names,
                SECRET,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number, i in enumerate(ORDER)
    ]


def check_groups(folder):
    size = SIZE // 256 * 256
    with two_sites() as sites:
        outputs = [
            member.communicate(timeout=HANG) for member in start_members(sites, folder, size)
        ]
        assert all(
            "notes ['each block enters each site once']" in out and not err for out, err in outputs
        ), outputs
    assert crossed(sites) < 2 * 1.5 * size, f"{crossed(sites)} bytes crossed, of twice {size}"
    with two_sites() as sites:
        outputs = [
            member.communicate(timeout=HANG)
            for member in start_members(sites, folder, 256, with_sites=False)
        ]
        assert (
            "from member 0 to member 1, member 3 takes 6" in outputs[0][0]
            and "no sites are named" in outputs[0][0]
        ), outputs


def check_cut(folder):
    with two_sites() as sites:
        members = start_members(sites, folder, 100_000_000 // 256 * 256)
        for member in members:
            member.stdout.readline()  # all are connected
        time.sleep(0.5)
        cut_at = time.time()
        sites.cut()
        for number, member in enumerate(members):
            out, err = member.communicate(timeout=HANG)
            assert member.returncode == 1 and out.startswith("failed "), (number, out, err)
            took = float(out.split()[1]) - cut_at
            assert (
                took < FAILURE_MAX + 2 * ROUND_TRIP + SLACK
            ), f"member {number} heard of it after {took} s: {out}"


def run_nodes(sites, folder, plan, image, order, *flags):
    """The root's stderr. Node i of the plan is machine order[i]."""
    secret, peers = folder / "secret", folder / "peers"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    peers.write_text(
        "".join(
            f"{node} {sites.addresses[i]} site={sites.names[sites.site_of[i]]}\n"
            for node, i in enumerate(order)
        )
    )
    nodes = []
    for node, i in enumerate(order):
        file = ["--input", image] if node == 0 else ["--output", folder / f"copy-{node}"]
        nodes.append(
            subprocess.Popen(
                [
                    *sites.inside(i),
                    COMMAND,
                    "node",
                    plan,
                    "--node",
                    str(node),
                    "--peers",
                    peers,
                    "--secret-file",
                    secret,
                    *file,
                    *flags,
                ],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    outputs = [node.communicate(timeout=HANG) for node in nodes]
    for node, (out, err) in enumerate(outputs):
        assert nodes[node].returncode == 0, f"node {node}: {out} {err}"
        assert (
            node == 0 or (folder / f"copy-{node}").read_bytes() == image.read_bytes()
        ), f"node {node} has something else"
    return outputs[0][1]


def check_nodes(folder, image):
    plan = folder / "plan.json"
    subprocess.run(
        [
            COMMAND,
            "compile",
            "--nodes",
            "4",
            "--algorithm",
            "chain",
            "--message",
            image,
            "--block-bytes",
            "64KiB",
            "-o",
            plan,
        ],
        check=True,
        capture_output=True,
    )
    with two_sites() as sites:
        said = run_nodes(sites, folder, plan, image, [0, 1, 2, 3], "--pace", "90Mbit/s")
        assert "each block enters each site once" in said, said
    assert crossed(sites) < 1.5 * SIZE, f"{crossed(sites)} bytes crossed, of {SIZE}"
    with two_sites() as sites:
        for i in range(4):  # a system whose buffers are too small for a Gbit/s over the path
            subprocess.run(
                [*sites.inside(i), "sysctl", "-qw", "net.ipv4.tcp_rmem=4096 65536 262144"],
                check=True,
            )
        said = run_nodes(sites, folder, plan, image, ORDER)
        assert (
            "buffers allow " in said
            and "of 1Gbit/s; it takes a last number in net.ipv4.tcp_rmem of " in said
        ), said
        assert "each block enters site B 2 times" in said, said
        if (
            "fabric:tcp"
            in subprocess.run([COMMAND, "devices"], capture_output=True, text=True).stdout
        ):
            run_nodes(sites, folder, plan, image, [0, 1, 2, 3], "--device", "fabric:tcp")
        else:
            print("no fabric:tcp here")


def main():
    if os.geteuid() != 0 or not os.path.exists("/dev/net/tun"):
        namespaces.skip("two_sites", "needs root and /dev/net/tun")
    namespaces.remove_stale()
    try:
        two_sites().__enter__().__exit__()
    except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
        namespaces.skip("two_sites", f"cannot make two sites: {error}")
    for check in (check_push, check_groups, check_cut, check_nodes):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            image = folder / "image"
            image.write_bytes(os.urandom(SIZE))
            begin = time.monotonic()
            check(*[folder, image][: check.__code__.co_argcount])
            print(f"{check.__name__}: {time.monotonic() - begin:.1f} s", flush=True)


main()
