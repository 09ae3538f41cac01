# SPDX-License-Identifier: Apache-2.0
"""Sites of machines with long paths between them: a network namespace for each machine, one with a
switch for each site, and wan_link (tests/support/wan_link.cc) between the switches. Needs root and
/dev/net/tun. Nothing is made outside of the namespaces.

    paths = {"A,B": "rate=400e6,queue=3e6,delay=30e-3"}
    with Sites("ppn", [3, 3], paths, wan_link, lan_rate="1gbit") as sites:
        subprocess.run([*sites.inside(4), "ping", "-c", "1", sites.addresses[0]])
"""
import json
import pathlib
import signal
import string
import subprocess

HERE = pathlib.Path(__file__).resolve().parent


def ip(*words, check=True):
    return subprocess.run(["ip", *map(str, words)], check=check, capture_output=True, text=True)


class Sites:
    """Site s, called A, B, ..., has `sizes[s]` machines; they are numbered through all sites.
    `paths` are those of wan_link; `lan_rate` is of each machine's port, both ways, as tc says it;
    None: no limit."""

    def __init__(self, prefix, sizes, paths, wan_link, lan_rate=None, mtu=9000, seed=1):
        self.prefix, self.paths, self.wan_link, self.lan_rate, self.mtu, self.seed = (
            prefix,
            paths,
            wan_link,
            lan_rate,
            mtu,
            seed,
        )
        self.names = string.ascii_uppercase[: len(sizes)]
        self.site_of = [s for s, size in enumerate(sizes) for _ in range(size)]
        self.addresses = [f"10.98.{s}.{i + 1}" for s, size in enumerate(sizes) for i in range(size)]
        self.link = None
        self.packets = []  # what became of them, at the end: a dictionary for each direction

    def space(self, machine):
        return f"{self.prefix}{machine}"

    def inside(self, machine):
        """The words before a command that is to run there."""
        return ["ip", "netns", "exec", self.space(machine)]

    def switch(self, site):
        return f"{self.prefix}site{self.names[site]}"

    def __enter__(self):
        self.remove()
        try:
            for site in range(len(self.names)):
                self.add_switch(site)
            for machine, site in enumerate(self.site_of):
                self.add_machine(machine, site)
            self.start_link()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.stop_link()
        self.remove()

    def add_switch(self, site):
        space = self.switch(site)
        ip("netns", "add", space)
        ip("-n", space, "link", "add", "bridge", "type", "bridge", "mcast_snooping", 0)
        ip("-n", space, "link", "set", "bridge", "mtu", self.mtu, "up")

    def add_machine(self, machine, site):
        space, switch, port = self.space(machine), self.switch(site), f"port{machine}"
        # Packets are real ones: segmentation offload would let 64 KiB cross a shaper,
        # and a path, at once.
        real = ("mtu", self.mtu, "gso_max_segs", 1)
        ip("netns", "add", space)
        ip(
            "-n",
            switch,
            "link",
            "add",
            port,
            "type",
            "veth",
            "peer",
            "name",
            "eth0",
            "netns",
            space,
        )
        ip("-n", switch, "link", "set", port, *real, "master", "bridge", "up")
        ip("-n", space, "link", "set", "eth0", *real)
        ip("-n", space, "addr", "add", f"{self.addresses[machine]}/16", "dev", "eth0")
        ip("-n", space, "link", "set", "eth0", "up")
        ip("-n", space, "link", "set", "lo", "up")
        # As Linux comes, whatever this machine is tuned to.
        ip("-n", space, "route", "replace", "10.98.0.0/16", "dev", "eth0", "congctl", "cubic")
        for setting in ("tcp_rmem=4096 131072 6291456", "tcp_wmem=4096 16384 4194304"):
            subprocess.run(
                [*self.inside(machine), "sysctl", "-qw", f"net.ipv4.{setting}"], check=True
            )
        if self.lan_rate is not None:
            for device, of in ((port, switch), ("eth0", space)):
                subprocess.run([HERE / "net.sh", "shape", device, self.lan_rate, of], check=True)

    def start_link(self):
        words = [self.wan_link, "--mtu", self.mtu, "--seed", self.seed]
        for site, name in enumerate(self.names):
            words += ["--site", f"{name}={self.switch(site)}"]
        for pair, what in self.paths.items():
            words += ["--path", f"{pair}:{what}"]
        self.link = subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, text=True)
        if self.link.stdout.readline() != "up\n":
            raise RuntimeError("wan_link did not start")

    def cut(self):
        """Nothing crosses any more, and nobody is told."""
        self.link.send_signal(signal.SIGUSR1)

    def stop_link(self):
        if self.link is None:
            return
        self.link.terminate()
        out, _ = self.link.communicate()
        self.packets = [json.loads(line) for line in out.splitlines()]
        self.link = None

    def remove(self):
        for space in [self.space(i) for i in range(len(self.site_of))] + [
            self.switch(s) for s in range(len(self.names))
        ]:
            ip("netns", "del", space, check=False)
