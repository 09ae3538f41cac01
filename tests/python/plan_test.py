# SPDX-License-Identifier: Apache-2.0
"""Plans from Python are those of the command: SOURCE-FOLDER in PREPOST_SOURCE,
the command in PREPOST_COMMAND."""
import itertools
import json
import os
import pathlib
import runpy
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock
import warnings

import numpy

import prepost

SOURCE = pathlib.Path(os.environ["PREPOST_SOURCE"])


def command(*arguments, given=None):
    return subprocess.run(
        [os.environ["PREPOST_COMMAND"], *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
        input=given,
    ).stdout


class Plans(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name, "plan.json")

    # Catches keys that get lost, defaults of their own, and another writer.
    def test_compile_is_what_the_command_compiles(self):
        plan = prepost.compile(
            nodes=6,
            message_bytes=100_000,
            block_bytes=16384,
            algorithm="chain",
            root=2,
            ready="channel",
            send_window=2,
        )
        self.assertEqual(
            (
                plan.nodes,
                plan.root,
                plan.blocks,
                plan.message_bytes,
                plan.block_bytes,
                plan.algorithm,
            ),
            (6, 2, 7, 100_000, 16384, "chain"),
        )
        command(
            "compile",
            "--nodes",
            6,
            "--message-bytes",
            100_000,
            "--block-bytes",
            16384,
            "--algorithm",
            "chain",
            "--root",
            2,
            "--ready",
            "channel",
            "--send-window",
            2,
            "-o",
            self.path,
        )
        self.assertEqual(plan.to_json(), self.path.read_text())
        self.assertEqual(plan, prepost.Plan.load(self.path))
        plan.save(self.path, "columns")
        self.assertEqual(prepost.Plan.load(self.path), plan)
        self.assertLess(len(plan.to_json("columns")), len(plan.to_json()))

    # Catches rows that are taken for one list of another length,
    # and a number of nodes that must be said.
    def test_parts_of_sizes_of_their_own(self):
        plan = prepost.compile(
            collective="alltoall", part_bytes=[[0, 3], [5, 0]], algorithm="pairwise"
        )
        command(
            "compile",
            "--collective",
            "alltoall",
            "--part-bytes",
            "0,3,5,0",
            "--algorithm",
            "pairwise",
            "-o",
            self.path,
        )
        self.assertEqual(plan.to_json(), self.path.read_text())
        self.assertEqual((plan.nodes, plan.message_bytes), (2, 5))

    def test_specs_from_files_topologies_and_auto(self):
        spec = SOURCE / "examples/specs/pipeline-8.json"
        self.assertEqual(prepost.compile(spec).to_json(), command("compile", spec))
        topology = SOURCE / "examples/topologies/2x4.json"
        racks = prepost.compile(
            {"topology": topology, "algorithm": "rack_circulant"}, message_bytes=1 << 20
        )
        self.assertEqual(
            racks.to_json(),
            command(
                "compile",
                "--topology",
                topology,
                "--algorithm",
                "rack_circulant",
                "--message-bytes",
                1 << 20,
            ),
        )
        automatic = prepost.compile(
            nodes=20, message_bytes=1 << 24, algorithm="auto", block_bytes="auto"
        )
        self.assertEqual(
            automatic.to_json(),
            command(
                "compile",
                "--nodes",
                20,
                "--message-bytes",
                1 << 24,
                "--algorithm",
                "auto",
                "--block-bytes",
                "auto",
            ),
        )

    def test_verify(self):
        plan = prepost.compile(nodes=4, message_bytes=4096, block_bytes=1024)
        self.assertEqual(plan.verify(), [])
        broken = json.loads(plan.to_json())
        broken["programs"][1]["ops"].pop()
        invalid = prepost.Plan.from_json(json.dumps(broken))
        findings = invalid.verify()
        self.assertTrue(findings)
        self.path.write_text(json.dumps(broken))
        reported = subprocess.run(
            [os.environ["PREPOST_COMMAND"], "verify", "--json", self.path],
            capture_output=True,
            text=True,
        )
        [verdict] = json.loads(reported.stdout)
        self.assertEqual(
            [(it.rule, it.where, it.message) for it in findings],
            [(it["rule"], it["where"], it["message"]) for it in verdict["diagnostics"]],
        )
        for call in (invalid.draw, lambda: invalid.simulate("fractus")):
            with self.assertRaisesRegex(prepost.RejectedError, findings[0].where):
                call()

    def test_draw(self):
        plan = prepost.compile(nodes=4, message_bytes=4096, block_bytes=1024)
        plan.save(self.path)
        for view, more, flags in (
            ("spacetime", {"rounds": (1, 2)}, ["--rounds", "1:2"]),
            ("tree", {"blocks": [1]}, ["--block", 1]),
            ("queues", {"nodes": [1]}, ["--node", 1]),
            ("graph", {"nodes": [3]}, ["--node", 3]),
            ("graph", {"format": "dot"}, ["--format", "dot"]),
        ):
            with self.subTest(view=view):
                self.assertEqual(
                    plan.draw(view, **more), command("draw", self.path, "--view", view, *flags)
                )
        self.assertIn("<html", plan.draw(format="html"))
        topology = SOURCE / "examples/topologies/2x4.json"
        self.assertNotEqual(plan.draw(topology=topology), plan.draw())
        for wrong in ({"view": "map"}, {"format": "png"}, {"format": "dot"}, {"view": "queues"}):
            with self.assertRaises(prepost.UsageError):
                plan.draw(**wrong)
        with self.assertRaisesRegex(prepost.RejectedError, "9"):
            plan.draw(nodes=[9])

    # Catches a plan that is refused although the command takes it,
    # and pictures of what no picture shows right.
    def test_collectives_are_drawn_and_simulated(self):
        keys = {"nodes": 6, "message_bytes": 6144, "block_bytes": 1024}
        for more, view in (
            ({"collective": "allreduce", "combine": "sum:float32", "algorithm": "halving"}, "tree"),
            ({"collective": "gather", "algorithm": "binomial", "root": 2}, "graph"),
            ({"collective": "alltoall"}, "graph"),
        ):
            plan = prepost.compile(**keys, **more)
            plan.save(self.path)
            with self.subTest(**more):
                self.assertEqual(plan.draw(), command("draw", self.path))
                self.assertEqual(
                    plan.draw(view, blocks=[1]),
                    command("draw", self.path, "--view", view, "--block", 1),
                )
                got = plan.simulate("fractus")
                want = json.loads(command("simulate", self.path, "--profile", "fractus", "--json"))
                self.assertNotEqual(got.pop("command"), want.pop("command"))
                self.assertEqual(got, want)
                self.assertEqual(("cpu" in got, "offload" in got), (True, False))
                self.assertIn(f"<title>{more['collective']}", plan.draw(format="html"))
                with self.assertRaisesRegex(
                    prepost.RejectedError,
                    f"^a plan of {more['collective']}, .*; spacetime, graph and tree",
                ):
                    plan.draw("queues", nodes=[0])
                trace = self.path.with_name("trace.json")
                command(
                    "simulate",
                    self.path,
                    "--profile",
                    "fractus",
                    "--executor",
                    "cpu",
                    "--trace",
                    trace,
                )
                self.assertEqual(
                    plan.draw(trace=trace), command("draw", self.path, "--trace", trace)
                )
                with self.assertRaisesRegex(
                    prepost.RejectedError, f"a plan of {more['collective']}.*; use --executor cpu"
                ):
                    plan.simulate("fractus", executor="offload")

    def test_draw_with_a_trace(self):
        image, trace = (self.path.with_name(name) for name in ("image", "trace.json"))
        image.write_bytes(bytes(100_000))
        plan = prepost.compile(nodes=4, message_bytes=100_000, block_bytes=16384, algorithm="chain")
        plan.save(self.path)
        command("run", self.path, "--input", image, "--trace", trace)
        for view in ("spacetime", "tree"):
            expected = command("draw", self.path, "--view", view, "--trace", trace)
            self.assertEqual(plan.draw(view, trace=trace), expected)
            self.assertEqual(plan.draw(view, trace=[str(trace)]), expected)
            self.assertNotEqual(plan.draw(view), expected)
        with self.assertRaisesRegex(
            prepost.UsageError, "^the graph view shows no times, a trace is for spacetime and tree$"
        ):
            plan.draw("graph", trace=trace)
        with self.assertRaisesRegex(prepost.RejectedError, "image"):
            plan.draw(trace=image)

    def test_simulate(self):
        plan = prepost.compile(
            nodes=4, message_bytes=1 << 20, block_bytes=1 << 18, algorithm="binomial_pipeline"
        )
        plan.save(self.path)
        flags = {
            "executor": "cpu",
            "wait": "interrupt",
            "settings": {"host.interrupt": "5us"},
            "delay": ["node=1,at=1us,for=9us"],
        }
        got = plan.simulate("fractus", **flags)
        want = json.loads(
            command(
                "simulate",
                self.path,
                "--profile",
                "fractus",
                "--executor",
                "cpu",
                "--wait",
                "interrupt",
                "--set",
                "host.interrupt=5us",
                "--delay",
                "node=1,at=1us,for=9us",
                "--json",
            )
        )
        self.assertNotEqual(got.pop("command"), want.pop("command"))  # the plan has no name
        self.assertEqual(got, want)
        self.assertNotEqual(plan.simulate("fractus"), plan.simulate("sierra"))
        with self.assertRaises(prepost.UsageError):
            plan.simulate("fractus", executor="gpu")
        with self.assertRaises(prepost.Error):
            plan.simulate("no such cluster")

    # Catches arguments that get lost on the way to what the command does with its flags.
    def test_reports_are_those_of_the_command(self):
        topology = SOURCE / "examples/topologies/4x8.json"
        plan = prepost.compile(
            nodes=6, message_bytes=1 << 20, block_bytes=1 << 18, algorithm="chain", root=1
        )
        plan.save(self.path)

        def want(name, *arguments):
            return json.loads(command(name, self.path, *arguments, "--json"))

        self.assertEqual(plan.stats(), want("stats"))
        expected = want("stats", "--topology", topology)
        self.assertEqual(plan.stats(topology), expected)
        mapping = json.loads(topology.read_text())
        expected["topology"]["name"] = "topology"
        self.assertEqual(plan.stats(mapping), expected)
        for view in ("spacetime", "tree"):
            self.assertEqual(plan.draw(view, topology=mapping), plan.draw(view, topology=topology))
        for what in ("2/3", "1>2:0", "4", ":1"):
            self.assertEqual(plan.explain(what), want("explain", what))
        self.assertEqual(plan.explain(4), plan.explain("4"))
        self.assertEqual(plan.lower(), want("lower"))
        self.assertEqual(
            plan.lower(node=2, mode="managed", masters="lane"),
            want("lower", "--node", 2, "--mode", "managed", "--masters", "lane"),
        )
        combined = prepost.compile(
            nodes=4, collective="allreduce", combine="sum:float32", message_bytes=4096
        )
        with self.assertRaisesRegex(prepost.RejectedError, "which combines: a NIC does not"):
            combined.lower()
        with self.assertRaisesRegex(prepost.RejectedError, "node 9"):
            plan.explain("9/0")
        with self.assertRaisesRegex(prepost.UsageError, "mode"):
            plan.lower(mode="odd")
        for keys, flags in (
            ({"nodes": 8, "message_bytes": 1 << 20}, ["--nodes", 8, "--message-bytes", "1MiB"]),
            (
                {
                    "nodes": 6,
                    "message_bytes": 1 << 16,
                    "collective": "allreduce",
                    "combine": "sum:float32",
                    "profile": "fractus",
                },
                ["--nodes", 6, "--message-bytes", "64KiB", "--collective", "allreduce"]
                + ["--combine", "sum:float32", "--profile", "fractus"],
            ),
        ):
            self.assertEqual(
                prepost.choose(**keys), json.loads(command("choose", *flags, "--json"))
            )
        with self.assertRaisesRegex(prepost.Error, "chan"):
            prepost.choose(nodes=8, message_bytes=1, algorithm="chan")

    def test_simulate_takes_what_is_in_files(self):
        plan = prepost.compile(
            nodes=8, message_bytes=1 << 20, block_bytes=1 << 18, algorithm="chain"
        )
        plan.save(self.path)
        profile = prepost.profile("fractus")
        self.assertEqual(plan.simulate(profile)["cpu"], plan.simulate("fractus")["cpu"])
        profile["host"]["post_send"]["value"] = "1ms"
        self.assertGreater(
            plan.simulate(profile)["cpu"]["completion_seconds"],
            plan.simulate("fractus")["cpu"]["completion_seconds"],
        )
        for key in ("cqe", "wqe"):
            del profile["nic"][key]
        with self.assertRaisesRegex(prepost.RejectedError, "missing: /nic/wqe, /nic/cqe"):
            plan.simulate(profile)
        with self.assertRaisesRegex(prepost.UsageError, "known are apt, "):
            prepost.profile("no such cluster")
        topology = SOURCE / "examples/topologies/4x8.json"
        want = json.loads(
            command(
                *("simulate", self.path, "--profile", "fractus", "--json"),
                *("--topology", topology),
                *("--neighbours", "node=1,count=2,slice=4ms"),
                *("--neighbours", "node=2,count=1,slice=1ms"),
            )
        )
        for given in (topology, json.loads(topology.read_text())):
            got = plan.simulate(
                "fractus",
                topology=given,
                neighbours=["node=1,count=2,slice=4ms", "node=2,count=1,slice=1ms"],
            )
            self.assertEqual(got["cpu"], want["cpu"])
            self.assertEqual(got["offload"], want["offload"])
        with self.assertRaisesRegex(prepost.UsageError, "changes nothing"):
            plan.simulate("fractus", topology=topology, settings={"network.rack_latency": "1us"})

    # Catches values that are given to another than is said, and rows that are lost.
    def test_sweep(self):
        over = {
            "nodes": numpy.array([3, 4]),
            "host.interrupt": ["1us", "9us"],
            "wait": ["polling", "interrupt"],
        }
        fixed = {"message_bytes": 1 << 18, "block_bytes": 1 << 16, "algorithm": "chain"}
        rows = prepost.sweep(over, profile="fractus", executor="cpu", **fixed)
        self.assertEqual(
            [tuple(row["point"].values()) for row in rows], list(itertools.product(*over.values()))
        )
        for row in rows:
            point = row["point"]
            alone = prepost.compile(nodes=point["nodes"], **fixed).simulate(
                "fractus",
                executor="cpu",
                wait=point["wait"],
                settings={"host.interrupt": point["host.interrupt"]},
            )
            self.assertEqual(row["simulation"], alone)
        plan = prepost.compile(nodes=4, **fixed)
        rows = prepost.sweep({"profile": ["fractus", "sierra"]}, plan=plan, jobs=1)
        self.assertEqual(
            [row["simulation"] for row in rows], [plan.simulate("fractus"), plan.simulate("sierra")]
        )
        rows = prepost.sweep(
            {"seed": range(3)},
            plan=plan,
            profile="fractus",
            preempt=["rate=50000,for=100us,hosts=1", "rate=9000,for=100us,node=2"],
        )
        times = [row["simulation"]["cpu"]["completion_seconds"] for row in rows]
        self.assertGreater(len(set(times)), 1)
        rows = prepost.sweep({"nodes": [0, 2]}, profile="fractus", **fixed)
        self.assertIn("/nodes", rows[0]["error"])
        self.assertIn("simulation", rows[1])
        for text, call in (
            (
                "nodes: the plan is given",
                lambda: prepost.sweep({"nodes": [2]}, plan=plan, profile=""),
            ),
            ("profile: the cluster is missing", lambda: prepost.sweep({"nodes": [2]})),
            (
                "nodes: it is swept",
                lambda: prepost.sweep({"nodes": [2]}, nodes=3, profile="fractus"),
            ),
            (
                "8000000 combinations",
                lambda: prepost.sweep({k: range(200) for k in "abc"}, profile="fractus"),
            ),
            (
                "algoritm: neither .*, did you mean 'algorithm'",
                lambda: prepost.sweep({"nodes": [2]}, algoritm="chain", profile="fractus"),
            ),
            ("over.'nodes'. is a list", lambda: prepost.sweep({"nodes": 3}, profile="fractus")),
        ):
            with self.assertRaisesRegex(prepost.UsageError, text):
                call()

    def test_errors(self):
        for error, text, keys in (
            (prepost.RejectedError, "^spec: /nodes: .* at least 1 node", {"message_bytes": 1}),
            (
                prepost.Error,
                "did you mean 'chain'",
                {"nodes": 2, "message_bytes": 1, "algorithm": "chan"},
            ),
            (prepost.RejectedError, "nods", {"nods": 2}),
            (prepost.UsageError, "JSON", {"nodes": b"2"}),
        ):
            with self.subTest(keys=keys), self.assertRaisesRegex(error, text):
                prepost.compile(**keys)
        with self.assertRaises(prepost.RejectedError):
            prepost.compile("no such file")
        with self.assertRaisesRegex(prepost.RejectedError, "no such file"):
            prepost.Plan.load("no such file")
        with self.assertRaisesRegex(prepost.RejectedError, "^plan:1:"):
            prepost.Plan.from_json("{]")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "bytes")
            path.write_bytes(b"\xff{}")
            with self.assertRaisesRegex(prepost.RejectedError, r"last read: '\\xff'"):
                prepost.Plan.load(path)
            path.write_text("SwitchName=s0 Nodes=n[0-3]\n")
            plan = prepost.compile(nodes=2, message_bytes=1)
            for call in (
                lambda: prepost.compile(nodes=2, message_bytes=1, topology=path),
                lambda: plan.stats(path),
                lambda: plan.draw(topology=path),
                lambda: plan.simulate("fractus", topology=path),
            ):
                with self.assertRaisesRegex(prepost.RejectedError, "`prepost topology` makes one"):
                    call()

    # Catches a plan of its own in the place of the command's,
    # and numbers that are no int of Python.
    def test_rounds_are_a_schedule(self):
        ring = runpy.run_path(str(SOURCE / "examples/rounds/ring.py"))["ring"]
        path = SOURCE / "examples/rounds/ring-4.txt"
        want = command(
            "compile",
            "--rounds",
            path,
            "--message-bytes",
            5001,
            "--ready",
            "channel",
            "--send-window",
            1,
        )
        arrays = (numpy.array(transfers, dtype="u2") for transfers in ring(4, 4))
        for rounds in (
            path,
            str(path),
            SOURCE / "examples/rounds/ring-4.json",
            path.read_text(),
            ring(4, 4),
            arrays,
        ):
            plan = prepost.compile(
                rounds=rounds, message_bytes=5001, ready="channel", send_window=1
            )
            self.assertEqual(plan.to_json(), want)
        self.assertEqual(
            (plan.algorithm, plan.nodes, plan.blocks, plan.rounds), ("rounds", 4, 4, 6)
        )
        self.assertEqual(plan.verify(), [])
        self.assertIn("<svg", plan.draw())
        self.assertGreater(plan.simulate("fractus", executor="cpu")["cpu"]["completion_seconds"], 0)
        # Without sizes the blocks are those of a spec, and a round may be empty.
        self.assertEqual(
            prepost.compile(rounds=[[(2, 1, 0)], (), [(1, 0, 0)]]).to_json(),
            command(
                "compile",
                "--rounds",
                "/dev/stdin",
                "--message-bytes",
                1 << 20,
                given="2>1:0\n-\n1>0:0\n",
            ),
        )
        self.assertEqual(prepost.compile(rounds=[], nodes=1, message_bytes=7).nodes, 1)
        with self.assertWarnsRegex(
            UserWarning, "^rounds: round 1: node 0 sends 2 blocks: the plan has 2 ports$"
        ) as warned:
            prepost.compile(rounds=[[], [(0, 1, 0), (0, 2, 0)]])
        self.assertEqual(warned.filename, __file__)

    def test_rounds_of_collectives(self):
        pairs = [[(node, node ^ 1 << bit, 0, True) for node in range(4)] for bit in range(2)]
        path = SOURCE / "examples/rounds/exchange-4.txt"
        want = command("compile", "--rounds", path, "--message-bytes", 4096)
        keys = {"message_bytes": 4096, "collective": "allreduce", "combine": "sum:float32"}
        for plan in (
            prepost.compile(rounds=pairs, **keys),
            prepost.compile(rounds=path, message_bytes=4096),
            prepost.compile(rounds=path.read_text(), **keys),
            prepost.compile(rounds=pairs, **{**keys, "combine": {"op": "sum", "type": "float32"}}),
        ):
            self.assertEqual(plan.to_json(), want)
        self.assertEqual(
            prepost.compile(nodes=4, algorithm="doubling", **keys).to_json(),
            command(
                "compile",
                "--nodes",
                4,
                "--algorithm",
                "doubling",
                "--collective",
                "allreduce",
                "--combine",
                "sum:float32",
                "--message-bytes",
                4096,
            ),
        )
        # A range is one message, of NumPy's numbers too.
        gather = prepost.compile(
            rounds=[[(1, 0, range(2, 4))]], collective="gather", block_bytes=10
        )
        self.assertEqual(
            (gather.ops, gather.blocks, gather.message_bytes, gather.root), (2, 4, 20, 0)
        )
        for error, text, rounds, more in (
            (
                prepost.RejectedError,
                "^rounds: round 1: value: block 0, made of .*node 0's contribution is in both$",
                [[(0, 1, 0, True)], [(0, 1, 0, True)]],
                {**keys, "root": 1, "collective": "reduce"},
            ),
            (
                prepost.RejectedError,
                (
                    "^rounds: value: block 0 at node 0 is made of \\{0\\}, node 1's contribution is"
                    " missing$"
                ),
                [[(0, 1, 0, True)]],
                keys,
            ),
            (
                prepost.RejectedError,
                "^rounds: round 0: 0>1\\+0 combines, and a multicast does not",
                [[(0, 1, 0, True)]],
                {},
            ),
            (
                prepost.RejectedError,
                "^rounds: round 0: 0>1:0-1 are several blocks",
                [[(0, 1, range(2))]],
                {},
            ),
            (
                prepost.RejectedError,
                r"^rounds: round 0: range\(2, 2\) is no range of consecutive blocks",
                [[(0, 1, range(2, 2))]],
                {},
            ),
            (
                prepost.RejectedError,
                r"^rounds: round 1: range\(3, 6, 2\) is no range of consecutive blocks",
                [[], [(0, 1, range(3, 6, 2))]],
                {},
            ),
            (
                prepost.RejectedError,
                "^rounds: round 0: the fourth entry of a transfer is True or False, not str$",
                [[(0, 1, 0, "no")]],
                keys,
            ),
            (
                prepost.RejectedError,
                "^rounds: round 0: the fourth entry of a transfer is True or False, not int$",
                [[(0, 1, 0, 2)]],
                keys,
            ),
            (
                prepost.RejectedError,
                "^rounds: round 0: expected a transfer",
                [[(0, 1, 0, True, 1)]],
                {},
            ),
            (
                prepost.RejectedError,
                "^spec: /combine: what reduce does to values is missing",
                [[(0, 1, 0, True)]],
                {"collective": "reduce"},
            ),
            (
                prepost.UsageError,
                "^part_bytes: rounds are of parts of one size$",
                [[(0, 1, 0)]],
                {"part_bytes": [1, 2]},
            ),
            (
                prepost.UsageError,
                "^deterministic: the rounds say",
                [[(0, 1, 0, True)]],
                {**keys, "deterministic": True},
            ),
            (prepost.RejectedError, "combine", [[(0, 1, 0, True)]], {**keys, "combine": "sum"}),
        ):
            with self.subTest(rounds=rounds, keys=more), self.assertRaisesRegex(error, text):
                prepost.compile(rounds=rounds, **more)

    def test_only_multicasts_are_rolled(self):
        for algorithm in ("chain", "ring"):
            with self.subTest(algorithm=algorithm), self.assertRaisesRegex(
                prepost.RejectedError,
                (
                    "^spec: /collective: only a multicast has a plan for any size: allreduce is"
                    " compiled for one$"
                ),
            ):
                prepost.roll(
                    nodes=4, collective="allreduce", combine="sum:float32", algorithm=algorithm
                )
        with self.assertRaisesRegex(
            prepost.RejectedError,
            "^spec: /collective: only a multicast has a plan for any size: allgather is",
        ):
            prepost.roll(nodes=4, collective="allgather")

    def test_wrong_rounds(self):
        self.path.write_text("0>1:0\n1>2:1\n")
        lacks = "round 1: node 1 sends block 1, which it does not have yet: it never gets it\n"
        word = (
            r"round 1: expected a transfer \(sender, receiver, block\) such as \(0, 1, 0\), found "
        )

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for error, text, rounds, keys in (
                (
                    prepost.RejectedError,
                    f"^{self.path}:2:1: {lacks}  {self.path}: node 1 never gets block 1",
                    self.path,
                    {},
                ),
                (
                    prepost.RejectedError,
                    f"^rounds:2:1: {lacks}  rounds: node 1 never gets block 1",
                    "0>1:0\n1>2:1\n",
                    {},
                ),
                (
                    prepost.RejectedError,
                    f"^rounds: {lacks}  rounds: node 1 never gets block 1",
                    [[(0, 1, 0)], [(1, 2, 1)]],
                    {},
                ),
                (prepost.RejectedError, f"^rounds: {word}\\(0, 1\\)$", [[], [(0, 1)]], {}),
                (prepost.RejectedError, f"^rounds: {word}0$", [[], (0, 1, 0)], {}),
                (prepost.RejectedError, f"{word}\\(0, -1, 0\\)$", [[], [(0, -1, 0)]], {}),
                (prepost.RejectedError, f"{word}\\(0, 1.0, 0\\)$", [[], [(0, 1.0, 0)]], {}),
                (prepost.RejectedError, "^rounds: round 0: expected transfers, found 7$", [7], {}),
                (
                    prepost.RejectedError,
                    "^rounds: round 0: a node of '0>1048576:0' is too large",
                    [[(0, 1 << 20, 0)]],
                    {},
                ),
                (prepost.RejectedError, "^rounds: no transfers", [], {}),
                (
                    prepost.RejectedError,
                    "^rounds: round 0: nodes 0 and 2 .* root names it",
                    [[(0, 1, 0), (2, 3, 0)]],
                    {},
                ),
                (
                    prepost.RejectedError,
                    "^spec: /root: root 2 is out of range",
                    [[(0, 1, 0)]],
                    {"root": 2},
                ),
                (
                    prepost.RejectedError,
                    "^spec: /block_bytes: 9 bytes in blocks of 3",
                    [[(0, 1, 0)]],
                    {"block_bytes": 3, "message_bytes": 9},
                ),
                (
                    prepost.RejectedError,
                    "^spec:1:.*did you mean 'nodes'",
                    [[(0, 1, 0)]],
                    {"node": 2},
                ),
                (
                    prepost.UsageError,
                    "^algorithm: the rounds are the schedule$",
                    [[(0, 1, 0)]],
                    {"algorithm": "chain"},
                ),
                (
                    prepost.UsageError,
                    "^topology: the rounds name the nodes",
                    [[(0, 1, 0)]],
                    {"topology": "t.json"},
                ),
                (
                    prepost.UsageError,
                    "^block_bytes: auto chooses",
                    [[(0, 1, 0)]],
                    {"block_bytes": "auto"},
                ),
                (prepost.UsageError, "in place of a spec", [[(0, 1, 0)]], {"spec": {"nodes": 2}}),
                (prepost.RejectedError, "no such file", "no such file", {}),
                (
                    prepost.UsageError,
                    "^rounds is a path, a text or an iterable of rounds, not int$",
                    7,
                    {},
                ),
            ):
                with self.subTest(rounds=rounds, keys=keys), self.assertRaisesRegex(error, text):
                    prepost.compile(rounds=rounds, **keys)

        with unittest.mock.patch("prepost._plan._TRANSFERS_MAX", 1000):  # generators that never end
            for rounds in (
                itertools.repeat([]),
                [itertools.repeat((0, 1, 0))],
                itertools.repeat([(0, 1, 0)]),
            ):
                with self.assertRaisesRegex(
                    prepost.RejectedError, "the limit is 1000 rounds and transfers together"
                ):
                    prepost.compile(rounds=rounds)
        with self.assertRaisesRegex(prepost.UsageError, "^the spec is no JSON: "):
            prepost.compile(rounds=[[(0, 1, 0)]], message_bytes=float("nan"))
        deep = {}
        for _ in range(100_000):
            deep = {"a": deep}
        with self.assertRaisesRegex(prepost.UsageError, "^the profile is nested too deep$"):
            prepost.compile(nodes=2, message_bytes=1).simulate(profile=deep)
        with self.assertRaisesRegex(
            prepost.RejectedError,
            r"0>1\+0 combines, and a multicast does not; collective and combine name another",
        ):
            prepost.compile(rounds=[[(0, 1, 0, True)]])

        def breaks():
            yield [(0, 1, 0)]
            raise KeyError("mine")

        with self.assertRaisesRegex(KeyError, "mine"):
            prepost.compile(rounds=breaks())

    def test_the_example_of_rounds(self):
        done = subprocess.run(
            [sys.executable, SOURCE / "examples/rounds/ring.py", "6", "12"],
            cwd=self.path.parent,
            capture_output=True,
            text=True,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"rounds +16 rounds +\d+\.\d+ ms\nchain +16 rounds")
        self.assertIn("<svg", self.path.with_name("ring.svg").read_text())

    def test_rolled_plans(self):
        plan = prepost.roll(nodes=6, block_bytes=1000, algorithm="chain", root=2, ready="channel")
        self.assertEqual(
            (plan.nodes, plan.root, plan.block_bytes, plan.algorithm), (6, 2, 1000, "chain")
        )
        flags = [
            "--nodes",
            6,
            "--block-bytes",
            1000,
            "--algorithm",
            "chain",
            "--root",
            2,
            "--ready",
            "channel",
        ]
        self.assertEqual(plan.to_json(), command("compile", *flags, "--message-bytes", "any"))
        plan.save(self.path)
        self.assertEqual(prepost.RolledPlan.load(self.path), plan)
        self.assertEqual(prepost.RolledPlan.from_json(plan.to_json()), plan)
        self.assertEqual(
            plan.unroll(4321).to_json(), command("compile", *flags, "--message-bytes", 4321)
        )
        self.assertEqual(repr(plan), "<prepost.RolledPlan chain: 6 nodes, blocks of 1000 bytes>")
        one = prepost.roll({"nodes": 6, "message_bytes": 7}, node=3)
        self.assertEqual(
            one.to_json(), command("compile", "--nodes", 6, "--message-bytes", "any", "--node", 3)
        )
        self.assertRegex(repr(one), "1 of 6 nodes")
        self.assertNotEqual(one, plan)
        for error, text, call in (
            (
                prepost.RejectedError,
                "^spec: /block_bytes: auto depends",
                lambda: prepost.roll(nodes=4, block_bytes="auto"),
            ),
            (
                prepost.UsageError,
                "^message_bytes: a rolled plan is for every size$",
                lambda: prepost.roll(nodes=4, message_bytes=4),
            ),
            (
                prepost.RejectedError,
                "scatter_allgather",
                lambda: prepost.roll(nodes=4, algorithm="scatter_allgather"),
            ),
            (prepost.Error, "9", lambda: prepost.roll(nodes=4, node=9)),
            (prepost.RejectedError, "program", lambda: one.unroll(4)),
            (prepost.RejectedError, "^plan:1:", lambda: prepost.RolledPlan.from_json("{]")),
            (
                prepost.RejectedError,
                "no such file",
                lambda: prepost.RolledPlan.load("no such file"),
            ),
        ):
            with self.subTest(text=text), self.assertRaisesRegex(error, text):
                call()

    # Catches the interpreter's lock that is kept, and Graphviz that two threads use at once.
    def test_threads(self):
        plan = prepost.compile(nodes=4, message_bytes=4096, block_bytes=1024)
        pictures = []
        threads = [
            threading.Thread(target=lambda: pictures.append(plan.draw("graph"))) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(pictures), 4)
        self.assertEqual(len(set(pictures)), 1)


if __name__ == "__main__":
    unittest.main()
