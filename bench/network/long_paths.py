#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times one message to the machines of several sites with long paths between them (sites.py),
beside the bound: bytes / what TCP carries of the slowest path's rate, and one way of the longest
path.

    sudo bench/network/long_paths.py    # all cases and carriers: half an hour
    sudo bench/network/long_paths.py --case two-sites --carrier group,push --rounds 1

Carriers: `group` is bench/session_bench, each message over new connections; `node` is `prepost
node` with a plan of `compile --transport tcp --topology`; `push` is `prepost push` of a file in
memory. Beside them, for machine 0 and the first machine of the next site alone, `iperf3:N` with N
streams; `rsync`, as many of it as there are other machines, side by side; `openmpi:A:S`
(bench/peers/peers.py). Carriers are interleaved, round by round. Prints a table with the aims, and
what `choose` foretells of `node`; --json FILE keeps all samples.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(HERE.parent / "peers")]
import peers  # noqa: E402
from members import run_members  # noqa: E402
from sites import Sites  # noqa: E402

MiB = 1 << 20
MTU = 9000
PAYLOAD = (MTU - 52) / (MTU + 14)  # of a frame: without Ethernet's, IP's and TCP's own
OURS = ["group", "node", "push"]
# Name: machines by site, paths, the slowest path's rate in bit/s, one way in seconds, bytes, pace,
# aims by carrier, times the bound.
CASES = {
    "two-sites": (
        [3, 3],
        {"A,B": "rate=400e6,queue=3e6,delay=30e-3"},
        400e6,
        0.03,
        256 * MiB,
        "",
        {"group": 1.06, "node": 1.06, "push": 1.10},
    ),
    "short": (
        [3, 3],
        {"A,B": "rate=400e6,queue=3e6,delay=30e-3"},
        400e6,
        0.03,
        64 * MiB,
        "",
        {"group": 1.15, "node": 1.15},
    ),
    "lossy": (
        [3, 3],
        {"A,B": "rate=400e6,queue=6e6,delay=60e-3,loss=1e-4"},
        400e6,
        0.06,
        256 * MiB,
        "",
        {"group": 1.25, "node": 1.25},
    ),
    "policed": (
        [3, 3],
        {"A,B": "rate=400e6,queue=6e6,delay=60e-3,police=100e6,burst=1e6"},
        100e6,
        0.06,
        64 * MiB,
        "97Mbit/s",
        {"group": 1 / 0.85, "node": 1 / 0.85, "push": 1 / 0.85},
    ),
    "three-sites": (
        [2, 3, 3],
        {p: "rate=100e6,queue=1e6,delay=30e-3" for p in ("A,B", "A,C", "B,C")},
        100e6,
        0.03,
        64 * MiB,
        "",
        {"group": 1.10, "node": 1.10, "push": 1.10},
    ),
}
PEERS = ["iperf3:1", "iperf3:8", "rsync", "openmpi:pipeline:16KiB"]


class Case:
    def __init__(self, name, sites, order, options):
        self.name, self.sites, self.order, self.options = name, sites, order, options
        self.predicted = None  # seconds, modelled, of `node`
        self.sizes, self.paths, self.rate, self.one_way, self.bytes, self.pace, self.aims = CASES[
            name
        ]
        self.site_names = [sites.names[sites.site_of[i]] for i in order]
        self.addresses = [sites.addresses[i] for i in order]

    def bound(self):
        return self.bytes / (self.rate / 8 * PAYLOAD) + self.one_way

    def inside(self, place):
        return self.sites.inside(self.order[place])

    def run(self, carrier, folder):
        """Seconds."""
        return getattr(self, carrier.split(":")[0])(carrier, folder)

    def group(self, _carrier, _folder):
        pace = ["--pace", float(self.pace.removesuffix("Mbit/s")) * 1e6 / 8] if self.pace else []
        flags = [
            "--bytes",
            self.bytes,
            "--repeat",
            1,
            "--warm-up",
            0,
            "--no-local-copies",
            "--sites",
            ",".join(self.site_names),
            *pace,
        ]
        words = [self.options.bench, None, ",".join(self.addresses), *flags]
        lines = run_members(lambda i: [*self.inside(i), words[0], i, *words[2:]], len(self.order))
        return lines[0]["seconds"][0]

    def topology(self):
        """What the link does, as a topology file says it."""
        sites = [
            {
                "name": name,
                "hosts": [f"h{i}" for i in range(len(self.order)) if self.site_names[i] == name],
            }
            for name in dict.fromkeys(self.site_names)
        ]
        paths = []
        for pair, text in self.paths.items():
            traits = dict(it.split("=") for it in text.split(","))
            path = {
                "between": pair.split(","),
                "rate": float(traits["rate"]) / 8 * PAYLOAD,
                "rtt": 2 * float(traits["delay"]),
                "mtu": MTU,
                "queue": float(traits["queue"]),
                "loss": float(traits.get("loss", 0)),
            }
            if "police" in traits:
                path["police"] = {
                    "rate": float(traits["police"]) / 8 * PAYLOAD,
                    "burst": float(traits["burst"]),
                }
            if self.pace:
                path["pace"] = float(self.pace.removesuffix("Mbit/s")) * 1e6 / 8 * PAYLOAD
            paths.append(path)
        return {
            "format": "prepost.topology",
            "version": "1.1",
            "host_rate": "1Gbit/s",
            "rack_latency": "50us",
            "sites": sites,
            "paths": paths,
        }

    def image(self, folder):
        image = folder / "image"
        if not image.exists():
            image.write_bytes(bytes(range(251)) * (self.bytes // 251) + bytes(self.bytes % 251))
        return image

    def node(self, _carrier, folder):
        plan, secret, peers_file = folder / "plan.json", folder / "secret", folder / "peers"
        if not plan.exists():
            (folder / "topology.json").write_text(json.dumps(self.topology()))
            asked = [
                "--transport",
                "tcp",
                "--topology",
                folder / "topology.json",
                "--message-bytes",
                str(self.bytes),
            ]
            subprocess.run(
                [self.options.prepost, "compile", *asked, "-o", plan],
                check=True,
                capture_output=True,
            )
            chosen = subprocess.run(
                [self.options.prepost, "choose", *asked, "--json"],
                check=True,
                capture_output=True,
                text=True,
            )
            self.predicted = json.loads(chosen.stdout)["candidates"][0]["modelled_seconds"]
            secret.write_text("only for measurements\n")
            secret.chmod(0o600)
            # Nodes are the topology's hosts, rack by rack.
            places = [
                i
                for name in dict.fromkeys(self.site_names)
                for i in range(len(self.order))
                if self.site_names[i] == name
            ]
            self.places = places
            peers_file.write_text(
                "".join(
                    f"{node} {self.addresses[place]} site={self.site_names[place]}\n"
                    for node, place in enumerate(places)
                )
            )
        processes = []
        for node, place in reversed(list(enumerate(self.places))):
            words = [
                *self.inside(place),
                self.options.prepost,
                "node",
                plan,
                "--node",
                str(node),
                "--peers",
                peers_file,
                "--secret-file",
                secret,
                "--json",
                *(["--pace", self.pace] if self.pace else []),
            ]
            words += ["--input", self.image(folder)] if node == 0 else []
            processes.append(
                subprocess.Popen(
                    words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
                )
            )
        outputs = [process.communicate(timeout=600)[0] for process in processes]
        if any(process.returncode != 0 for process in processes):
            sys.exit("long_paths.py: a node failed")
        return json.loads(outputs[-1])["elapsed_ns"] / 1e9

    def push(self, _carrier, folder):
        hosts = folder / "hosts"
        hosts.write_text(
            "".join(
                f"{self.sites.space(i)}:{folder}/to{i} {self.sites.addresses[i]}"
                f" site={self.site_names[place]}\n"
                for place, i in enumerate(self.order)
                if place > 0
            )
        )
        done = subprocess.run(
            [
                *self.inside(0),
                self.options.prepost,
                "push",
                self.image(folder),
                "--hosts",
                hosts,
                "--agent",
                "ip netns exec",
                "--remote-command",
                self.options.prepost,
                "--site",
                self.site_names[0],
                "--json",
                *(["--pace", self.pace] if self.pace else []),
            ],
            capture_output=True,
            text=True,
        )
        for i in self.order:
            subprocess.run(["rm", "-rf", folder / f"to{i}"], check=True)
        if done.returncode != 0:
            sys.exit(f"long_paths.py: push: {done.stdout} {done.stderr}")
        return json.loads(done.stdout)["seconds"]

    def iperf3(self, carrier, _folder):
        far = next(i for i in range(len(self.order)) if self.site_names[i] != self.site_names[0])
        server = subprocess.Popen(
            [*self.inside(far), "iperf3", "-s", "-1"], stdout=subprocess.DEVNULL
        )
        time.sleep(0.3)
        done = subprocess.run(
            [
                *self.inside(0),
                "iperf3",
                "-c",
                self.addresses[far],
                "-n",
                str(self.bytes),
                "-P",
                carrier.split(":")[1],
                "-J",
            ],
            check=True,
            capture_output=True,
            text=True,
        )
        server.wait(timeout=60)
        return json.loads(done.stdout)["end"]["sum_received"]["seconds"]

    def rsync(self, _carrier, folder):
        shell = folder / "shell"
        shell.write_text('#!/bin/bash\nspace=$1; shift; exec ip netns exec "$space" "$@"\n')
        shell.chmod(0o755)
        # Its protocol over the network, not the shell's pipes: a daemon on each machine.
        config = folder / "rsyncd.conf"
        config.write_text(
            "use chroot = no\nuid = 0\ngid = 0\n[to]\n"
            f"path = {folder}/rsync-%RSYNC_USER_NAME%\nread only = no\n"
        )
        daemons = []
        for i in self.order[1:]:
            (folder / f"rsync-{i}").mkdir(exist_ok=True)
            own = folder / f"rsyncd-{i}.conf"
            own.write_text(config.read_text().replace("%RSYNC_USER_NAME%", str(i)))
            daemons.append(
                subprocess.Popen(
                    [
                        *self.sites.inside(i),
                        "rsync",
                        "--daemon",
                        "--no-detach",
                        f"--config={own}",
                        "--port=8873",
                    ]
                )
            )
        time.sleep(0.5)
        begin = time.monotonic()
        copies = [
            subprocess.Popen(
                [
                    *self.inside(0),
                    "rsync",
                    "--whole-file",
                    self.image(folder),
                    f"rsync://{self.sites.addresses[i]}:8873/to/",
                ]
            )
            for i in self.order[1:]
        ]
        codes = [copy.wait(timeout=600) for copy in copies]
        seconds = time.monotonic() - begin
        for daemon in daemons:
            daemon.terminate()
            daemon.wait()
        for i in self.order[1:]:
            subprocess.run(["rm", "-rf", folder / f"rsync-{i}"], check=True)
        if any(codes):
            sys.exit("long_paths.py: rsync failed")
        return seconds

    def openmpi(self, carrier, folder):
        lines = peers.run_in_namespaces(
            carrier,
            len(self.order),
            lambda i: self.addresses[i],
            self.sites.prefix,
            [str(self.bytes)],
            1,
            folder,
            self.rate / 8,
            space_of=lambda i: self.sites.space(self.order[i]),
            network="10.98.0.0/16",
        )
        return lines[0]["seconds"][0]


def order_of(sizes, is_mixed):
    """Machines by place in the lists of hosts: site by site, or from each site in turn."""
    machines = list(range(sum(sizes)))
    if not is_mixed:
        return machines
    begins = [sum(sizes[:s]) for s in range(len(sizes))]
    return [begins[s] + i for i in range(max(sizes)) for s in range(len(sizes)) if i < sizes[s]]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", default=",".join(CASES), help="with commas")
    parser.add_argument("--carrier", default=",".join(OURS + PEERS), help="with commas")
    parser.add_argument("--order", default="sites,mixed", help="of hosts in lists: sites, mixed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bench", default=str(ROOT / "build/bench/bench/session_bench"))
    parser.add_argument("--prepost", default=str(ROOT / "build/bench/bin/prepost"))
    parser.add_argument("--wan-link", default=str(ROOT / "build/bench/tests/wan_link"))
    parser.add_argument("--json", help="where all samples go")
    options = parser.parse_args()
    samples = []
    print(
        f"{'case':12} {'hosts':6} {'carrier':24} {'times the bound':>15} {'least-most':>12}"
        f" {'aim':>6} {'modelled':>9}"
    )
    for name in options.case.split(","):
        sizes, paths = CASES[name][:2]
        for order in options.order.split(","):
            with Sites(
                "ppn", sizes, paths, options.wan_link, lan_rate="1gbit", mtu=MTU
            ) as sites, tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
                case = Case(name, sites, order_of(sizes, order == "mixed"), options)
                seconds = {}
                for _ in range(options.rounds):
                    for carrier in options.carrier.split(","):
                        # Others know of no sites; once is enough.
                        if order == "mixed" and carrier.split(":")[0] not in (*OURS, "openmpi"):
                            continue
                        seconds.setdefault(carrier, []).append(
                            case.run(carrier, pathlib.Path(memory))
                        )
            for carrier, times in seconds.items():
                ratios = sorted(time / case.bound() for time in times)
                aim = case.aims.get(carrier)
                spread = f"{ratios[0]:.2f}-{ratios[-1]:.2f}"
                modelled = case.predicted / case.bound() if carrier == "node" else None
                print(
                    f"{name:12} {order:6} {carrier:24} {ratios[len(ratios) // 2]:>15.3f}"
                    f" {spread:>12} {'' if aim is None else f'{aim:.2f}':>6}"
                    f" {'' if modelled is None else f'{modelled:.3f}':>9}",
                    flush=True,
                )
                samples.append(
                    {
                        "case": name,
                        "order": order,
                        "carrier": carrier,
                        "bound_seconds": case.bound(),
                        "aim": aim,
                        "seconds": times,
                        "modelled_seconds": case.predicted if carrier == "node" else None,
                    }
                )
    if options.json:
        pathlib.Path(options.json).write_text(
            json.dumps({"options": vars(options), "samples": samples}, indent=1)
        )


if __name__ == "__main__":
    main()
