# SPDX-License-Identifier: Apache-2.0
"""Runs of `prepost`: what to run, as values; all of a figure's runs at once on all cores;
a plan compiled once.

Every result is checked to say that it is modelled, and with which profile.
Times come back as whole picoseconds."""

import concurrent.futures
import csv
import dataclasses
import hashlib
import json
import os
import pathlib
import subprocess
import threading

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
PROFILES = SOURCE / "examples" / "profiles"
KiB, MiB, GiB = 1 << 10, 1 << 20, 1 << 30
MAX_SECONDS = 3600  # of one run of the command, on a busy machine
ONE_WAY_MAX = 10**12  # bytes/s of a port at most


@dataclasses.dataclass(frozen=True)
class Plan:
    """What `prepost compile` is told."""

    nodes: int
    message_bytes: int
    block_bytes: int = MiB
    algorithm: str = "binomial_pipeline"
    ready: str = "auto"
    send_window: str = "auto"
    order: str = ""
    topology: str = ""  # the text of a topology file

    @property
    def blocks(self):
        return max(1, -(-self.message_bytes // self.block_bytes))


@dataclasses.dataclass(frozen=True)
class Profile:
    """A shipped profile, with some of its numbers changed: (("host.completion", "3us"), ...)."""

    name: str
    changes: tuple = ()

    def but(self, **changes):
        """With more changes: host__completion="3us"."""
        return dataclasses.replace(
            self,
            changes=self.changes
            + tuple((key.replace("__", "."), value) for key, value in changes.items()),
        )

    def text(self):
        """The profile's file. A changed number says so as its source,
        and a changed profile in its name."""
        profile = json.loads((PROFILES / f"{self.name}.json").read_text())
        for key, value in self.changes:
            *path, last = key.split(".")
            part = profile
            for step in path:
                part = part.setdefault(step, {})
            part[last] = {"value": value, "assumed": "what if: set for a figure"}
        if self.changes:
            profile["name"] += " (changed)"
        return json.dumps(profile)


def no_costs(name):
    """The links of a profile and nothing else: no latency, and hosts and NICs that take no time."""
    profile = json.loads((PROFILES / f"{name}.json").read_text())
    changes = [("network.rack_latency", "0s")]
    for part in ("nic", "host"):
        for key, entry in profile[part].items():
            value = entry["value"]
            if (
                isinstance(value, str)
                and value.endswith("s")
                and "bit" not in value
                and "B/" not in value
            ):
                changes.append((f"{part}.{key}", "0s"))
    changes.append(("nic.message_overhead_bytes", 0))
    if "duplex" in profile["network"]:
        changes.append(("network.duplex", 2 * ONE_WAY_MAX))  # no limit
    return Profile(name, tuple(changes))


def host_entry(name, key):
    """What a profile says of its hosts, with its source, as it is written there."""
    return json.loads((PROFILES / f"{name}.json").read_text())["host"][key]


def network_value(name, key):
    return json.loads((PROFILES / f"{name}.json").read_text())["network"][key]["value"]


def host_value(name, key):
    return host_entry(name, key)["value"]


def no_message_costs(profile):
    """For CPU-driven times beside preposted ones: what RDMC does once per message is charged to
    CPU-driven hosts alone."""
    return profile.but(host__message_start="0s", host__message_setup="0s")


@dataclasses.dataclass(frozen=True)
class Run:
    """What `prepost simulate` is told."""

    plan: Plan
    profile: Profile
    executor: str = "both"
    wait: str = "hybrid"
    seed: int = 1
    topology: str = ""  # the text of a topology file, in place of the profile's network
    flags: tuple = ()  # further ones, as they are


@dataclasses.dataclass(frozen=True)
class Workload:
    """What `prepost simulate --workload` is told."""

    text: str  # of the file
    profile: Profile


@dataclasses.dataclass(frozen=True)
class Fared:
    """How one executor fared, in picoseconds. `completion`: all is over, as papers count it:
    CPU-driven all hosts know, preposted the last final CQE is there."""

    completion: int
    skew: int
    nodes: tuple
    json: dict

    @property
    def arming(self):
        """Of a preposted run, before its time begins: the host with the most WQEs writes them."""
        return picoseconds(self.json["arming_seconds"])

    @property
    def detection(self):
        """Of a preposted run, after its time ends: a host sees the last completion."""
        return picoseconds(self.json["detection_seconds"])

    @property
    def whole(self):
        """Of a preposted run, with arming and detection."""
        return self.arming + self.completion + self.detection

    def bandwidth(self, message_bytes):
        """Of the message, bit/s: the papers' measure, whatever the number of receivers."""
        return message_bytes * 8 / (self.completion * 1e-12)


@dataclasses.dataclass(frozen=True)
class Result:
    run: Run
    json: dict
    offload: Fared | None
    cpu: Fared | None


def picoseconds(seconds):
    return round(seconds * 1e12)


def fared(json_part):
    if json_part is None:
        return None
    return Fared(
        picoseconds(json_part.get("final_seconds", json_part["known_seconds"])),
        picoseconds(json_part.get("skew_seconds", 0)),
        tuple(picoseconds(time) for time in json_part.get("node_seconds", ())),
        json_part,
    )


class CommandFailed(Exception):
    pass


class Simulator:
    """Runs the command, on as many cores as there are. What was run once is not run again."""

    def __init__(self, command, folder, jobs=None):
        self.command = str(command)
        self.folder = pathlib.Path(folder)
        self.executor = concurrent.futures.ThreadPoolExecutor(jobs or os.cpu_count() or 1)
        self.lock = threading.Lock()
        self.once = {}
        self.count = 0

    def _output(self, *arguments):
        words = [self.command, *map(str, arguments)]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=MAX_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CommandFailed(str(error)) from error
        if done.returncode != 0:
            raise CommandFailed(f"{' '.join(words)}: {done.stderr.strip()}")
        self.count += 1
        return done.stdout

    def _file(self, suffix, text):
        """A file of this text; the same for the same text."""
        path = self.folder / (hashlib.sha256(text.encode()).hexdigest()[:16] + suffix)
        with self.lock:
            if not path.exists():
                path.write_text(text)
        return path

    def _memo(self, key, make):
        """What `make` gives, made once by the first thread that asks; the others wait."""
        with self.lock:
            future = self.once.get(key)
            mine = future is None
            if mine:
                future = self.once[key] = concurrent.futures.Future()
        if mine:
            try:
                future.set_result(make())
            except BaseException as error:
                future.set_exception(error)
        return future.result()

    def _compile(self, plan, encoding="columns"):
        def make():
            name = hashlib.sha256(repr((plan, encoding)).encode()).hexdigest()[:16] + "-plan.json"
            arguments = [
                "compile",
                "--nodes",
                plan.nodes,
                "--message-bytes",
                plan.message_bytes,
                "--block-bytes",
                plan.block_bytes,
                "--algorithm",
                plan.algorithm,
                "--ready",
                plan.ready,
                "--send-window",
                plan.send_window,
                "--encoding",
                encoding,
                "-o",
                self.folder / name,
            ]
            if plan.order:
                arguments += ["--order", plan.order]
            if plan.topology:
                arguments += ["--topology", self._file("-topology.json", plan.topology)]
            self._output(*arguments)
            return self.folder / name

        return self._memo(("compile", plan, encoding), make)

    def _arguments(self, run):
        arguments = [
            "simulate",
            self._compile(run.plan),
            "--profile",
            self._file("-profile.json", run.profile.text()),
            "--executor",
            run.executor,
            "--seed",
            run.seed,
            "--json",
        ]
        if run.executor != "offload":
            arguments += ["--wait", run.wait]
        if run.topology:
            arguments += ["--topology", self._file("-topology.json", run.topology)]
        return [*arguments, *run.flags]

    def _simulate(self, run):
        def make():
            answer = self._answer(run.profile, *self._arguments(run))
            return Result(run, answer, fared(answer.get("offload")), fared(answer.get("cpu")))

        return self._memo(run, make)

    def bench(self, sizes, flags):
        """The rows that bench/virtual_bench of the command's build prints,
        with nothing else of ours beside it."""
        program = pathlib.Path(self.command).resolve().parent.parent / "bench" / "virtual_bench"
        done = subprocess.run([program, *sizes, *flags, "--csv"], capture_output=True, text=True)
        if done.returncode != 0:
            raise CommandFailed(f"{program}: {done.stderr.strip()}")
        return list(csv.DictReader(done.stdout.splitlines()))

    def _answer(self, profile, *arguments):
        """What a simulation prints, if it says that it is modelled, and with which profile."""
        answer = json.loads(self._output(*arguments))
        wanted = json.loads(profile.text())["name"]
        if answer.get("modelled") is not True or answer["profile"]["name"] != wanted:
            raise CommandFailed(
                f"{' '.join(map(str, arguments))}: the answer does not say that it is modelled,"
                f" with {wanted}"
            )
        return answer

    def _all(self, function, items):
        """In their order, on all cores."""
        futures = [self.executor.submit(function, item) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            raise

    def simulate(self, runs):
        return self._all(self._simulate, runs)

    def trace(self, run):
        """Of a run with one executor, the blocks that were sent and received: node, cat (send or
        recv), round, and exact times, ns."""
        path = self.folder / (hashlib.sha256(repr(run).encode()).hexdigest()[:16] + "-trace.json")
        self._answer(run.profile, *self._arguments(run), "--trace", path)
        events = json.loads(path.read_text())["traceEvents"]
        return [
            {"node": it["pid"], "cat": it["cat"], **it["args"]}
            for it in events
            if it["ph"] == "X" and "block" in it["args"]
        ]

    def workloads(self, workloads):
        """`prepost simulate --workload` of each, as JSON."""

        def one(workload):
            return self._answer(
                workload.profile,
                "simulate",
                "--workload",
                self._file("-workload.json", workload.text),
                "--profile",
                self._file("-profile.json", workload.profile.text()),
                "--json",
            )

        return self._all(lambda workload: self._memo(workload, lambda: one(workload)), workloads)

    def stats(self, plans):
        """`prepost stats --json` of each; a plan with a topology beside it."""

        def one(plan):
            arguments = ["stats", self._compile(plan), "--json"]
            if plan.topology:
                arguments += ["--topology", self._file("-topology.json", plan.topology)]
            return json.loads(self._output(*arguments))

        return self._all(lambda plan: self._memo(("stats", plan), lambda: one(plan)), plans)

    def lowered(self, plans, mode):
        """`prepost lower --json` of each: what each node's queues hold."""

        def one(plan):
            return json.loads(self._output("lower", self._compile(plan), "--mode", mode, "--json"))

        return self._all(lambda plan: self._memo(("lower", mode, plan), lambda: one(plan)), plans)

    def programs(self, plans):
        """The plan files, an op per entry."""
        return self._all(lambda plan: json.loads(self._compile(plan, "rows").read_text()), plans)
