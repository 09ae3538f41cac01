# SPDX-License-Identifier: Apache-2.0
"""`prepost push` to hosts that are network namespaces,
with `ip netns exec` in place of ssh: COMMAND.

Files arrive as they were (content, mode, time, holes), from files and pipes, to folders, pipes and
block devices; what is there is not sent again; what is changed on the way is noticed; a host that
fails, or whose agent loses its connection, leaves nothing anywhere, or with --keep-going takes
nobody down; Ctrl-C leaves nothing."""
import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from namespaces import PREFIX, ip, isolate, limit_both_ways, limit_rate, namespaces  # noqa: E402

COMMAND = sys.argv[1]
HOSTS = 4  # beside the pusher, which is namespace 0, and a man in the middle, who is the last
HANG = 60


class World:
    def __init__(self, folder):
        self.folder = folder
        self.hosts = folder / "hosts"
        self.write_hosts(lambda host: self.target(host))
        # Process numbers of their own, too, so that hosts cannot read each other's memory instead
        # of the network.
        self.agent = folder / "agent"
        self.agent.write_text(
            "#!/bin/sh\nhost=$1\nshift\n"
            'exec ip netns exec "$host" unshare --pid --fork --kill-child -- "$@"\n'
        )
        self.agent.chmod(0o700)
        # One that is a connection, as ssh is: SIGUSR1 cuts it, and nothing else.
        self.connection = folder / "connection"
        self.connection.write_text(
            f'#!/bin/sh\necho $$ > "{folder}/connection-of-$1"\n'
            f'exec {sys.executable} {__file__} connect {self.agent} "$@"\n'
        )
        self.connection.chmod(0o700)
        self.image = folder / "image"
        self.image.write_bytes(os.urandom(40_000_001))

    def target(self, host):
        return self.folder / f"host-{host}"

    def write_hosts(self, target_of):
        self.hosts.write_text(
            "# host, and where others reach it\n"
            + "".join(
                f"{PREFIX}{host}:{target_of(host)} 10.99.0.{host + 1}\n"
                for host in range(1, HOSTS + 1)
            )
        )

    def words(self, *more):
        return [
            "ip",
            "netns",
            "exec",
            PREFIX + "0",
            COMMAND,
            "push",
            "--hosts",
            self.hosts,
            "--agent",
            self.agent,
            "--remote-command",
            COMMAND,
            "--json",
            "--failure-max",
            "1s",
            *more,
        ]

    def push(self, *more, code=0, stdin=b""):
        """The verdicts by host, and the whole report."""
        done = subprocess.run(self.words(*more), input=stdin, capture_output=True, timeout=HANG)
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return self.read(done.stdout)

    def read(self, text):
        report = json.loads(text)
        return [host for host in report["hosts"]], report

    def clear(self):
        for host in range(1, HOSTS + 1):
            if self.target(host).is_dir():
                for path in self.target(host).iterdir():
                    path.unlink()

    def left(self):
        """What is at the hosts, temporary files among it."""
        return sorted(
            f"{host}/{path.name}"
            for host in range(1, HOSTS + 1)
            if self.target(host).is_dir()
            for path in self.target(host).iterdir()
        )


def check_files(world):
    sparse = world.folder / "sparse"
    with open(sparse, "wb") as file:
        file.seek(3_000_000)
        file.write(b"data" * 1000)
        file.truncate(50_000_000)
    empty = world.folder / "empty"
    empty.write_bytes(b"")
    sparse.chmod(0o640)
    world.image.chmod(0o501)
    os.utime(world.image, ns=(1, 1_234_567_890_123_456_789))
    paths = [world.image, sparse, empty]
    verdicts, report = world.push(*paths)
    assert all(verdict["ok"] and not verdict["unchanged"] for verdict in verdicts), verdicts
    for host in range(1, HOSTS + 1):
        for path in paths:
            copy = world.target(host) / path.name
            assert copy.read_bytes() == path.read_bytes(), copy
            assert copy.stat().st_mode == path.stat().st_mode, copy
            assert copy.stat().st_mtime_ns == path.stat().st_mtime_ns, copy
        assert (world.target(host) / "sparse").stat().st_blocks * 512 < 1_000_000
    assert report["bytes"] < 41_000_000, report
    # Nothing is sent again; but to the host that lacks it.
    verdicts, report = world.push(*paths)
    assert (
        all(verdict["ok"] and verdict["unchanged"] for verdict in verdicts) and report["bytes"] == 0
    ), report
    (world.target(2) / "sparse").unlink()
    verdicts, report = world.push(*paths)
    assert [verdict["unchanged"] for verdict in verdicts] == [True, False, True, True] and report[
        "bytes"
    ] < 1_000_000, report
    assert (world.target(2) / "sparse").read_bytes() == sparse.read_bytes()
    # By content: an equal time does not hide a difference, and another time makes none.
    copy = world.target(3) / world.image.name
    content = bytearray(copy.read_bytes())
    content[17] ^= 1
    copy.chmod(0o600)
    copy.write_bytes(content)
    os.utime(copy, ns=(1, 1_234_567_890_123_456_789))
    os.utime(world.target(1) / world.image.name, ns=(5, 5))
    verdicts, _ = world.push("--checksum", world.image)
    assert [verdict["unchanged"] for verdict in verdicts] == [True, True, False, True], verdicts
    assert copy.read_bytes() == world.image.read_bytes()
    assert (world.target(1) / world.image.name).stat().st_mtime_ns == 1_234_567_890_123_456_789
    world.clear()
    check_links(world)


def check_links(world):
    """What a link at a host points to is not the file, however equal, and stays as it is."""
    image = world.folder / "small"
    image.write_bytes(os.urandom(100_000))
    image.chmod(0o644)
    world.push(image)
    victim = world.folder / "victim"
    copy = world.target(2) / image.name
    copy.rename(victim)
    victim.chmod(0o600)
    copy.symlink_to(victim)
    verdicts, _ = world.push(image)
    assert [verdict["unchanged"] for verdict in verdicts] == [True, False, True, True], verdicts
    assert not copy.is_symlink() and copy.read_bytes() == image.read_bytes()
    assert victim.stat().st_mode & 0o777 == 0o600, victim.stat()
    world.clear()


def blake2b(data, person=b""):
    return hashlib.blake2b(data, digest_size=32, person=person).hexdigest()


def check_unreachable(world):
    """Hosts that do not reach each other, or not this machine either, as where it is behind NAT:
    here it is not at the address that they are told. Catches a push that serves nobody, and one
    that says neither to where nor why."""
    everyone = range(1, HOSTS + 1)
    away = ["--address", "10.99.0.200"]
    for isolated, away in ((everyone, []), (everyone, away), ((2, 3), [])):
        for host in isolated:
            isolate(host, True)
        try:
            done = subprocess.run(
                world.words(world.image, "--connect-timeout", "2", *away),
                capture_output=True,
                timeout=HANG,
            )
        finally:
            for host in isolated:
                isolate(host, False)
        verdicts, report = world.read(done.stdout)
        assert done.returncode == 0 and all(verdict["ok"] for verdict in verdicts), done
        said = done.stderr.decode()
        whom = "this machine or each other" if away else "(this machine or )?each other"
        assert re.search(
            rf"--algorithm sequential: not all hosts reach {whom}: .*"
            r"10\.99\.0\.\d+:\d+: (no answer|No route to host)",
            said,
        ), said
        assert report["sequential_because"] in said, report
        world.clear()
    check_nobody_reaches_hosts(world)
    check_no_data_network(world)
    check_refused(world)
    check_two_addresses(world)


def check_two_addresses(world):
    """A name with two addresses, the first of which leads nowhere. Catches one that is tried
    alone, by this machine or by the other hosts."""
    hosts = world.folder / "named-hosts"
    hosts.write_text(
        "".join(f"{PREFIX}{host}:{world.target(host)} two-{host}\n" for host in range(1, 4))
    )
    names = world.folder / "names"
    names.write_text(
        "".join(f"10.99.0.{230 + host} two-{host}\n" for host in range(1, 4))
        + "".join(f"10.99.0.{host + 1} two-{host}\n" for host in range(1, 4))
    )
    words = [hosts if word == world.hosts else word for word in world.words(world.image)]
    place = words.index(COMMAND)
    words[place:place] = ["unshare", "--mount", "sh", "-c"]
    words[place + 4 : place + 4] = ['mount --bind "$0" /etc/hosts && exec "$@"', names]
    done = subprocess.run(words, capture_output=True, timeout=HANG)
    verdicts, report = world.read(done.stdout)
    assert done.returncode == 0 and all(verdict["ok"] for verdict in verdicts), done
    assert report["sequential_because"] is None, report
    world.clear()


def check_refused(world):
    """Hosts that answer, at an address where a firewall, or here another machine, refuses all
    connections, so that the others go on. Catches a push that waits for them as for members that
    are about to come, which takes 10 s at its defaults, also where hosts before them in the chain
    have got something, and one that names only one of two."""
    for refusing in (2, 4), (3,):
        hosts = world.folder / "refusing-hosts"
        hosts.write_text(
            "".join(
                f"{PREFIX}{host}:{world.target(host)} "
                f"{'10.99.0.1' if host in refusing else f'10.99.0.{host + 1}'}\n"
                for host in range(1, HOSTS + 1)
            )
        )
        words = [hosts if word == world.hosts else word for word in world.words(world.image)]
        for keep_going in ["--keep-going"], []:
            began = time.monotonic()
            done = subprocess.run([*words, *keep_going], capture_output=True, timeout=HANG)
            took = time.monotonic() - began
            verdicts, _ = world.read(done.stdout)
            assert done.returncode == 1 and took < 9, (took, done)
            for host, verdict in enumerate(verdicts, 1):
                if host in refusing:
                    words_of = (
                        r"this machine does not reach it: 10\.99\.0\.1:\d+: Connection refused"
                    )
                    assert re.fullmatch(words_of, verdict["error"]), verdict
                    assert not verdict["is_consequence"], verdict
                else:
                    assert verdict["ok"] == bool(keep_going), verdict
            world.clear()


def check_nobody_reaches_hosts(world):
    """As where each host's firewall lets only the remote shell in: they reach this machine. And
    where they do not: catches a push that names no host as the cause, and one that says not where
    it was looked for."""
    hosts = world.folder / "unreached-hosts"
    hosts.write_text(
        "".join(f"{PREFIX}{host}:{world.target(host)} 10.99.0.{200 + host}\n" for host in (1, 2, 3))
    )
    words = [hosts if word == world.hosts else word for word in world.words(world.image)]
    for away in [], ["--address", "10.99.0.220"]:
        done = subprocess.run(
            [*words, "--connect-timeout", "2", *away], capture_output=True, timeout=HANG
        )
        verdicts, report = world.read(done.stdout)
        assert re.match(r"(neither|not all)", report["sequential_because"]), report
        said = done.stderr.decode()
        assert "each host connects to this machine, which sends to it itself" in said, said
        if not away:
            assert done.returncode == 0 and all(verdict["ok"] for verdict in verdicts), done
            world.clear()
            continue
        assert done.returncode == 1, done
        for verdict in verdicts:
            words_of = r"this machine does not reach it: 10\.99\.0\.20\d:\d+: .*"
            assert re.fullmatch(words_of, verdict["error"]), verdict
            assert not verdict["is_consequence"], verdict


def check_no_data_network(world):
    """A host that answers, and whose address for data is dead. Catches a push that blames another
    one, or that brings the others their files by itself, and goes on doing so."""
    dead = 2
    ip("-n", f"{PREFIX}{dead}", "link", "set", "eth0", "down")
    try:
        for keep_going in (["--keep-going"], []):
            done = subprocess.run(
                world.words(world.image, "--connect-timeout", "2", *keep_going),
                capture_output=True,
                timeout=HANG,
            )
            verdicts, report = world.read(done.stdout)
            assert done.returncode == 1, done
            assert report["sequential_because"] is None, report
            assert [verdict["ok"] for verdict in verdicts] == [
                bool(keep_going) and host != dead for host in range(1, HOSTS + 1)
            ], verdicts
            assert re.fullmatch(
                r"this machine does not reach it: "
                r"10\.99\.0\.3:\d+: (no answer|No route to host)",
                verdicts[dead - 1]["error"],
            ), verdicts
            # Catches hosts that are called the cause of what another one has failed with.
            failed = [verdict for verdict in verdicts if not verdict["ok"]]
            for verdict in failed:
                is_dead = verdict is verdicts[dead - 1]
                assert verdict["is_consequence"] == (not is_dead), verdict
                assert is_dead or f"{PREFIX}{dead}" in verdict["error"], verdict
            world.clear()
    finally:
        ip("-n", f"{PREFIX}{dead}", "link", "set", "eth0", "up")


def check_slow_host(world):
    """One of the hosts has a tenth of the others' rate. Catches another one that is blamed, and a
    progress that stands still."""
    slow = 3
    limit_both_ways(slow, "30mbit")
    master, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 70, 0, 0))
    process = subprocess.Popen(
        world.words(world.image),
        stdout=subprocess.PIPE,
        stderr=terminal,
        env=dict(os.environ, TERM="xterm"),
    )
    os.close(terminal)
    shown, began = [], time.monotonic()
    with contextlib.suppress(OSError):
        while piece := os.read(master, 65536):
            shown.append((time.monotonic() - began, piece.decode()))
    out, _ = process.communicate(timeout=HANG)
    os.close(master)
    verdicts, report = world.read(out)
    name = f"{PREFIX}{slow}"
    assert process.returncode == 0 and report["slow_host"] == name, (
        report["slow_host"],
        [verdict.get("link_bytes_per_second") for verdict in verdicts],
        [text for _, text in shown][-40::4],
    )
    lines = [text for at, text in shown if at > 5 and " of 40.0 MB" in text]
    named = [text for text in lines if f"waiting for {name}" in text]
    assert len(lines) > 10 and len(named) >= 0.8 * len(lines), lines
    steps = {text.partition(" of ")[0] for text in lines}
    assert len(steps) >= 5, steps
    assert all(len(line) < 80 for text in lines for line in text.split("\r\033[K")), lines
    limit_both_ways(slow, "240mbit")
    world.clear()


def check_sums(world):
    """What is printed is what others compute; holes cost nothing, however large."""
    huge = world.folder / "huge"
    size, data = 1 << 40, os.urandom(4096)
    extents = [(0, 4096), (300 << 30, 4096), (size - 4096, 4096)]
    with open(huge, "wb") as file:
        file.truncate(size)
        for offset, _ in extents:
            file.seek(offset)
            file.write(data)
    verdicts, report = world.push(huge, world.image)
    assert all(verdict["ok"] for verdict in verdicts), verdicts
    table = struct.pack("<QQ", size, len(extents)) + b"".join(
        struct.pack("<QQ", *extent) for extent in extents
    )
    assert report["files"][0]["sparse_blake2b_256"] == blake2b(
        table + len(extents) * data, b"prepost sparse"
    ), report
    assert report["files"][1]["blake2b_256"] == blake2b(world.image.read_bytes()), report
    verdicts, _ = world.push("--checksum", huge, world.image)
    assert all(verdict["unchanged"] for verdict in verdicts), verdicts
    for host in range(1, HOSTS + 1):
        copy = world.target(host) / "huge"
        assert copy.stat().st_size == size and copy.stat().st_blocks * 512 < 1_000_000
        with open(copy, "rb") as file:
            for offset, count in extents:
                file.seek(offset)
                assert file.read(count) == data
    world.clear()


def change(a, b):
    """Passes on what comes, with one changed byte of every four million, to `b`'s peer."""
    passed = 0
    with contextlib.suppress(OSError):
        while part := bytearray(a.recv(1 << 16)):
            at = 4_000_000 - passed % 4_000_000
            if at < len(part):
                part[at] ^= 1
            passed += len(part)
            b.sendall(part)
    for end in [a, b]:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def stand_between(port, host):
    """The program of a man in the middle: changes what passes from and to `host`."""
    with socket.create_server(("0.0.0.0", port)) as server:
        print("ready", flush=True)
        while True:
            guest, _ = server.accept()
            ends = [guest, socket.create_connection((host, port))]
            for pair in [ends, ends[::-1]]:
                threading.Thread(target=change, args=pair, daemon=True).start()


def check_man_in_the_middle(world):
    """A host that others reach through a man who changes bytes: they have nothing, and are not
    called verified. What is encrypted is noticed at once, what is not, by the sums in the end."""
    port = "7999"
    middle = subprocess.Popen(
        [
            "ip",
            "netns",
            "exec",
            PREFIX + str(HOSTS + 1),
            sys.executable,
            __file__,
            "between",
            port,
            "10.99.0.2",
        ],
        stdout=subprocess.PIPE,
    )
    try:
        assert middle.stdout.readline() == b"ready\n"
        world.hosts.write_text(
            f"{PREFIX}1:{world.target(1)} 10.99.0.{HOSTS + 2}\n"
            f"{PREFIX}2:{world.target(2)} 10.99.0.3\n"
        )
        for more, error in (
            [["--plain"], "image has another sum there than here: it was changed on the way"],
            [[], "is not authentic: it was changed, lost or repeated on the way"],
        ):
            flags = ["--port", port, "--algorithm", "chain", "--keep-going", *more]
            verdicts, _ = world.push(world.image, *flags, code=1)
            assert verdicts[0]["ok"] and not verdicts[1]["ok"], verdicts
            assert error in verdicts[1]["error"], verdicts
            assert world.left() == ["1/image"], world.left()
            world.clear()
    finally:
        middle.kill()
        middle.wait()
        world.write_hosts(world.target)
        world.clear()


def check_pipes(world):
    text = os.urandom(33_000_000)
    world.push("-", "--name", "piped", stdin=text)
    for host in range(1, HOSTS + 1):
        assert (world.target(host) / "piped").read_bytes() == text
    world.clear()
    # To pipes: one that is read late.
    for host in range(1, HOSTS + 1):
        os.mkfifo(world.folder / f"pipe-{host}")
    world.write_hosts(lambda host: world.folder / f"pipe-{host}")
    got = {}

    def read(host):
        time.sleep(0.3 * (host == 2))
        got[host] = (world.folder / f"pipe-{host}").read_bytes()

    threads = [threading.Thread(target=read, args=(host,)) for host in range(1, HOSTS + 1)]
    for thread in threads:
        thread.start()
    world.push(world.image)
    for thread in threads:
        thread.join()
    assert all(data == world.image.read_bytes() for data in got.values())
    world.write_hosts(world.target)


@contextlib.contextmanager
def loop_devices(world, sizes):
    devices = []
    try:
        for host, size in sizes.items():
            disk = world.folder / f"disk-{host}"
            disk.write_bytes(b"\xff" * size)
            done = subprocess.run(
                ["losetup", "--find", "--show", disk], capture_output=True, text=True
            )
            if done.returncode != 0:
                print("no loop devices:", done.stderr)
                yield None
                return
            devices.append(done.stdout.strip())
        yield dict(zip(sizes, devices))
    finally:
        for device in devices:
            subprocess.run(["losetup", "-d", device], check=False)


def check_devices(world):
    size = 8 << 20
    disk_image = world.folder / "disk-image"
    with open(disk_image, "wb") as file:
        file.write(os.urandom(1_000_000))
        file.truncate(size)
    with loop_devices(world, {host: size for host in range(1, HOSTS + 1)}) as devices:
        if devices is None:
            return
        world.write_hosts(lambda host: devices[host])
        verdicts, _ = world.push(disk_image, code=1)
        assert any("--allow-devices" in verdict["error"] for verdict in verdicts), verdicts
        world.push(disk_image, "--allow-devices")
        for device in devices.values():
            assert pathlib.Path(device).read_bytes() == disk_image.read_bytes()
        # Links to devices are as good; and what was there when it was sent is written again.
        links = {host: world.folder / f"link-{host}" for host in devices}
        for host, link in links.items():
            link.symlink_to(devices[host])
            with open(devices[host], "r+b") as file:
                file.write(b"changed")
        world.write_hosts(lambda host: links[host])
        verdicts, _ = world.push(disk_image, "--allow-devices")
        assert not any(verdict["unchanged"] for verdict in verdicts), verdicts
        for device in devices.values():
            assert pathlib.Path(device).read_bytes() == disk_image.read_bytes()
        check_device_as_source(world, devices[1])
    world.write_hosts(world.target)


def check_device_as_source(world, device):
    """Its node may have the same time whatever is written to it: by another node,
    or a mounted file system."""
    world.write_hosts(world.target)
    copies = [world.target(host) / pathlib.Path(device).name for host in range(1, HOSTS + 1)]
    for content in [b"first", b"other"]:
        with open(device, "r+b") as file:
            file.write(content)
        os.utime(device, ns=(1, 1_234_567_890_123_456_789))
        verdicts, _ = world.push(device)
        assert not any(verdict["unchanged"] for verdict in verdicts), verdicts
        assert all(copy.read_bytes()[:5] == content for copy in copies), content
    verdicts, _ = world.push(device, "--checksum")
    assert all(verdict["unchanged"] for verdict in verdicts), verdicts
    world.clear()


def check_full_disk(world):
    """The first cause is named at the host that has it,
    and the others get the file with --keep-going."""
    full = world.folder / "full"
    full.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=10m", "none", full], check=True)
    try:
        world.write_hosts(lambda host: full if host == 3 else world.target(host))
        verdicts, _ = world.push(world.image, code=1)
        assert "No space left" in verdicts[2]["error"], verdicts
        assert all(
            "because" in verdicts[other]["error"] and PREFIX + "3" in verdicts[other]["error"]
            for other in [0, 1, 3]
        ), verdicts
        assert world.left() == [], world.left()
        verdicts, _ = world.push(world.image, "--keep-going", code=1)
        check_survivors(world, verdicts, 3)
        assert not list(full.iterdir())
        # One that is found out only while a stream comes.
        verdicts, _ = world.push(
            "-", "--name", "piped", "--keep-going", stdin=world.image.read_bytes(), code=1
        )
        assert "No space left" in verdicts[2]["error"], verdicts
        assert [verdict["ok"] for verdict in verdicts] == [True, True, False, True], verdicts
        assert (world.target(1) / "piped").read_bytes() == world.image.read_bytes()
    finally:
        subprocess.run(["umount", full], check=False)
        world.write_hosts(world.target)
        world.clear()


def check_survivors(world, verdicts, victim):
    assert [verdict["ok"] for verdict in verdicts] == [
        host != victim for host in range(1, HOSTS + 1)
    ], verdicts
    for host in range(1, HOSTS + 1):
        if host != victim:
            assert (world.target(host) / world.image.name).read_bytes() == world.image.read_bytes()
    expected = [f"{host}/{world.image.name}" for host in range(1, HOSTS + 1) if host != victim]
    assert world.left() == expected, world.left()
    world.clear()


def receivers(namespace):
    """Processes of `prepost receive` in a namespace."""
    found = []
    for process in ip("netns", "pids", namespace).stdout.split():
        with contextlib.suppress(OSError):
            if b"receive" in pathlib.Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0"):
                found.append(int(process))
    return found


def received_bytes(namespace):
    text = ip("-n", namespace, "-s", "-o", "link", "show", "eth0").stdout
    return int(text.partition("RX:")[2].split("\\")[1].split()[0])


def interrupted(world, act, *more):
    """Starts a push, does `act` in the middle of it; its code and verdicts."""
    before = received_bytes(PREFIX + "2")
    process = subprocess.Popen(
        world.words(world.image, *more), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    due = time.monotonic() + HANG
    while received_bytes(PREFIX + "2") < before + 3_000_000:
        assert time.monotonic() < due and process.poll() is None, process.communicate()
        time.sleep(0.01)
    act(process)
    out, err = process.communicate(timeout=HANG)
    return process.returncode, out, err


def check_faults(world):
    victim = 2
    namespace = PREFIX + str(victim)

    def stop(_):
        for process in receivers(namespace):
            os.kill(process, signal.SIGSTOP)

    def kill(_):
        for process in receivers(namespace):
            os.kill(process, signal.SIGKILL)

    def cut(_):
        ip("-n", namespace, "link", "set", "eth0", "down")

    for act, cause in [
        (kill, "killed by signal 9"),
        (stop, "has said nothing"),
        (cut, "has said nothing"),
    ]:
        code, out, err = interrupted(world, act, "--keep-going")
        assert code == 1, (act, out, err)
        verdicts, _ = world.read(out)
        assert cause in verdicts[victim - 1]["error"], (act, verdicts)
        for process in receivers(namespace):
            os.kill(process, signal.SIGKILL)
        ip("-n", namespace, "link", "set", "eth0", "up")
        check_survivors(world, verdicts, victim)
    check_cut_connection(world, victim)
    code, out, err = interrupted(world, kill)
    verdicts, _ = world.read(out)
    assert code == 1 and not any(verdict["ok"] for verdict in verdicts), verdicts
    assert world.left() == [], world.left()
    code, out, err = interrupted(world, lambda process: process.send_signal(signal.SIGINT))
    assert code == 130 and out == b"" and err == b"prepost: interrupted\n", (code, out, err)
    due = time.monotonic() + 10
    while any(receivers(PREFIX + str(host)) for host in range(1, HOSTS + 1)):
        assert time.monotonic() < due
        time.sleep(0.05)
    assert world.left() == [], world.left()


def connect(words):
    """The program of an agent that is a connection: what it carries,
    until the other end has ended or SIGUSR1 cuts it."""
    there = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def cut(*_):
        os.write(2, b"Connection closed by remote host\n")
        os._exit(255)

    def carry(source, sink):
        with contextlib.suppress(OSError):
            while part := os.read(source.fileno(), 1 << 16):
                sink.write(part)
                sink.flush()
        sink.close()

    signal.signal(signal.SIGUSR1, cut)
    threading.Thread(target=carry, args=(sys.stdin.buffer, there.stdin), daemon=True).start()
    carrier = threading.Thread(target=carry, args=(there.stdout, sys.stdout.buffer), daemon=True)
    carrier.start()
    carrier.join()
    os._exit(there.wait())


def check_cut_connection(world, victim):
    """A host whose agent loses its connection:
    the receiver there notices by itself, and leaves nothing."""

    def cut(_):
        os.kill(int((world.folder / f"connection-of-{PREFIX}{victim}").read_text()), signal.SIGUSR1)

    world.agent, agent = world.connection, world.agent
    code, out, err = interrupted(world, cut, "--keep-going")
    world.agent = agent
    assert code == 1, (out, err)
    verdicts, _ = world.read(out)
    assert "Connection closed by remote host" in verdicts[victim - 1]["error"], verdicts
    due = time.monotonic() + 10
    while receivers(PREFIX + str(victim)):
        assert time.monotonic() < due, "the receiver does not notice that its connection is gone"
        time.sleep(0.05)
    check_survivors(world, verdicts, victim)


def check_words(world):
    """What is wrong with the command line is said at once, and names the flag."""

    def refused(text, *words):
        done = subprocess.run(
            [COMMAND, "push", *words], capture_output=True, text=True, timeout=HANG, check=False
        )
        assert done.returncode == 2 and text in done.stderr, (words, done)

    refused("--agent: expected the name of a command", world.image, "--to", "a", "--agent", "")
    refused("--block-bytes: ", world.image, "--to", "a", "--block-bytes", "3x")
    refused("two targets", world.image, "--to", "u@a:/x,a:/y", "--port", "7811", "--agent", "false")
    # Hosts that are all this machine need no port of their own.
    targets = [world.folder / "here-1", world.folder / "here-2"]
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    subprocess.run(
        [
            COMMAND,
            "push",
            world.image,
            "--to",
            ",".join(f"localhost:{target}" for target in targets),
            "--port",
            str(port),
        ],
        capture_output=True,
        timeout=HANG,
        check=True,
    )
    for target in targets:
        assert (target / world.image.name).read_bytes() == world.image.read_bytes()
    check_verdicts(world, targets)


def check_verdicts(world, targets):
    """The words say what was compared, and no more; the sums are lines of b2sum."""

    def push(*words, to=targets, code=0):
        done = subprocess.run(
            [COMMAND, "push", *words, "--to", ",".join(f"localhost:{target}" for target in to)],
            capture_output=True,
            text=True,
            timeout=HANG,
            check=False,
        )
        assert done.returncode == code, done
        return done.stdout

    done = subprocess.run(
        [COMMAND, "push", world.image, "--hosts", "-"],
        input="".join(f"localhost:{target}\n" for target in targets),
        capture_output=True,
        text=True,
        timeout=HANG,
        check=True,
    )
    assert done.stdout.count("unchanged") == len(targets), done
    odd = world.folder / "two\nlines\\"
    odd.write_bytes(b"odd")
    for words, text in [
        ([], "unchanged: same size and time"),
        (["--checksum"], "unchanged: same contents"),
    ]:
        lines = push(world.image, *words).splitlines()
        assert [line.split("  ", 1)[1] for line in lines[:2]] == [text, text], lines
    text = push(world.image, odd)
    assert text.count(", verified; 1 file unchanged: same size and time\n") == 2, text
    subprocess.run(
        ["b2sum", "-l", "256", "-c"],
        input=text.splitlines()[-1],
        text=True,
        cwd=targets[1],
        capture_output=True,
        check=True,
    )
    # With --sync what is durable is the way to the files, too.
    log = world.folder / "calls"
    subprocess.run(
        [
            "strace",
            "-f",
            "-y",
            "-o",
            log,
            "-e",
            "trace=fsync",
            COMMAND,
            "push",
            world.image,
            "--sync",
            "--to",
            f"localhost:{world.folder}/new/folders/here",
        ],
        capture_output=True,
        timeout=HANG,
        check=True,
        env=dict(os.environ, ASAN_OPTIONS="detect_leaks=0"),  # which does not work under strace
    )
    for path in [
        world.folder,
        world.folder / "new",
        world.folder / "new/folders",
        world.folder / "new/folders/here",
    ]:
        assert f"<{path}>)" in log.read_text(), (path, log.read_text())
    # A pipe's reader keeps what it has read, whatever becomes of the push.
    pipes = [world.folder / "left", world.folder / "kept"]
    for pipe in pipes:
        os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipes[1].read_bytes()))
    reader.start()
    leaver = threading.Thread(target=lambda: os.close(os.open(pipes[0], os.O_RDONLY)))
    leaver.start()
    text = push(world.image, to=pipes, code=1)
    for thread in [reader, leaver]:
        thread.join()
    assert (
        "a part of the file may have been written there, because localhost:" in text
        and "nothing was left" not in text
    ), text


def main():
    with namespaces("push", HOSTS + 2), tempfile.TemporaryDirectory() as name:
        world = World(pathlib.Path(name))
        for check in [
            check_words,
            check_files,
            check_sums,
            check_man_in_the_middle,
            check_pipes,
            check_devices,
            check_full_disk,
            check_unreachable,
        ]:
            check(world)
        if limit_rate(range(HOSTS + 1), "240mbit"):
            check_slow_host(world)
            check_faults(world)
        else:
            print("no faults: the kernel cannot limit rates (tc tbf)")


if sys.argv[1] == "between":
    stand_between(int(sys.argv[2]), sys.argv[3])
elif sys.argv[1] == "connect":
    connect(sys.argv[2:])
else:
    main()
