#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How soon a page of `prepost draw -o x.html` shows something in a headless Chromium,
and how smoothly it pans.

    bench/page/run.py                              the sizes of docs/benchmarks.md
    bench/page/run.py --plans 64x256 --repeat 3    nodes x blocks; 64x256+run with simulated times
    bench/page/run.py --json FILE                  all samples

Each sample is a new browser. First picture and all: from the beginning of navigation to the page's
marks of these names. Frames: while the space-time grid is dragged to and fro for two seconds, and
with a run while the wheel zooms its timeline in and out, drawn by the processor (--disable-gpu).
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
COMMAND = SOURCE / "build/bench/bin/prepost"
PAN = """
const done = arguments[0], canvas = document.querySelector("canvas");
const box = canvas.getBoundingClientRect();
const send = (on, kind, dx) => on.dispatchEvent(new MouseEvent(kind, {
  bubbles: true, cancelable: true, view: window, button: 0,
  clientX: box.left + box.width / 2 + dx, clientY: box.top + box.height / 2}));
for (let i = 0; i < 4; ++i) {  // into the picture, so that there is somewhere to go
  canvas.dispatchEvent(new WheelEvent("wheel", {
    bubbles: true, cancelable: true, view: window, deltaY: -200,
    clientX: box.left + box.width / 2, clientY: box.top + box.height / 2}));
}
const frames = [], begin = performance.now(), places = new Set();
send(canvas, "mousedown", 0);
const step = (now) => {
  frames.push(now);
  if (performance.now() - begin > 2000) {
    send(window, "mouseup", 0);
    done([frames, places.size]);
    return;
  }
  places.add(JSON.stringify(prepost.state().zoom));
  send(window, "mousemove", Math.round(200 * Math.sin((now - begin) / 200)));
  requestAnimationFrame(step);
};
requestAnimationFrame(step);
"""
ZOOM = """
const done = arguments[0];
const canvas = [...document.querySelectorAll("canvas")].find(
  (it) => it.ariaLabel === "Timeline of the run");
const box = canvas.getBoundingClientRect();
const frames = [], begin = performance.now(), places = new Set();
const step = (now) => {
  frames.push(now);
  if (performance.now() - begin > 2000) { done([frames, places.size]); return; }
  places.add(prepost.state().zoom.timeline);
  canvas.dispatchEvent(new WheelEvent("wheel", {
    bubbles: true, cancelable: true, view: window,
    deltaY: Math.sin((now - begin) / 250) > 0 ? -30 : 30,
    clientX: box.left + box.width / 2, clientY: box.top + box.height / 2}));
  requestAnimationFrame(step);
};
requestAnimationFrame(step);
"""


def browser():
    options = webdriver.ChromeOptions()
    for flag in [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--window-size=1400,900",
        "--disable-dev-shm-usage",
    ]:
        options.add_argument(flag)
    options.binary_location = "/usr/bin/chromium"
    return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)


def frames_of(driver, script, what):
    frames, places = driver.execute_async_script(script)
    if places < 10:
        sys.exit(f"{what} does not follow the mouse")
    gaps = [after - before for before, after in zip(frames, frames[1:])]
    return 1000 * len(gaps) / (frames[-1] - frames[0]), max(gaps)


def measure(page, has_run):
    driver = browser()
    try:
        driver.set_script_timeout(120)
        driver.get(f"file://{page}")
        driver.execute_script("return prepost.ready")
        marks = driver.execute_script(
            "return performance.getEntriesByType('mark').map((it) => [it.name, it.startTime])"
        )
        times = dict(marks)
        driver.execute_async_script(
            "requestAnimationFrame(() => requestAnimationFrame(arguments[0]))"
        )
        frames, worst = frames_of(driver, PAN, "the grid")
        sample = {
            "first_ms": times["prepost-first-picture"],
            "all_ms": times["prepost-ready"],
            "frames_per_second": frames,
            "worst_frame_ms": worst,
        }
        if has_run:
            sample["zoom_frames_per_second"], sample["zoom_worst_frame_ms"] = frames_of(
                driver, ZOOM, "the timeline"
            )
        return sample
    finally:
        driver.quit()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--plans",
        default="8x8,64x256,256x1024,1024x1024,256x1024+run,1024x1024+run",
        help="nodes x blocks, +run: with a simulation of it, .. [%(default)s]",
    )
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path, help="write all samples here")
    flags = parser.parse_args()
    if not COMMAND.exists():
        sys.exit(
            f"{COMMAND} is missing: cmake --preset bench && cmake --build --preset bench --target"
            " prepost"
        )
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for size in flags.plans.split(","):
            shape, _, run = size.partition("+")
            nodes, blocks = map(int, shape.split("x"))
            plan, trace, page = f"{folder}/plan.json", f"{folder}/trace.json", f"{folder}/page.html"
            subprocess.run(
                [
                    COMMAND,
                    "compile",
                    "--nodes",
                    str(nodes),
                    "--message-bytes",
                    f"{blocks}MiB",
                    "--block-bytes",
                    "1MiB",
                    "--algorithm",
                    "binomial_pipeline",
                    "--ready",
                    "window=1",
                    "--encoding",
                    "columns",
                    "-o",
                    plan,
                ],
                check=True,
            )
            if run:
                subprocess.run(
                    [
                        COMMAND,
                        "simulate",
                        plan,
                        "--profile",
                        "fractus",
                        "--executor",
                        "cpu",
                        "--trace",
                        trace,
                    ],
                    check=True,
                    stdout=subprocess.DEVNULL,
                )
            began = time.monotonic()
            subprocess.run(
                [COMMAND, "draw", plan, *(["--simulation", trace] if run else []), "-o", page],
                check=True,
            )
            seconds = time.monotonic() - began
            samples = [measure(page, bool(run)) for _ in range(flags.repeat)]
            found.append(
                {
                    "nodes": nodes,
                    "blocks": blocks,
                    "run": bool(run),
                    "draw_seconds": seconds,
                    "page_bytes": pathlib.Path(page).stat().st_size,
                    "samples": samples,
                }
            )
            middle = {key: statistics.median(it[key] for it in samples) for key in samples[0]}
            print(
                f"{size}: {pathlib.Path(page).stat().st_size / 1e6:.2f} MB, drawn in"
                f" {seconds:.1f} s; first picture after {middle['first_ms']:.0f} ms, all after"
                f" {middle['all_ms']:.0f} ms, {middle['frames_per_second']:.0f} frames/s, the"
                f" longest {middle['worst_frame_ms']:.0f} ms"
                + (
                    f"; timeline {middle['zoom_frames_per_second']:.0f} frames/s,"
                    f" {middle['zoom_worst_frame_ms']:.0f} ms"
                    if run
                    else ""
                ),
                flush=True,
            )
    if flags.json:
        flags.json.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
