# SPDX-License-Identifier: Apache-2.0
"""The page of `prepost draw -o x.html` in a headless Chromium: COMMAND SOURCE-FOLDER.

Each view of ten plans is opened without an error on the console; what is searched, selected,
filtered and played shows, and comes back by the link; what the page says of ops, nodes and runs is
what `explain`, `stats` and the trace say. Pictures of the views are compared with those in
tests/golden/page, loosely, as fonts differ; PREPOST_UPDATE_GOLDEN=1 writes them anew."""
import hashlib
import itertools
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest

from PIL import Image, ImageChops
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

COMMAND, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
GOLDEN = SOURCE / "tests/golden/page"
VIEWS = ["grid", "graph", "tree", "queues"]
PLANS = [  # nodes, blocks, flags
    (1, 3, []),
    (2, 1, []),
    (3, 4, ["--algorithm", "chain", "--ready", "barrier"]),
    (5, 6, ["--algorithm", "two_tree"]),
    (8, 4, []),
    (8, 8, ["--algorithm", "circulant", "--ready", "retry"]),
    (13, 5, ["--algorithm", "scatter_allgather", "--ready", "channel"]),
    (64, 16, []),
    (256, 8, ["--algorithm", "kary_tree", "--send-window", "none"]),
    (1024, 16, []),
]
SIZES = "sizes.txt"  # of parts of an alltoall
COLLECTIVES = [  # flags
    [
        "reduce",
        "--combine",
        "max:int32",
        "--algorithm",
        "chain",
        "--nodes",
        5,
        "--root",
        2,
        "--message-bytes",
        "4KiB",
    ],
    [
        "allreduce",
        "--combine",
        "sum:float32",
        "--algorithm",
        "ring",
        "--nodes",
        4,
        "--message-bytes",
        "4KiB",
    ],
    [
        "allreduce",
        "--combine",
        "prod:float64",
        "--algorithm",
        "halving",
        "--nodes",
        6,
        "--message-bytes",
        "12KiB",
    ],
    [
        "allreduce",
        "--combine",
        "sum:int64",
        "--algorithm",
        "doubling",
        "--nodes",
        8,
        "--message-bytes",
        "2KiB",
    ],
    [
        "reduce_scatter",
        "--combine",
        "sum:float32",
        "--algorithm",
        "halving",
        "--nodes",
        4,
        "--message-bytes",
        "2KiB",
    ],
    [
        "reduce_scatter",
        "--combine",
        "sum:int32",
        "--algorithm",
        "ring",
        "--part-bytes",
        "4KiB,0,8,1KiB",
        "--nodes",
        4,
    ],
    ["allgather", "--part-bytes", "3KiB,0,7,1KiB,9", "--nodes", 5],
    ["gather", "--algorithm", "binomial", "--nodes", 6, "--root", 1, "--message-bytes", "2KiB"],
    ["scatter", "--algorithm", "binomial", "--nodes", 5, "--root", 1, "--message-bytes", "2KiB"],
    ["alltoall", "--algorithm", "bruck", "--nodes", 5, "--message-bytes", 1000],
    ["alltoall", "--nodes", 4, "--part-bytes", SIZES],
    ["barrier", "--nodes", 5],
]
# Notes what is drawn on each canvas since it was cleared: texts and boxes in pixels of the canvas,
# and centres of circles.
NOTE_DRAWING = """
const of = CanvasRenderingContext2D.prototype;
const {clearRect, fillText, roundRect, arc} = of;
window.drawn = new Map();
const at = (context, x, y) => context.getTransform().transformPoint(new DOMPoint(x, y));
of.clearRect = function (...box) {
  drawn.set(this.canvas, {texts: [], boxes: [], circles: []});
  return clearRect.apply(this, box);
};
of.fillText = function (text, x, y, ...rest) {
  const size = Number(/([0-9.]+)px/.exec(this.font)[1]);
  const {width} = this.measureText(text);
  const {x: px, y: py} = at(this, x, y);
  const left = px - width * ({center: 0.5, right: 1}[this.textAlign] ?? 0);
  drawn.get(this.canvas)?.texts.push({text, left, right: left + width, y: py, size});
  return fillText.call(this, text, x, y, ...rest);
};
of.roundRect = function (x, y, width, height, ...rest) {
  const {x: left, y: top} = at(this, x, y);
  drawn.get(this.canvas)?.boxes.push({left, top, right: left + width, bottom: top + height});
  return roundRect.call(this, x, y, width, height, ...rest);
};
of.arc = function (x, y, ...rest) {
  const {x: px, y: py} = at(this, x, y);
  drawn.get(this.canvas)?.circles.push([px, py]);
  return arc.call(this, x, y, ...rest);
};
"""
# What is not within what is around it: canvases, panes that scroll, and texts that are cut.
CUT_OFF = """
const cut = [];
for (const canvas of document.querySelectorAll("canvas")) {
  const [own, stage] = [canvas, canvas.parentElement].map((it) => it.getBoundingClientRect());
  const host = canvas.closest(".host").getBoundingClientRect();
  if (Math.floor(stage.width) !== own.width || Math.floor(stage.height) !== own.height) {
    cut.push(`a canvas ${own.width} x ${own.height} in ${stage.width} x ${stage.height}`);
  }
  if (own.bottom > host.bottom || own.right > host.right) cut.push("a canvas beyond its pane");
  // The op graph begins in its middle, so that texts at its edges are cut.
  if (canvas.ariaLabel.startsWith("Op graph")) continue;
  for (const {text, left, right, y, size} of drawn.get(canvas)?.texts ?? []) {
    if (left < 0 || right > own.width + 0.5 || y < size / 2 - 1 || y > own.height - size / 2 + 1) {
      cut.push(`'${text}' from ${left} to ${right} at ${y} in ${own.width} x ${own.height}`);
    }
  }
}
for (const selector of [".view", ".tabs", ".sides button", ".figures", ".top"]) {
  for (const it of document.querySelectorAll(selector)) {
    const isCut = it.scrollHeight > it.clientHeight && !it.classList.contains("more");
    if (isCut || it.scrollWidth > it.clientWidth) {
      const sizes = [it.scrollWidth, it.scrollHeight, it.clientWidth, it.clientHeight];
      cut.push(`${selector}: ${sizes[0]} x ${sizes[1]} in ${sizes[2]} x ${sizes[3]}`);
    }
  }
}
"""
# Boxes of the op graph that are in view, and those of them that have no label in them.
BOXES = """
const tab = document.querySelector("[data-view=graph][aria-selected=true]");
const canvas = tab.closest(".pane").querySelector("canvas");
const {texts, boxes} = drawn.get(canvas);
const whole = boxes.filter((box) => box.left >= 74 && box.top >= 24 &&
  box.right <= canvas.clientWidth && box.bottom <= canvas.clientHeight);
const isIn = ({text, left, right, y, size}, box) => text !== "" && size >= 8 &&
  left >= box.left && right <= box.right && y >= box.top && y <= box.bottom;
const empty = whole.filter((box) => !texts.some((text) => isIn(text, box)));
"""
# Nodes of the tree, and those that are in view.
CIRCLES = """
const tab = document.querySelector("[data-view=tree][aria-selected=true]");
const canvas = tab.closest(".pane").querySelector("canvas");
const {circles} = drawn.get(canvas);
const inside = circles.filter(([x, y]) =>
  x > 0 && y > 0 && x < canvas.clientWidth && y < canvas.clientHeight);
"""
# Whether figures of both sides are cut, and whether a line says so.
FIGURES_CUT = """
const figures = document.querySelector(".figures");
const [table, box] = [figures.querySelector("table"), figures]
  .map((it) => it.getBoundingClientRect());
return [table.bottom > box.bottom, figures.classList.contains("more")];
"""
SEED = int(os.environ.get("PREPOST_TEST_SEED", "1"))
WINDOWS = [(1280, 620), (1600, 760), (1920, 940)]  # width, height
if not os.environ.get("PREPOST_TEST_LONG"):
    WINDOWS = [WINDOWS[SEED % len(WINDOWS)]]


def run(*words, folder=None):
    return subprocess.run(
        [COMMAND, *map(str, words)], cwd=folder, check=True, capture_output=True, text=True
    ).stdout


class Page(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        options = webdriver.ChromeOptions()
        for flag in [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--force-device-scale-factor=1",
            "--window-size=1400,900",
            "--disable-dev-shm-usage",
        ]:
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
        run(
            "compile",
            "--nodes",
            nodes,
            "--message-bytes",
            blocks * 1000,
            "--block-bytes",
            1000,
            *([] if "--algorithm" in flags else ["--algorithm", "binomial_pipeline"]),
            *flags,
            "-o",
            self.path(name),
        )
        return self.path(name)

    def open(self, page, link=""):
        self.browser.get("about:blank")
        self.browser.get(f"file://{page}{link}")
        self.assertTrue(self.browser.execute_script("return prepost.ready"))

    def do(self, script, *arguments):
        """What was done before and what this does is shown at once,
        however slow frames and timers are here."""
        return self.browser.execute_script(
            f"const of = function () {{ {script} }}; prepost.finish();"
            " const it = of(...arguments); prepost.finish(); return it",
            *arguments,
        )

    def wait_for(self, script, *arguments):
        """Until `script` returns what is true, by frames and timers alone."""
        found = self.browser.execute_async_script(
            "const [done, given] = [arguments[arguments.length - 1], [...arguments].slice(0, -1)];"
            f"const of = function () {{ {script} }}; const end = performance.now() + 3000;"
            "const look = () => { const it = of(...given);"
            " if (it || performance.now() > end) done(it); else setTimeout(look, 20) };"
            "look()",
            *arguments,
        )
        self.assertTrue(found, script)
        return found

    def wait_for_none(self, script):
        """Until `script` returns an empty list, by frames and timers alone."""
        left = self.browser.execute_async_script(
            f"const of = () => {{ {script} }}; const end = performance.now() + 3000;"
            "const done = arguments[arguments.length - 1];"
            "const look = () => { const left = of();"
            " if (left.length === 0 || performance.now() > end) done(left);"
            " else setTimeout(look, 20) };"
            # What was drawn before is not what is shown: two frames later it is.
            "requestAnimationFrame(() => requestAnimationFrame(look))"
        )
        self.assertEqual(left, [])

    def note_drawing(self):
        """From the next page on, until the test ends."""
        noted = self.browser.execute_cdp_cmd(
            "Page.addScriptToEvaluateOnNewDocument", {"source": NOTE_DRAWING}
        )
        self.addCleanup(
            self.browser.execute_cdp_cmd, "Page.removeScriptToEvaluateOnNewDocument", noted
        )
        self.addCleanup(self.browser.set_window_size, *self.browser.get_window_size().values())

    def set_window(self, width, height):
        """The page itself has that size."""
        self.browser.set_window_size(width, height)
        more = self.browser.execute_script(
            "return [arguments[0] - innerWidth, arguments[1] - innerHeight]", width, height
        )
        self.browser.set_window_size(width + more[0], height + more[1])

    def point(self, element, x=0, y=0):
        ActionChains(self.browser, duration=0).move_to_element_with_offset(element, x, y).perform()

    def press(self, *keys):
        ActionChains(self.browser).send_keys(*keys).perform()

    def find(self, selector):
        self.do("")
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def both_ways(self):
        """That of docs/inspect.md: a plan with the runs of both executors."""
        if not self.path("ways.html").exists():
            run(
                "compile",
                "--nodes",
                8,
                "--message-bytes",
                "4MiB",
                "--block-bytes",
                "512KiB",
                "--algorithm",
                "binomial_pipeline",
                "-o",
                self.path("eight.json"),
            )
            for executor in ["cpu", "offload"]:
                run(
                    "simulate",
                    "eight.json",
                    "--profile",
                    "fractus",
                    "--wait",
                    "interrupt",
                    "--executor",
                    executor,
                    "--trace",
                    f"{executor}.json",
                    folder=self.folder.name,
                )
            run(
                "draw",
                self.path("eight.json"),
                "--simulation",
                self.path("cpu.json"),
                "--against",
                self.path("offload.json"),
                "-o",
                self.path("ways.html"),
            )
        return self.path("ways.html")

    def expect_quiet(self):
        self.assertEqual(
            [it for it in self.browser.get_log("browser") if it["level"] in ("WARNING", "SEVERE")],
            [],
        )

    def test_every_view_of_ten_plans_opens(self):
        for nodes, blocks, flags in PLANS:
            with self.subTest(nodes=nodes, flags=flags):
                plan = self.compile("plan.json", nodes, blocks, flags)
                run(
                    "draw",
                    plan,
                    *(["--engine", "nic"] if nodes > 100 else []),
                    "-o",
                    self.path("page.html"),
                )
                self.open(self.path("page.html"))
                for view in VIEWS:
                    self.do("prepost.setView(arguments[0])", view)
                    self.assertEqual(self.do("return prepost.search('node 0')"), "")
                    self.assertEqual(self.do("return prepost.state().views[0]"), view)
                    if view == "queues":
                        entries = self.do("return document.querySelectorAll('.entry').length")
                        self.assertGreater(entries, 0)
                    self.expect_quiet()
                self.assertEqual(
                    self.do("return performance.getEntriesByType('resource').length"), 0
                )
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
        for nodes, blocks, flags in PLANS[1:9]:
            plan = self.compile("plan.json", nodes, blocks, flags)
            run("draw", plan, "--engine", "cpu", "-o", self.path("page.html"))
            self.open(self.path("page.html"))
            programs = {it["node"]: it["ops"] for it in json.loads(plan.read_text())["programs"]}
            ops = [f"{node}/{i}" for node, of_node in programs.items() for i in range(len(of_node))]
            channels = json.loads(plan.read_text())["channels"]
            messages = [
                f"{channels[op['channel']]['from']}>{channels[op['channel']]['to']}:{op['block']}"
                for of_node in programs.values()
                for op in of_node
                if op["op"] == "send" and op["block"] is not None
            ]
            for what in [
                *chosen.sample(ops, min(5, len(ops))),
                *chosen.sample(messages, min(2, len(messages))),
                str(chosen.randrange(nodes)),
                str(nodes - 1),
            ]:
                with self.subTest(nodes=nodes, flags=flags, what=what):
                    lines = run("explain", plan, what).splitlines()[:-2]
                    self.assertEqual(
                        self.do("return prepost.explain(arguments[0])", what)
                        .rstrip("\n")
                        .splitlines(),
                        lines,
                    )
        self.expect_quiet()

    def collective(self, flags):
        """A page of such a collective; its plan, its ops by node."""
        plan = self.path("collective.json")
        self.path(SIZES).write_text("4 0 3000 1\n2 2 2 2\n0 0 0 7\n8 1 3 2048\n")
        size = [] if flags[0] == "barrier" else ["--block-bytes", "1KiB"]
        run(
            "compile",
            "--collective",
            *flags,
            *size,
            "--encoding",
            "rows",
            "-o",
            plan,
            folder=self.folder.name,
        )
        run("draw", plan, "-o", self.path("page.html"))
        self.open(self.path("page.html"))
        read = json.loads(plan.read_text())
        return read, {it["node"]: it["ops"] for it in read["programs"]}

    @staticmethod
    def contributions(plan, programs):
        """By node and block: the sets of what is there, at first (round -1) and after each receive,
        with its round; who wants what."""
        kind, nodes, blocks = plan["collective"], plan["nodes"], plan["message"]["blocks"]
        members = nodes - plan.get("helpers", 0)
        part = [block // (blocks // plan["message"].get("parts", 1)) for block in range(blocks)]
        has = {
            "scatter": lambda n, p: n == plan["root"],
            "allgather": lambda n, p: n == p,
            "gather": lambda n, p: n == p,
            "alltoall": lambda n, p: p // members == n,
        }.get(kind, lambda n, p: True)
        wants = {
            "reduce": lambda n, p: n == plan["root"],
            "gather": lambda n, p: n == plan["root"],
            "reduce_scatter": lambda n, p: n == p,
            "scatter": lambda n, p: n == p,
            "alltoall": lambda n, p: p % members == n,
        }.get(kind, lambda n, p: True)
        there = [
            [
                [(-1, frozenset([n] if n < members and has(n, part[b]) else []))]
                for b in range(blocks)
            ]
            for n in range(nodes)
        ]
        queues, left = {}, {node: list(ops) for node, ops in programs.items()}
        while any(left.values()):
            before = sum(map(len, left.values()))
            for node, ops in left.items():
                while ops:
                    op = ops[0]
                    queue = queues.setdefault(op["channel"], [])
                    span = (
                        []
                        if op["block"] is None
                        else range(op["block"], op["block"] + op.get("count", 1))
                    )
                    if op["op"] == "send":
                        queue.append([there[node][b][-1][1] for b in span])
                    elif not queue:
                        break
                    else:
                        for b, value in zip(span, queue.pop(0)):
                            own = there[node][b][-1][1] if op["op"] == "combine" else frozenset()
                            there[node][b].append((op["round"], own | value))
                    ops.pop(0)
            assert sum(map(len, left.values())) < before
        return there, [
            [n < members and wants(n, part[b]) for b in range(blocks)] for n in range(nodes)
        ]

    # Catches a final value that lacks a contribution, one that is called final too late, and ranges
    # of which one block counts.
    def test_what_nodes_have_of_a_collective(self):
        for flags in COLLECTIVES:
            plan, programs = self.collective(flags)
            there, wanted = self.contributions(plan, programs)
            combines = "combine" in plan
            for clock in range(plan["rounds"] + 1):
                with self.subTest(flags=flags, clock=clock):
                    figures = self.do(
                        "prepost.setClock(arguments[0]); return prepost.figures().sides[0]", clock
                    )
                    expected = []
                    for node, of_node in enumerate(there):
                        text = ""
                        for block, values in enumerate(of_node):
                            now = [value for round, value in values if round < clock]
                            all_of = frozenset(range(plan["nodes"])) if combines else values[-1][1]
                            if wanted[node][block] and now[-1] == all_of != frozenset():
                                text += "3"
                            else:
                                text += "2" if len(now) > 1 else "1" if now[0] else "0"
                        expected.append(text)
                    self.assertEqual(figures["values"], expected)
                    received = [
                        sum(round < clock for values in of_node for round, _ in values[1:])
                        for of_node in there
                    ]
                    self.assertEqual(figures["held"], received)
            self.assertIn("100.0 % of what is received is in place", self.find(".now").text)
        self.expect_quiet()

    # Catches words of roots, plain receives where there are combines,
    # and expressions in the order of another plan.
    def test_its_words_on_collectives_are_those_of_explain(self):
        print(f"seed {SEED}")
        chosen = random.Random(SEED)
        for flags in COLLECTIVES:
            plan, programs = self.collective(flags)
            ops = [(node, i) for node, of_node in programs.items() for i in range(len(of_node))]
            combines = [(node, i) for node, i in ops if programs[node][i]["op"] == "combine"]
            channels = plan["channels"]
            ends = [
                (
                    channels[op["channel"]]["from"],
                    channels[op["channel"]]["to"],
                    op["block"],
                    op.get("count", 1),
                )
                for of_node in programs.values()
                for op in of_node
                if op["op"] == "send" and op["block"] is not None
            ]
            messages = [
                f"{a}>{b}:{first}" + ("" if count == 1 else f"-{first + count - 1}")
                for a, b, first, count in ends
                if sum(
                    it[:2] == (a, b) and it[2] < first + count and first < it[2] + it[3]
                    for it in ends
                )
                == 1
            ]
            blocks = range(plan["message"]["blocks"])
            for what in [
                *(
                    f"{node}/{i}"
                    for node, i in chosen.sample(ops, 6)
                    + chosen.sample(combines, min(4, len(combines)))
                ),
                *chosen.sample(messages, min(3, len(messages))),
                *map(str, range(2)),
                *(f":{it}" for it in chosen.sample(blocks, min(3, len(blocks)))),
            ]:
                with self.subTest(flags=flags, what=what):
                    text = run("explain", self.path("collective.json"), what)
                    lines = re.sub(r"\n  fingerprint \w+, of", ", of", text).splitlines()
                    lines = (
                        lines[: 2 + sum(it.startswith("  at ") for it in lines)]
                        if what.startswith(":")
                        else lines[:-2]
                    )
                    said = (
                        self.do("return prepost.explain(arguments[0])", what)
                        .replace(", some of them twice", "")
                        .rstrip("\n")
                        .splitlines()
                    )
                    self.assertEqual(said, lines)
        self.expect_quiet()

    def test_every_view_of_every_collective(self):
        for flags in COLLECTIVES:
            with self.subTest(flags=flags):
                plan, programs = self.collective(flags)
                self.assertEqual(
                    self.do(
                        "return [...document.querySelectorAll('.pane:first-child [role=tab]')]"
                        ".map((it) => it.dataset.view)"
                    ),
                    ["grid", "tree", "graph"],
                )
                facts = self.find(".facts").text
                self.assertIn(plan["collective"], facts)
                self.assertEqual(
                    "root" in facts, plan["collective"] in ("reduce", "gather", "scatter")
                )
                for view in ["grid", "tree", "graph"]:
                    self.do("prepost.setView(arguments[0])", view)
                    for what in ["node 0", "block 0", f"{plan['nodes'] - 1}/0"]:
                        self.assertEqual(self.do("return prepost.search(arguments[0])", what), "")
                        link = self.do("return prepost.state().link")
                    if view == "tree":
                        self.assertEqual(
                            "how the value at node" in self.find(".pane:first-child").text,
                            "combine" in plan,
                        )
                self.expect_quiet()
                text = self.find("main").text
                self.assertEqual("combine" in text, "combine" in plan)
                self.open(self.path("page.html"), f"#{link}")
                self.assertEqual(
                    self.do("return prepost.state().selected"), f"{plan['nodes'] - 1}/0"
                )
                stats = json.loads(run("stats", self.path("collective.json"), "--json"))
                figures = self.do("return prepost.figures().sides[0]")
                self.assertEqual(
                    (figures["ops"], figures["credits"], figures["rounds"]),
                    (stats["ops"], stats["credits"], stats["rounds"]),
                )
                self.assertEqual(sum(figures["held"]), stats["block_transfers"])

    def test_a_click_on_a_combine(self):
        plan, _ = self.collective(COLLECTIVES[1])
        self.do("prepost.setView('grid')")
        canvas = self.find(".pane:first-child canvas")
        x = 160 - canvas.size["width"] // 2  # in the first round
        ActionChains(self.browser, duration=0).move_to_element_with_offset(
            canvas, x, 40 - canvas.size["height"] // 2
        ).click().perform()
        self.assertEqual(self.do("return prepost.state().selected"), "3>0:2")
        panel = self.find(".details").text
        for words in [
            "node 0 op 1 (combine 3>0:2)",
            "block 2 is then x0+x3: 2 of 4 contributions",
            "chain back to the start",
        ]:
            self.assertIn(words, panel)
        self.do("prepost.setClock(0); prepost.search('block 2')")
        panel = self.find(".details").text
        for words in [
            "from nodes 0 to 3, for nodes 0 to 3; 6 messages",
            "its own contribution at 4 nodes: 0, 1, 2, 3",
            "and is combined",
        ]:
            self.assertIn(words, panel)
        self.do("prepost.setClock(6)")
        self.assertIn("final at 4 nodes: 0, 1, 2, 3", self.find(".details").text)
        self.expect_quiet()

    def test_two_collectives_show_what_differs(self):
        """Also where one message looks like another of its channel, and carries several blocks."""
        sends = []
        for name, flags in (
            ("one.json", COLLECTIVES[1]),
            ("two.json", [*COLLECTIVES[1][:3], "--algorithm", "doubling", *COLLECTIVES[1][5:]]),
        ):
            run(
                "compile",
                "--collective",
                *flags,
                "--block-bytes",
                "1KiB",
                "--encoding",
                "rows",
                "-o",
                self.path(name),
            )
            plan = json.loads(self.path(name).read_text())
            found = {}
            for program in plan["programs"]:
                for op in program["ops"]:
                    if op["op"] == "send" and op["block"] is not None:
                        found.setdefault(
                            (op["channel"], program["node"], op["block"], op.get("count", 1)), []
                        ).append(op["round"])
            ends = plan["channels"]
            sends.append(
                {
                    ((ends[channel]["from"], ends[channel]["to"]), block, count): rounds
                    for (channel, _, block, count), rounds in found.items()
                }
            )
        run(
            "draw",
            self.path("one.json"),
            "--against",
            self.path("two.json"),
            "-o",
            self.path("page.html"),
        )
        self.open(self.path("page.html"))
        one, two = sends
        expected = 0
        for key in {**one, **two}:
            a, b = one.get(key, []), two.get(key, [])
            expected += abs(len(a) - len(b)) + 2 * sum(x != y for x, y in zip(a, b))
        self.assertEqual(self.do("return prepost.figures().different"), expected)
        multicast = self.compile("multicast.json", 4, 4)
        run("draw", self.path("one.json"), "--against", multicast, "-o", self.path("page.html"))
        self.open(self.path("page.html"))
        for view in [*VIEWS, "sides"]:
            self.do("prepost.setView(arguments[0])", view)
        self.assertIn("messages are not compared", self.find("main").text)
        self.do("prepost.setView('queues')")
        self.assertIn(
            "a plan of allreduce, and this takes plans of multicasts", self.find("main").text
        )
        self.expect_quiet()

    def test_what_no_page_has_of_collectives_is_refused(self):
        self.collective(COLLECTIVES[1])
        plan, page = self.path("collective.json"), self.path("refused.html")
        for flags in (["--view", "queues"], ["--engine", "cpu"], ["--mode", "managed"]):
            with self.subTest(flags=flags):
                done = subprocess.run(
                    [COMMAND, "draw", plan, *flags, "-o", page],
                    capture_output=True,
                    text=True,
                    check=False,
                )
                self.assertEqual(done.returncode, 1)
                self.assertRegex(
                    " ".join(done.stderr.split()),
                    "a plan of allreduce, and this takes plans of multicasts; .* are drawn of all$",
                )
                self.assertFalse(page.exists())

    def test_selection_filter_and_clock_come_back_by_the_link(self):
        plan = self.compile("plan.json", 8, 8)
        run("draw", plan, "-o", self.path("page.html"))
        self.open(self.path("page.html"))
        self.assertIn("0 to 9", self.do("return prepost.search('round 99')"))
        self.assertNotEqual(self.do("return prepost.search('node 8')"), "")
        self.assertEqual(self.do("return prepost.search('0>4:2')"), "")
        self.assertIn(
            "0 to 9",
            self.do(
                "try { prepost.setFilter({rounds: '10'}) } catch (error) { return error.message }"
            ),
        )
        self.do("prepost.setClock(4); prepost.setFilter({rounds: '2:6'}); prepost.setView('tree')")
        before = self.do("return prepost.state()")
        self.assertIn("0>4:2", self.do("return document.body.innerText"))
        link = self.do("return location.hash")
        self.open(self.path("page.html"), link)
        self.assertEqual(self.do("return prepost.state()"), before)
        self.expect_quiet()

    # Catches what is shown only when somebody asks for it.
    def test_frames_and_timers_come_by_themselves(self):
        self.open(self.both_ways(), "#view=timeline,grid&time=100000")
        self.browser.execute_script("prepost.setClock(200000); prepost.search('0>4:2')")
        for script in [
            "return document.querySelector('.now').textContent.includes('200')",
            "return document.querySelector('.details h2').textContent === 'message 0>4:2'",
            "return location.hash.includes('at=')",
            "return document.body.innerText.includes('against rounds')",
        ]:
            self.wait_for(script)
        self.expect_quiet()

    def test_links_hold_all_of_the_state(self):
        page = self.both_ways()
        parts = [
            "view=queues,grid",
            "side=1",
            "at=0>4:2",
            "time=200000",
            "rounds=1:3",
            "nodes=1,2",
            "engine=cpu",
            "rows=links",
            "across=rounds",
            "keep=1>5:3",
            "dim=nothing",
            "speed=4",
            "theme=dark",
            "zoom.graph=0,4,0,5",
            "zoom.sides=g,1,5,2,6",
        ]
        self.open(page, "#" + "&".join(parts))
        self.assertEqual(sorted(self.do("return prepost.state().link").split("&")), sorted(parts))
        self.do("prepost.setView('graph')")  # which was hidden, and so had no size
        self.assertIn("zoom.graph=0,4,0,5", self.do("return prepost.state().link"))
        self.open(
            page, "#view=grid,foo&side=7&at=node 9&rounds=3&nodes=9&speed=3&zoom.grid=1&more=1"
        )
        said = self.find("#search-note").text
        for part in [
            "view: 'foo'",
            "side: '7'",
            "at: there is no node 9",
            "nodes: there is no node 9",
            "speed: '3'",
            "zoom.grid: '1'",
            "more:",
        ]:
            self.assertIn(f"the link's {part}", said)
        self.assertEqual(
            self.do("return prepost.state().filter"), {"rounds": "3", "nodes": "", "blocks": ""}
        )
        self.expect_quiet()

    def test_what_is_pointed_at_is_explained(self):
        self.open(self.both_ways())
        self.do("prepost.search('0>4:2')")
        for view in [*VIEWS, "timeline", "sides"]:
            self.do("prepost.setView(arguments[0])", view)
            stage = self.find(
                ".pane:first-child .entry" if view == "queues" else ".pane:first-child canvas"
            )
            x = (
                0 if view in ("queues", "tree") else 30 - stage.size["width"] // 2
            )  # where nodes are named
            for y in [0] if view == "queues" else range(-60, 150, 12):
                self.point(stage, x, y)
                target = self.do("return prepost.state().hovered")
                if target not in (None, "0>4:2"):
                    break
            with self.subTest(view=view):
                self.assertNotIn(target, (None, "0>4:2"))
                self.assertTrue(self.find(".details h2").text.endswith(target))
                self.assertIn("selected: message 0>4:2", self.find(".details").text)
        self.point(
            self.browser.find_elements(By.CSS_SELECTOR, ".details .lines .link")[1]
        )  # links there are pointed at, and the text stays
        self.assertNotIn(self.do("return prepost.state().hovered"), (None, target))
        self.assertTrue(self.find(".details h2").text.endswith(target))
        self.point(self.find("h1"))
        self.assertEqual(self.find(".details h2").text, "message 0>4:2")
        self.expect_quiet()

    def test_every_view_marks_what_is_pointed_at(self):
        """Of each kind: all canvases look other than before."""
        self.open(self.both_ways(), "#view=tree,graph&at=0>4:2&zoom.sides=g,")
        pictures = "[...document.querySelectorAll('canvas')].map((it) => it.toDataURL())"
        for views in [("tree", "graph"), ("sides", "grid"), ("timeline", "sides")]:
            if "timeline" in views:
                self.open(self.both_ways(), "#view=timeline,sides&at=0>4:2")
            for view in reversed(views):
                self.do("prepost.setView(arguments[0]); prepost.point('')", view)
            self.assertEqual(self.do(f"window.before = {pictures}; return before.length"), 2)
            for what in ["node 5", "round 3", "4/6", "0>4", "credit 5>4", "nic 0 queue 3 entry 1"]:
                self.do("prepost.point(arguments[0])", what)
                with self.subTest(views=views, what=what):
                    self.assertEqual(
                        self.do(f"return {pictures}.map((it, i) => it !== before[i])"), [True, True]
                    )
        self.do("prepost.setView('queues')")
        for what, count in [
            ("node 1", 12),
            ("round 3", 1),
            ("block 2", 1),
            ("0>4", 3),
            ("0>4:2", 1),
            ("0/5", 1),
        ]:
            self.do("prepost.point(arguments[0])", what)
            self.assertGreaterEqual(
                self.do("return document.querySelectorAll('.entries li.hovered').length"),
                count,
                what,
            )
        self.expect_quiet()

    def test_keys(self):
        self.open(self.both_ways(), "#view=grid,tree&at=0>4:2")
        for _ in range(30):
            self.press(Keys.TAB)
            if self.do("return document.activeElement.tagName") == "CANVAS":
                break
        state = lambda: self.do("return prepost.state()")  # noqa: E731
        self.press("+", "+")
        zoomed = state()["zoom"]["grid"]
        ActionChains(self.browser).key_down(Keys.SHIFT).send_keys(Keys.ARROW_RIGHT).key_up(
            Keys.SHIFT
        ).perform()
        self.assertNotIn(state()["zoom"]["grid"], ("", zoomed))
        self.press("0")
        self.assertEqual(state()["zoom"]["grid"], "")
        for key, clock in [
            (Keys.HOME, 0),
            (Keys.ARROW_RIGHT, 1),
            (Keys.ARROW_RIGHT, 2),
            (Keys.ARROW_LEFT, 1),
            (Keys.END, 10),
        ]:
            self.press(key)
            self.assertEqual(state()["clock"]["value"], clock)
        for playing in [True, False]:
            self.press(" ")
            self.assertEqual(state()["playing"], playing)
        self.press(Keys.ESCAPE)
        self.assertIsNone(state()["selected"])
        self.press("/")
        self.assertTrue(self.do("return document.activeElement.matches('.search input')"))
        self.expect_quiet()

    def test_a_filter_that_is_refused_leaves_the_last_one(self):
        self.open(self.both_ways())
        nodes = self.find("input[aria-label='Only nodes']")
        nodes.send_keys("1,2", Keys.ENTER, ",9", Keys.TAB)
        self.assertEqual(
            (nodes.get_attribute("aria-invalid"), nodes.get_attribute("value")), ("true", "1,2,9")
        )
        self.assertEqual(
            self.find("#search-note").text,
            "nodes: there is no node 9, the nodes are 0 to 7; 1,2 stays in force",
        )
        self.assertEqual(self.do("return prepost.state().filter.nodes"), "1,2")
        nodes.send_keys(Keys.BACKSPACE, "3", Keys.ENTER)
        self.assertEqual(
            (nodes.get_attribute("aria-invalid"), self.find("#search-note").text), ("false", "")
        )
        self.assertEqual(self.do("return prepost.state().filter.nodes"), "1,2,3")

    def test_flags_say_what_is_shown_first(self):
        plan = self.compile("plan.json", 8, 8)
        run(
            "draw",
            plan,
            "--view",
            "queues",
            "--node",
            3,
            "--rounds",
            "2:4",
            "-o",
            self.path("page.html"),
        )
        self.open(self.path("page.html"))
        state = self.do("return prepost.state()")
        self.assertIn("queues", state["views"])
        self.assertEqual((state["filter"]["rounds"], state["selected"]), ("2:4", "node 3"))
        self.do("prepost.setView('graph')")
        self.assertIn("around node 3 in rounds 2 to 4", self.do("return document.body.innerText"))
        self.expect_quiet()

    def test_sides_of_other_sizes(self):
        small, large = self.compile("small.json", 4, 6), self.compile("large.json", 8, 8)
        for one, two in ((small, large), (large, small)):
            run("draw", one, "--against", two, "--node", 3, "-o", self.path("page.html"))
            self.open(self.path("page.html"))
            for view in [*VIEWS, "sides"]:
                self.do("prepost.setView(arguments[0]); prepost.setClock(3)", view)
            self.assertEqual(
                [len(it["held"]) for it in self.do("return prepost.figures().sides")],
                [4, 8] if one == small else [8, 4],
            )
            self.expect_quiet()
        node = subprocess.run(
            [
                COMMAND,
                "draw",
                large,
                "--against",
                small,
                "--node",
                "7",
                "-o",
                self.path("page.html"),
            ],
            check=False,
        )
        self.assertEqual(node.returncode, 0)  # of the larger alone

    def test_a_run_that_is_not_whole_says_so(self):
        plan = self.compile("plan.json", 5, 6)
        self.path("image").write_bytes(os.urandom(6000))
        run(
            "run",
            plan,
            "--input",
            self.path("image"),
            "--executor",
            "cpu",
            "--trace",
            self.path("whole.trace"),
        )
        trace = json.loads(self.path("whole.trace").read_text())
        trace["otherData"]["outcome"] = "node 3 is gone"
        trace["traceEvents"] = [
            it for it in trace["traceEvents"] if it["pid"] != 3 or it["ph"] == "M"
        ]
        self.path("part.trace").write_text(json.dumps(trace))
        run("draw", plan, "--trace", self.path("part.trace"), "-o", self.path("page.html"))
        self.open(self.path("page.html"))
        self.do("prepost.setView('timeline')")
        text = self.do("return document.body.innerText")
        for words in [
            "failed: node 3 is gone",
            "no trace of node 3",
            "18 of 24 receives of blocks are known",
        ]:
            self.assertIn(words, text)
        self.expect_quiet()

    # Catches sends that are charged for what they did not wait for,
    # against the same sums made here.
    def test_gaps_of_a_chain(self):
        plan = self.compile(
            "plan.json",
            4,
            8,
            ["--algorithm", "chain", "--ready", "barrier", "--send-window", "none"],
        )
        run(
            "simulate",
            plan,
            "--profile",
            "fractus",
            "--executor",
            "offload",
            "--trace",
            self.path("sim.trace"),
        )
        trace = json.loads(self.path("sim.trace").read_text())
        run("draw", plan, "--simulation", self.path("sim.trace"), "-o", self.path("page.html"))
        self.open(self.path("page.html"))
        ops = {
            (it["pid"], it["args"]["op"]): it["args"]
            for it in trace["traceEvents"]
            if it["ph"] == "X"
        }
        expected = {}
        for program in json.loads(plan.read_text())["programs"]:
            node = program["node"]
            received = {
                op["block"]: ops[node, i]["completed_ns"]
                for i, op in enumerate(program["ops"])
                if op["op"] == "recv"
            }
            before = None
            for i, op in enumerate(program["ops"]):
                if op["op"] != "send":
                    continue
                start = ops[node, i]["started_ns"]
                needs = ([(received[op["block"]], "Data")] if op["block"] in received else []) + (
                    [(before, "ChannelOrder")] if before is not None and before <= start else []
                )
                if needs:
                    end, why = max(needs, key=lambda it: (it[0], it[1] == "Data"))
                    expected.setdefault(why, []).append(max(0, start - end))
                before = ops[node, i]["completed_ns"]
        gaps = {
            it["kind"]: (it["count"], it["sum"])
            for it in self.do("return prepost.figures().sides[0].run.gaps")
        }
        self.assertEqual(
            gaps, {why: (len(values), sum(values)) for why, values in expected.items()}
        )

    def test_play_says_who_has_what(self):
        plan = self.compile("plan.json", 8, 4)
        run("draw", plan, "-o", self.path("page.html"))
        self.open(self.path("page.html"))
        held = [
            self.do("prepost.setClock(arguments[0]); return prepost.figures().sides[0].held", clock)
            for clock in range(7)
        ]
        self.assertEqual(held[0], [4] + [0] * 7)
        self.assertEqual(held[6], [4] * 8)
        for before, after in itertools.pairwise(held):
            self.assertTrue(all(a <= b for a, b in zip(before, after)))
        self.do("prepost.setClock(0); prepost.play()")
        self.wait_for("return prepost.state().clock.value > 0")
        self.do("prepost.pause()")
        self.expect_quiet()

    @staticmethod
    def times_of(plan, trace, step=1):
        """As prepost.figures() has them: by kind, how many are known and their weighted sum."""
        start, found, number = trace["otherData"]["start_ns"], {}, {}
        for program in json.loads(plan.read_text())["programs"]:
            for op in range(len(program["ops"])):
                number[program["node"], op] = len(number)
        for event in trace["traceEvents"]:
            if "op" in event.get("args", {}):
                found.setdefault((event["pid"], event["args"]["op"]), {}).update(event["args"])
        sums = {}
        for what in ("posted", "started", "completed"):
            times = [
                ((it[what + "_ns"] - start) // step * step, number[op] % 97 + 1)
                for op, it in found.items()
                if what + "_ns" in it
            ]
            sums[what] = [len(times), sum(time * weight for time, weight in times)]
        return sums

    # Catches times that a browser's numbers do not hold, and units that are forgotten.
    def test_times_of_months(self):
        plan = self.compile("plan.json", 4, 8, ["--algorithm", "chain"])
        run(
            "simulate",
            plan,
            "--profile",
            "fractus",
            "--executor",
            "cpu",
            "--trace",
            self.path("long.trace"),
        )
        trace = json.loads(self.path("long.trace").read_text())
        for args in [
            trace["otherData"],
            *(it["args"] for it in trace["traceEvents"] if "op" in it.get("args", {})),
        ]:
            for name in [it for it in args if it.endswith("_ns")]:
                args[name] *= 2**36 + 1
        self.path("long.trace").write_text(json.dumps(trace))
        run("draw", plan, "--trace", self.path("long.trace"), "-o", self.path("page.html"))
        self.open(self.path("page.html"))
        of_page = self.do("return prepost.figures().sides[0].run")
        self.assertGreater(of_page["step"], 1)
        for what, (count, total) in self.times_of(plan, trace, of_page["step"]).items():
            self.assertEqual(of_page["times"][what][0], count)
            self.assertAlmostEqual(of_page["times"][what][1] / total, 1, places=12)
        self.expect_quiet()

    # Catches views that keep what they drew before something changed while they were hidden.
    def test_what_changes_while_a_view_is_hidden(self):
        self.open(self.both_ways())
        picture = "return document.querySelector('.pane canvas').toDataURL()"
        change = "prepost.setFilter({blocks: '3'}); prepost.setClock(3); prepost.search('0>4:2')"
        marks = (
            "return ['now', 'out', 'selected']"
            ".map((it) => document.querySelectorAll(`.entries li.${it}`).length)"
        )

        def seen_after(view, first, seen):
            self.open(
                self.both_ways(), "#view=" + ("grid,tree" if view != "grid" else "graph,tree")
            )
            for name in [view, first]:
                self.do("prepost.setView(arguments[0])", name)
            self.do(change)
            self.do("prepost.setView(arguments[0])", view)
            return self.do(seen)

        for view, seen in [("grid", picture), ("timeline", picture), ("queues", marks)]:
            with self.subTest(view=view):
                self.assertEqual(seen_after(view, view, seen), seen_after(view, "tree", seen))
        self.expect_quiet()

    def test_figures_of_runs_are_those_of_their_traces(self):
        plan = self.compile("plan.json", 5, 6)
        self.path("image").write_bytes(os.urandom(6000))
        traces = {}
        for executor in ["cpu", "offload"]:
            run(
                "run",
                plan,
                "--input",
                self.path("image"),
                "--executor",
                executor,
                "--trace",
                self.path(executor + ".trace"),
            )
            traces[executor] = json.loads(self.path(executor + ".trace").read_text())
        run(
            "draw",
            plan,
            "--trace",
            self.path("cpu.trace"),
            "--against",
            self.path("offload.trace"),
            "-o",
            self.path("page.html"),
        )
        self.open(self.path("page.html"))
        self.do("prepost.setView('timeline')")
        runs = [it["run"] for it in self.do("return prepost.figures().sides")]
        self.assertEqual([it["executor"] for it in runs], ["cpu", "offload"])
        for of_page, trace in zip(runs, traces.values()):
            start = trace["otherData"]["start_ns"]
            ops = {
                (it["pid"], it["args"]["op"]): it["args"]
                for it in trace["traceEvents"]
                if it["ph"] == "X"
            }
            received = [
                it["args"]["completed_ns"]
                for it in trace["traceEvents"]
                if it["ph"] == "X" and it["cat"] == "recv" and "block" in it["args"]
            ]
            self.assertEqual(of_page["duration"], max(received) - start)
            self.assertEqual(of_page["posts"], sum(it["posted_ns"] > start for it in ops.values()))
            self.assertEqual(of_page["times"], self.times_of(plan, trace))
            self.assertEqual(of_page["step"], 1)
            wakeups = sum(len(it.get("wakeups_ns", [])) for it in trace["otherData"]["hosts"])
            self.assertEqual(of_page["wakeups"], wakeups)
            for strips in (of_page["strips"], of_page["roughStrips"]):
                self.assertAlmostEqual(strips["posts"], of_page["posts"], places=6)
                self.assertAlmostEqual(strips["wakeups"], wakeups, places=6)
                self.assertAlmostEqual(
                    strips["gaps"], sum(it["sum"] for it in of_page["gaps"]), delta=1
                )
        self.assertEqual(runs[1]["posts"], 0)
        self.assertGreater(runs[0]["posts"], 0)
        self.expect_quiet()

    # Catches times that are written against one receive and read against another, where a block
    # comes several times.
    def test_times_of_collectives_are_those_of_their_traces(self):
        for flags in [COLLECTIVES[i] for i in (1, 2, 5, 9, 11)]:
            with self.subTest(flags=flags):
                plan, _ = self.collective(flags)
                plan_file, trace_file = self.path("collective.json"), self.path("collective.trace")
                runs = [("simulate", plan_file, "--profile", "fractus", "--executor", "cpu")]
                if flags[0] in ("allreduce", "barrier"):
                    self.path("inputs").write_bytes(bytes(plan["message"]["bytes"] * plan["nodes"]))
                    runs.append(
                        (
                            "run",
                            plan_file,
                            *([] if flags[0] == "barrier" else ["--input", self.path("inputs")]),
                        )
                    )
                for words in runs:
                    run(*words, "--trace", trace_file)
                    trace = json.loads(trace_file.read_text())
                    run("draw", plan_file, "--trace", trace_file, "-o", self.path("page.html"))
                    self.open(self.path("page.html"))
                    self.do("prepost.setView('timeline')")
                    of_page = self.do("return prepost.figures().sides[0]")
                    self.assertEqual(of_page["run"]["times"], self.times_of(plan_file, trace))
                    self.do("prepost.search('node 1')")
                    self.assertIn("in the run it had its last", self.find(".details").text)
                self.expect_quiet()

    # Catches numbers of more than one digit in boxes that are as wide as one.
    def test_boxes_of_the_op_graph_have_their_blocks_at_first(self):
        self.note_drawing()
        plans = [
            self.compile(f"{nodes}x{blocks}.json", nodes, blocks, flags)
            for nodes, blocks, flags in [
                (8, 4, []),
                (8, 64, []),
                (8, 2000, ["--send-window", "none"]),
                (1024, 4, []),
                (64, 100, ["--algorithm", "chain"]),
            ]
        ]
        run(
            *["compile", "--collective", "allreduce", "--combine", "sum:int32", "--nodes", 8],
            *["--algorithm", "halving", "--message-bytes", "64KiB", "--block-bytes", "1KiB"],
            *["-o", self.path("many.json")],
        )
        for plan in [*plans, self.path("many.json")]:
            run("draw", plan, "--view", "graph", "--format", "html", "-o", self.path("page.html"))
            for width, height in WINDOWS:
                self.set_window(width, height)
                self.open(self.path("page.html"))
                with self.subTest(plan=plan.name, width=width):
                    self.wait_for_none(f"{BOXES} return empty")
                    self.assertGreater(self.do(f"{BOXES} return whole.length"), 3)
        self.expect_quiet()

    # Catches canvases that keep the size that they had before a text took one more line.
    def test_all_of_each_view_is_in_its_pane(self):
        self.note_drawing()
        for nodes, blocks, flags in [
            (8, 64, []),
            (1024, 4, []),
            (1024, 4, ["--algorithm", "chain"]),
        ]:
            plan = self.compile("plan.json", nodes, blocks, flags)
            run("draw", plan, "--view", "tree", "--format", "html", "-o", self.path("page.html"))
            for width, height in WINDOWS:
                self.set_window(width, height)
                for link in ["#view=tree,graph", "#view=grid,tree"]:
                    self.open(self.path("page.html"), link)
                    with self.subTest(nodes=nodes, flags=flags, width=width, link=link):
                        self.wait_for_none(f"{CUT_OFF} return cut")
                        seen = self.do(f"{CIRCLES} return [circles.length, inside.length]")
                        self.assertEqual(seen, [nodes, nodes])
                        said = "all is in view, zoom in for names" in self.find("main").text
                        self.assertEqual(said, nodes > 8)
                        # Texts become longer with another selection.
                        self.browser.execute_script(
                            "prepost.setFilter({rounds: '1:3'}); prepost.search('node 1')"
                        )
                        self.wait_for_none(f"{CUT_OFF} return cut")
        self.expect_quiet()

    # Catches names and figures of sides that are cut, and a second side below the end of its pane.
    def test_both_sides_are_whole_in_any_window(self):
        self.note_drawing()
        plans = {
            f"{name}-{nodes}": self.compile(f"{name}-{nodes}.json", nodes, blocks, flags)
            for nodes, blocks in [(8, 64), (1024, 4)]
            for name, flags in [("pipeline", []), ("tree", ["--algorithm", "kary_tree"])]
        }
        traces = {}
        for name, executor in [("pipeline", "cpu"), ("tree", "offload")]:
            for nodes in (8, 1024):
                traces[f"{name}-{nodes}"] = self.path(f"{name}-{nodes}.{executor}.trace")
                run(
                    *["simulate", plans[f"{name}-{nodes}"], "--profile", "fractus"],
                    *["--executor", executor, "--trace", traces[f"{name}-{nodes}"]],
                    *(["--wait", "interrupt"] if nodes == 8 else []),
                )
        for nodes in (8, 1024):
            one, two = f"pipeline-{nodes}", f"tree-{nodes}"
            for has_runs in (False, True):
                run(
                    *["draw", plans[one], "--against", plans[two]],
                    *(["--simulation", traces[one]] if has_runs else []),
                    *(["--against-trace", traces[two]] if has_runs else []),
                    *["--format", "html", "-o", self.path("page.html")],
                )
                for width, height in WINDOWS:
                    self.set_window(width, height)
                    self.open(self.path("page.html"))
                    with self.subTest(nodes=nodes, has_runs=has_runs, width=width, height=height):
                        self.wait_for_none(f"{CUT_OFF} return cut")
                        text = self.find(".sides").text
                        self.assertIn(plans[two].name, text)
                        if has_runs:
                            self.assertIn(traces[two].name, text)
                        is_cut, is_said = self.do(FIGURES_CUT)
                        self.assertEqual(is_said, is_cut)
        self.expect_quiet()

    def test_two_plans_show_what_differs(self):
        one = self.compile("one.json", 5, 4, ["--algorithm", "chain"])
        two = self.compile("two.json", 5, 4)
        run("draw", one, "--against", two, "-o", self.path("page.html"))
        self.open(self.path("page.html"))

        def transfers(plan):
            plan = json.loads(plan.read_text())
            channels = plan["channels"]
            return {
                (
                    channels[op["channel"]]["from"],
                    channels[op["channel"]]["to"],
                    op["block"],
                    op["round"],
                )
                for program in plan["programs"]
                for op in program["ops"]
                if op["op"] == "send" and op["block"] is not None
            }

        self.assertEqual(
            self.do("return prepost.figures().different"), len(transfers(one) ^ transfers(two))
        )
        self.expect_quiet()

    def test_its_blocks_have_the_colours_of_pictures(self):
        def scale(path, name):
            return re.findall(
                r"0x[0-9a-f]{2}", (SOURCE / path).read_text().partition(name)[2].partition(";")[0]
            )

        self.assertEqual(len(scale("viz/svg/palette.cc", "kBlockScale")), 30)
        self.assertEqual(
            scale("viz/page/src/palette.ts", "BLOCK_SCALE"),
            scale("viz/svg/palette.cc", "kBlockScale"),
        )

    def test_it_is_built_from_its_sources(self):
        folder = SOURCE / "viz/page"
        names = [
            "build.mjs",
            "package-lock.json",
            "tsconfig.json",
            *(f"src/{it.name}" for it in (folder / "src").iterdir()),
        ]
        digest = hashlib.sha256()
        for name in sorted(names):
            digest.update(f"{name}\n".encode() + (folder / name).read_bytes())
        self.assertIn(
            digest.hexdigest(),
            (folder / "dist/page.html").read_text(),
            "npm run build in viz/page makes it anew",
        )

    def expect_picture(self, golden, is_small=True):
        """They are compared at a quarter of the window's size, which a small one has."""
        self.browser.save_screenshot(str(self.path("seen.png")))
        seen = Image.open(self.path("seen.png")).convert("RGB")
        small = (seen.width // 4, seen.height // 4)
        if os.environ.get("PREPOST_UPDATE_GOLDEN"):
            golden.parent.mkdir(exist_ok=True)
            (seen.resize(small, Image.BOX) if is_small else seen).save(golden, optimize=True)
        both = [it.resize(small, Image.BOX) for it in (seen, Image.open(golden).convert("RGB"))]
        # Of the first pane, as a share of what is not its background, so that one that is blank is
        # not taken for the other.
        pane = (0, small[1] // 8, small[0] * 3 // 8, small[1] * 9 // 10)
        seen, expected = [it.crop(pane) for it in both]
        paper = Image.new("RGB", seen.size, expected.getpixel((seen.width - 3, seen.height - 3)))
        ink, difference = [
            sum(it > 40 for it in ImageChops.difference(expected, other).convert("L").tobytes())
            for other in (paper, seen)
        ]
        self.assertGreater(ink, 100, golden)
        self.assertLess(difference, 0.25 * ink, golden)

    def test_pictures(self):
        plan = self.compile("plan.json", 8, 4)
        run("draw", plan, "-o", self.path("page.html"))
        self.open(self.path("page.html"))
        for view in VIEWS:
            self.do(
                "prepost.setView(arguments[0]); prepost.search('node 5'); prepost.setClock(3)", view
            )
            self.expect_picture(GOLDEN / f"{view}.png")

    def test_picture_of_both_ways(self):
        self.open(self.both_ways())
        self.addCleanup(self.browser.set_window_size, *self.browser.get_window_size().values())
        self.browser.set_window_size(1400, 1040)
        self.do("prepost.setView('sides'); prepost.search('0>4:2')")
        self.expect_picture(SOURCE / "docs/images/page.png", is_small=False)
        self.expect_quiet()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
