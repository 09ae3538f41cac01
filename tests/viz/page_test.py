# SPDX-License-Identifier: Apache-2.0
"""The page of `prepost draw -o x.html` in a headless Chromium: COMMAND SOURCE-FOLDER.

Each view of ten plans is opened without an error on the console; what is searched, selected, filtered and played shows, and comes
back by the link; what the page says of ops, nodes and runs is what `explain`, `stats` and the trace say. Pictures of the views are
compared with those in tests/golden/page, loosely, as fonts differ; PREPOST_UPDATE_GOLDEN=1 writes them anew."""
import hashlib
import itertools
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

from PIL import Image, ImageChops
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

COMMAND, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
GOLDEN = SOURCE / "tests/golden/page"
VIEWS = ["grid", "graph", "tree", "queues"]
PLANS = [  # nodes, blocks, flags
    (1, 3, []), (2, 1, []), (3, 4, ["--algorithm", "chain", "--ready", "barrier"]), (5, 6, ["--algorithm", "two_tree"]),
    (8, 4, []), (8, 8, ["--algorithm", "circulant", "--ready", "retry"]),
    (13, 5, ["--algorithm", "scatter_allgather", "--ready", "channel"]), (64, 16, []),
    (256, 8, ["--algorithm", "kary_tree", "--send-window", "none"]), (1024, 16, [])]
SEED = int(os.environ.get("PREPOST_TEST_SEED", "1"))


def run(*words, folder=None):
    return subprocess.run([COMMAND, *map(str, words)], cwd=folder, check=True, capture_output=True, text=True).stdout


class Page(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        options = webdriver.ChromeOptions()
        for flag in ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=1",
                     "--window-size=1400,900", "--disable-dev-shm-usage"]:
            options.add_argument(flag)
        options.binary_location = "/usr/bin/chromium"
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        cls.browser = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        cls.browser.set_script_timeout(60)
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()
        cls.folder.cleanup()

    def path(self, name):
        return pathlib.Path(self.folder.name) / name

    def compile(self, name, nodes, blocks, flags=()):
        run("compile", "--nodes", nodes, "--message-bytes", blocks * 1000, "--block-bytes", 1000,
            *([] if "--algorithm" in flags else ["--algorithm", "binomial_pipeline"]), *flags, "-o", self.path(name))
        return self.path(name)

    def open(self, page, link=""):
        self.browser.get("about:blank")
        self.browser.get(f"file://{page}{link}")
        self.do("return prepost.ready")

    def do(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def settle(self):
        """Two frames later what was asked for is drawn."""
        self.browser.execute_async_script(
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))")

    def expect_quiet(self):
        self.assertEqual([it for it in self.browser.get_log("browser") if it["level"] in ("WARNING", "SEVERE")], [])

    def test_every_view_of_ten_plans_opens(self):
        for nodes, blocks, flags in PLANS:
            with self.subTest(nodes=nodes, flags=flags):
                plan = self.compile("plan.json", nodes, blocks, flags)
                run("draw", plan, "-o", self.path("page.html"))
                self.open(self.path("page.html"))
                for view in VIEWS:
                    self.do("prepost.setView(arguments[0])", view)
                    self.assertEqual(self.do("return prepost.search('node 0')"), "")
                    self.settle()
                    self.assertEqual(self.do("return prepost.state().views[0]"), view)
                    self.expect_quiet()
                self.assertEqual(self.do("return performance.getEntriesByType('resource').length"), 0)
                figures = self.do("return prepost.figures().sides[0]")
                stats = json.loads(run("stats", plan, "--json"))
                self.assertEqual(figures["ops"], stats["ops"])
                self.assertEqual(figures["blocks"], stats["block_transfers"])
                self.assertEqual(figures["credits"], stats["credits"])
                self.assertEqual(figures["rounds"], stats["rounds"])
                self.assertEqual(len(figures["held"]), nodes)

    def test_its_words_are_those_of_explain(self):
        print(f"seed {SEED}")
        chosen = random.Random(SEED)
        for nodes, blocks, flags in PLANS[1:8]:
            plan = self.compile("plan.json", nodes, blocks, flags)
            run("draw", plan, "-o", self.path("page.html"))
            self.open(self.path("page.html"))
            programs = {it["node"]: it["ops"] for it in json.loads(plan.read_text())["programs"]}
            ops = [f"{node}/{i}" for node, of_node in programs.items() for i in range(len(of_node))]
            for what in [*chosen.sample(ops, min(6, len(ops))), str(chosen.randrange(nodes)), str(nodes - 1)]:
                with self.subTest(nodes=nodes, flags=flags, what=what):
                    lines = run("explain", plan, what).splitlines()[:-2]
                    self.assertEqual(self.do("return prepost.explain(arguments[0])", what).rstrip("\n").splitlines(), lines)
        self.expect_quiet()

    def test_selection_filter_and_clock_come_back_by_the_link(self):
        plan = self.compile("plan.json", 8, 8)
        run("draw", plan, "-o", self.path("page.html"))
        self.open(self.path("page.html"))
        self.assertIn("0 to 9", self.do("return prepost.search('round 99')"))
        self.assertNotEqual(self.do("return prepost.search('node 8')"), "")
        self.assertEqual(self.do("return prepost.search('0>4:2')"), "")
        self.assertIn("0 to 9", self.do("try { prepost.setFilter({rounds: '10'}) } catch (error) { return error.message }"))
        self.do("prepost.setClock(4); prepost.setFilter({rounds: '2:6'}); prepost.setView('tree')")
        self.browser.execute_async_script("setTimeout(arguments[0], 500)")  # the link waits for the last of many changes
        before = self.do("return prepost.state()")
        self.assertIn("0>4:2", self.do("return document.body.innerText"))
        link = self.do("return location.hash")
        self.assertTrue(link)
        self.open(self.path("page.html"), link)
        self.settle()
        self.assertEqual(self.do("return prepost.state()"), before)
        self.expect_quiet()

    def test_flags_say_what_is_shown_first(self):
        plan = self.compile("plan.json", 8, 8)
        run("draw", plan, "--view", "queues", "--node", 3, "--rounds", "2:4", "-o", self.path("page.html"))
        self.open(self.path("page.html"))
        state = self.do("return prepost.state()")
        self.assertIn("queues", state["views"])
        self.assertEqual((state["filter"]["rounds"], state["selected"]), ("2:4", "node 3"))
        self.expect_quiet()

    def test_sides_of_other_sizes(self):
        small, large = self.compile("small.json", 4, 6), self.compile("large.json", 8, 8)
        for one, two in ((small, large), (large, small)):
            run("draw", one, "--against", two, "--node", 3, "-o", self.path("page.html"))
            self.open(self.path("page.html"))
            for view in [*VIEWS, "sides"]:
                self.do("prepost.setView(arguments[0]); prepost.setClock(3)", view)
                self.settle()
            self.assertEqual([len(it["held"]) for it in self.do("return prepost.figures().sides")], [4, 8] if one == small else [8, 4])
            self.expect_quiet()
        node = subprocess.run([COMMAND, "draw", large, "--against", small, "--node", "7", "-o", self.path("page.html")], check=False)
        self.assertEqual(node.returncode, 0)  # of the larger alone

    def test_a_run_that_is_not_whole_says_so(self):
        plan = self.compile("plan.json", 5, 6)
        self.path("image").write_bytes(os.urandom(6000))
        run("run", plan, "--input", self.path("image"), "--executor", "cpu", "--trace", self.path("whole.trace"))
        trace = json.loads(self.path("whole.trace").read_text())
        trace["otherData"]["outcome"] = "node 3 is gone"
        trace["traceEvents"] = [it for it in trace["traceEvents"] if it["pid"] != 3 or it["ph"] == "M"]
        self.path("part.trace").write_text(json.dumps(trace))
        run("draw", plan, "--trace", self.path("part.trace"), "-o", self.path("page.html"))
        self.open(self.path("page.html"))
        self.do("prepost.setView('timeline')")
        self.settle()
        text = self.do("return document.body.innerText")
        for words in ["failed: node 3 is gone", "no trace of node 3", "18 of 24 receives of blocks are known"]:
            self.assertIn(words, text)
        self.expect_quiet()

    # Catches sends that are charged for what they did not wait for, against the same sums made here.
    def test_gaps_of_a_chain(self):
        plan = self.compile("plan.json", 4, 8, ["--algorithm", "chain", "--ready", "barrier", "--send-window", "none"])
        run("simulate", plan, "--profile", "fractus", "--executor", "offload", "--trace", self.path("sim.trace"))
        trace = json.loads(self.path("sim.trace").read_text())
        run("draw", plan, "--simulation", self.path("sim.trace"), "-o", self.path("page.html"))
        self.open(self.path("page.html"))
        ops = {(it["pid"], it["args"]["op"]): it["args"] for it in trace["traceEvents"] if it["ph"] == "X"}
        expected = {}
        for program in json.loads(plan.read_text())["programs"]:
            node = program["node"]
            received = {op["block"]: ops[node, i]["completed_ns"] for i, op in enumerate(program["ops"]) if op["op"] == "recv"}
            before = None
            for i, op in enumerate(program["ops"]):
                if op["op"] != "send":
                    continue
                start = ops[node, i]["started_ns"]
                needs = ([(received[op["block"]], "Data")] if op["block"] in received else []) + (
                    [(before, "ChannelOrder")] if before is not None and before <= start else [])
                if needs:
                    end, why = max(needs, key=lambda it: (it[0], it[1] == "Data"))
                    expected.setdefault(why, []).append(max(0, start - end))
                before = ops[node, i]["completed_ns"]
        gaps = {it["kind"]: (it["count"], it["sum"]) for it in self.do("return prepost.figures().sides[0].run.gaps")}
        self.assertEqual(gaps, {why: (len(values), sum(values)) for why, values in expected.items()})

    def test_play_says_who_has_what(self):
        plan = self.compile("plan.json", 8, 4)
        run("draw", plan, "-o", self.path("page.html"))
        self.open(self.path("page.html"))
        held = [self.do("prepost.setClock(arguments[0]); return prepost.figures().sides[0].held", clock) for clock in range(7)]
        self.assertEqual(held[0], [4] + [0] * 7)
        self.assertEqual(held[6], [4] * 8)
        for before, after in itertools.pairwise(held):
            self.assertTrue(all(a <= b for a, b in zip(before, after)))
        self.do("prepost.setClock(0); prepost.play()")
        self.browser.execute_async_script("setTimeout(arguments[0], 1500)")
        self.assertGreater(self.do("prepost.pause(); return prepost.state().clock.value"), 0)
        self.expect_quiet()

    def test_figures_of_runs_are_those_of_their_traces(self):
        plan = self.compile("plan.json", 5, 6)
        self.path("image").write_bytes(os.urandom(6000))
        traces = {}
        for executor in ["cpu", "offload"]:
            run("run", plan, "--input", self.path("image"), "--executor", executor, "--trace", self.path(executor + ".trace"))
            traces[executor] = json.loads(self.path(executor + ".trace").read_text())
        run("draw", plan, "--trace", self.path("cpu.trace"), "--against", self.path("offload.trace"), "-o", self.path("page.html"))
        self.open(self.path("page.html"))
        self.do("prepost.setView('timeline')")
        self.settle()
        runs = [it["run"] for it in self.do("return prepost.figures().sides")]
        self.assertEqual([it["executor"] for it in runs], ["cpu", "offload"])
        for of_page, trace in zip(runs, traces.values()):
            start = trace["otherData"]["start_ns"]
            ops = {(it["pid"], it["args"]["op"]): it["args"] for it in trace["traceEvents"] if it["ph"] == "X"}
            self.assertLessEqual(of_page["duration"], max(it["completed_ns"] for it in ops.values()) - start)
            self.assertGreater(of_page["duration"], 0)
            self.assertEqual(of_page["posts"], sum(it["posted_ns"] > start for it in ops.values()))
        self.assertEqual(runs[1]["posts"], 0)
        self.assertGreater(runs[0]["posts"], 0)
        self.expect_quiet()

    def test_two_plans_show_what_differs(self):
        one = self.compile("one.json", 5, 4, ["--algorithm", "chain"])
        two = self.compile("two.json", 5, 4)
        run("draw", one, "--against", two, "-o", self.path("page.html"))
        self.open(self.path("page.html"))
        self.settle()

        def transfers(plan):
            plan = json.loads(plan.read_text())
            channels = plan["channels"]
            return {(channels[op["channel"]]["from"], channels[op["channel"]]["to"], op["block"], op["round"])
                    for program in plan["programs"] for op in program["ops"] if op["op"] == "send" and op["block"] is not None}

        self.assertEqual(self.do("return prepost.figures().different"), len(transfers(one) ^ transfers(two)))
        self.expect_quiet()

    def test_it_is_built_from_its_sources(self):
        folder = SOURCE / "viz/page"
        names = ["build.mjs", "package-lock.json", "tsconfig.json", *(f"src/{it.name}" for it in (folder / "src").iterdir())]
        digest = hashlib.sha256()
        for name in sorted(names):
            digest.update(f"{name}\n".encode() + (folder / name).read_bytes())
        self.assertIn(digest.hexdigest(), (folder / "dist/page.html").read_text(), "npm run build in viz/page makes it anew")

    def expect_picture(self, golden, is_small=True):
        """They are compared at a quarter of the window's size, which a small one has."""
        self.settle()
        self.browser.save_screenshot(str(self.path("seen.png")))
        seen = Image.open(self.path("seen.png")).convert("RGB")
        small = (seen.width // 4, seen.height // 4)
        if os.environ.get("PREPOST_UPDATE_GOLDEN"):
            golden.parent.mkdir(exist_ok=True)
            (seen.resize(small, Image.BOX) if is_small else seen).save(golden, optimize=True)
        both = [it.resize(small, Image.BOX) for it in (seen, Image.open(golden).convert("RGB"))]
        # Of the first pane, as a share of what is not its background, so that one that is blank is not taken for the other.
        pane = (0, small[1] // 8, small[0] * 3 // 8, small[1] * 9 // 10)
        seen, expected = [it.crop(pane) for it in both]
        paper = Image.new("RGB", seen.size, expected.getpixel((seen.width - 3, seen.height - 3)))
        ink, difference = [sum(it > 40 for it in ImageChops.difference(expected, other).convert("L").tobytes()) for other in (paper, seen)]
        self.assertGreater(ink, 100, golden)
        self.assertLess(difference, 0.25 * ink, golden)

    def test_pictures(self):
        plan = self.compile("plan.json", 8, 4)
        run("draw", plan, "-o", self.path("page.html"))
        self.open(self.path("page.html"))
        for view in VIEWS:
            self.do("prepost.setView(arguments[0]); prepost.search('node 5'); prepost.setClock(3)", view)
            self.expect_picture(GOLDEN / f"{view}.png")

    # That of docs/inspect.md.
    def test_picture_of_both_ways(self):
        run("compile", "--nodes", 8, "--message-bytes", "4MiB", "--block-bytes", "512KiB", "--algorithm", "binomial_pipeline", "-o",
            self.path("eight.json"))
        for executor in ["cpu", "offload"]:
            run("simulate", "eight.json", "--profile", "fractus", "--executor", executor, "--trace", f"{executor}.json",
                folder=self.folder.name)
        run("draw", self.path("eight.json"), "--simulation", self.path("cpu.json"), "--against", self.path("offload.json"), "-o",
            self.path("page.html"))
        self.open(self.path("page.html"))
        self.do("prepost.setView('sides'); prepost.search('0>4:2')")
        self.expect_picture(SOURCE / "docs/images/page.png", is_small=False)
        self.expect_quiet()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
