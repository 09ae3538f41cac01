# SPDX-License-Identifier: Apache-2.0
"""Traces of both executors: COMMAND SOURCE-FOLDER. They keep the rules of the format
(chrome_trace.py), validate against the shipped schema, and tell what the plan asks for: every op
once, in the plan's order. The rules themselves are tested with traces that break them."""
import copy
import decimal
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import jsonschema

import chrome_trace

COMMAND, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])


def run(*arguments, code=0):
    done = subprocess.run(
        [COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == code, (arguments, done)
    return done


def load(path):
    return json.loads(path.read_text(), parse_float=decimal.Decimal)


def slices_of(trace):
    """(node, op) -> event, each op once."""
    slices = {}
    for event in trace["traceEvents"]:
        if event["ph"] not in "XB":
            continue
        key = event["pid"], event["args"]["op"]
        assert key not in slices, event
        slices[key] = event
    return slices


def expect_tells_plan(trace, plan, executor):
    """Every op completed, is what the plan says, and started after what it waits for."""
    slices = slices_of(trace)
    receives = {}
    for program in plan["programs"]:
        for op_id, op in enumerate(program["ops"]):
            event = slices.pop((program["node"], op_id))
            args, channel = event["args"], plan["channels"][op["channel"]]
            size = op.get("count", 1)
            what = (
                "credit"
                if op["block"] is None
                else (
                    f"block {op['block']}"
                    if size == 1
                    else f"blocks {op['block']}-{op['block'] + size - 1}"
                )
            )
            assert (
                event["ph"] == "X"
                and event["cat"] == op["op"]
                and event["name"] == f"{op['op']} {what}"
            ), (event, op)
            assert (
                event["tid"] == op["channel"]
                and args["round"] == op["round"]
                and args.get("block") == op["block"]
                and args.get("count", 1) == size
            )
            assert args["peer"] == channel["to" if op["op"] == "send" else "from"], (event, op)
            assert args["posted_ns"] <= args["completed_ns"], event
            if op["op"] != "send":
                if op["block"] is not None or executor == "offload":
                    assert args["posted_ns"] <= args["started_ns"] <= args["completed_ns"], event
                receives.setdefault(op["channel"], []).append(event)
                for before in op["after"]:  # of a combine
                    assert (
                        slices_of(trace)[program["node"], before]["args"]["completed_ns"]
                        <= args["completed_ns"]
                    ), (event, before)
                continue
            assert args["posted_ns"] <= args["started_ns"] <= args["completed_ns"], event
            if executor == "offload":
                assert (
                    args["posted_ns"] <= trace["otherData"]["start_ns"] <= args["started_ns"]
                ), event
            for before in op["after"]:
                ends = next(
                    e
                    for e in trace["traceEvents"]
                    if e["ph"] == "X" and e["pid"] == program["node"] and e["args"]["op"] == before
                )["args"]["completed_ns"]
                assert ends <= args["started_ns"], (event, before)
    assert not slices, slices
    for program in plan["programs"]:
        for op_id, op in enumerate(program["ops"]):
            if op["op"] == "send":
                sent = next(
                    e
                    for e in trace["traceEvents"]
                    if e["ph"] == "X" and e["pid"] == program["node"] and e["args"]["op"] == op_id
                )
                assert (
                    sent["args"]["started_ns"]
                    <= receives[op["channel"]].pop(0)["args"]["completed_ns"]
                )


def expect_wakeups(trace, nodes):
    """Each host's are all there, in order, and after the start."""
    hosts = trace["otherData"]["hosts"]
    assert [host["node"] for host in hosts] == list(range(nodes)), hosts
    for host in hosts:
        times = host.get("wakeups_ns", [])
        assert len(times) == host["wakeups"] and times == sorted(times), host
        assert not times or times[0] >= trace["otherData"]["start_ns"], host


def wrong_traces(trace):
    """Each breaks one rule of the format."""

    def changed(name, change):
        wrong = copy.deepcopy(trace)
        change(wrong["traceEvents"], wrong)
        return name, wrong

    def first(events, phase):
        return next(event for event in events if event["ph"] == phase)

    def index(events, phase):
        return events.index(first(events, phase))

    def overlap(events, _):
        threads = {}
        for event in events:
            if event["ph"] == "X":
                before = threads.setdefault((event["pid"], event["tid"]), event)
                if before is not event:
                    before["dur"] = event["ts"] - before["ts"] + event["dur"] / 2
                    return
        assert False

    yield changed("slices that overlap", overlap)
    yield changed("negative duration", lambda e, _: first(e, "X").update(dur=-1))
    yield changed("duration is text", lambda e, _: first(e, "X").update(dur="1"))
    yield changed("no time", lambda e, _: first(e, "i").pop("ts"))
    yield changed("a phase that nobody knows", lambda e, _: first(e, "X").update(ph="?"))
    yield changed("an arrow without a beginning", lambda e, _: e.pop(index(e, "s")))
    yield changed("an arrow without an end", lambda e, _: e.pop(index(e, "f")))
    yield changed("an arrow out of its slice", lambda e, _: first(e, "s").update(ts=0))
    yield changed("two arrows of one id", lambda e, _: e.append(first(e, "s")))
    yield changed("an arrow to the next slice", lambda e, _: first(e, "f").pop("bp"))
    yield changed(
        "a thread without a name",
        lambda e, _: e.remove(next(x for x in e if x["name"] == "thread_name")),
    )
    yield changed(
        "a process without a name",
        lambda e, _: e.remove(next(x for x in e if x["name"] == "process_name")),
    )
    yield changed("an instant without a scope", lambda e, _: first(e, "i").pop("s"))
    yield changed("a node that is no number", lambda e, _: first(e, "X").update(pid="0"))
    yield changed("a key that ends the reading", lambda _, trace: trace.update(extra=1))
    yield "an array", trace["traceEvents"]


def main():
    schema = json.loads((SOURCE / "runtime/trace/trace.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    count = arrows = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        image, plan_path, path = folder / "image", folder / "plan.json", folder / "trace.json"
        for flags, inputs in [  # and how many parts all nodes' inputs have
            (["allreduce", "--algorithm", "halving", "--combine", "sum:float32"], 5),
            (["reduce", "--combine", "max:int8"], 5),
            (["reduce_scatter", "--combine", "xor:uint8"], 25),
            (["allgather"], 5),
            (["gather"], 5),
            (["scatter"], 5),
            (["alltoall", "--algorithm", "bruck"], 25),
            (["barrier"], 0),
        ]:
            run(
                "compile",
                "--collective",
                *flags,
                "--nodes",
                5,
                "--encoding",
                "rows",
                "-o",
                plan_path,
                *(["--message-bytes", 1000, "--block-bytes", 400] if inputs else []),
            )
            image.write_bytes(os.urandom(1000 * inputs))
            run("run", plan_path, *(["--input", image] if inputs else []), "--trace", path)
            trace = load(path)
            found = chrome_trace.problems(trace)
            assert not found, (flags, found[:5])
            validator.validate(json.loads(path.read_text()))
            expect_tells_plan(trace, json.loads(plan_path.read_text()), "cpu")
            expect_wakeups(trace, 5)
            assert (
                trace["otherData"]["plan"]["collective"] == flags[0]
                and trace["otherData"]["version"] == "1.3"
            )
            count += 1
        image.write_bytes(os.urandom(100_000))
        executors = [("cpu", "--transport", "tcp"), ("cpu", "--transport", "shm"), ("offload",)]
        cases = itertools.product(
            executors,
            [1, 2, 6],
            ["sequential", "binomial_pipeline"],
            [("auto", "auto"), ("barrier", "none"), ("channel", "1"), ("retry", "none")],
        )
        for (executor, *flags), nodes, algorithm, (ready, window) in cases:
            run(
                "compile",
                "--nodes",
                nodes,
                "--algorithm",
                algorithm,
                "--ready",
                ready,
                "--send-window",
                window,
                "--message",
                image,
                "--block-bytes",
                "13kB",
                "--root",
                nodes // 2,
                "-o",
                plan_path,
            )
            run("run", plan_path, "--input", image, "--executor", executor, *flags, "--trace", path)
            trace, plan = load(path), json.loads(plan_path.read_text())
            found = chrome_trace.problems(trace)
            assert not found, (executor, nodes, algorithm, ready, found[:5])
            validator.validate(json.loads(path.read_text()))
            expect_tells_plan(trace, plan, executor)
            expect_wakeups(trace, nodes)
            sends = [
                op for program in plan["programs"] for op in program["ops"] if op["op"] == "send"
            ]
            blocks = sum(op["block"] is not None for op in sends)
            drawn = sum(event["ph"] == "s" for event in trace["traceEvents"])
            if (
                plan["send_window"] == 1
            ):  # of blocks; sends of one channel that overlap have no arrow
                assert blocks <= drawn <= len(sends), (
                    executor,
                    algorithm,
                    nodes,
                    ready,
                    drawn,
                    blocks,
                )
            arrows += drawn
            count += 1
        assert sorted(entry.name for entry in folder.iterdir()) == [
            "image",
            "plan.json",
            "trace.json",
        ]

        for seed in (SOURCE / "tests/fuzz/seeds/trace").glob(
            "*.json"
        ):  # one of them of a run that failed
            found = chrome_trace.problems(load(seed))
            assert not found, (seed, found[:5])
            validator.validate(json.loads(seed.read_text()))
            count += 1

        wrong_count = 0
        for what, wrong in wrong_traces(trace):
            assert chrome_trace.problems(wrong), f"the rules accept {what}"
            wrong_count += 1
        for change in [{"executor": "gpu"}, {"version": "2.0"}, {"start_ns": 0}, {"extra": 1}]:
            wrong = json.loads(path.read_text())
            wrong["otherData"].update(change)
            assert not validator.is_valid(wrong), change
            path.write_text(json.dumps(wrong))
            if "executor" not in change:
                done = run("draw", plan_path, "--trace", path, code=1)
                assert done.stdout == "" and done.stderr.count("\n") == 1, done
    print(f"{count} traces with {arrows} arrows, {wrong_count} wrong ones")


main()
