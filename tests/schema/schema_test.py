# SPDX-License-Identifier: Apache-2.0
"""The shipped JSON Schemas and the command agree: what it writes validates, the examples validate
and compile, and files of a wrong form are refused by both."""
import copy
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

import jsonschema

COMMAND, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])


def schema(path):
    loaded = json.loads((SOURCE / path).read_text())
    jsonschema.Draft202012Validator.check_schema(loaded)
    return jsonschema.Draft202012Validator(loaded)


def run(*arguments, stdin=None):
    return subprocess.run([COMMAND, *arguments], input=stdin, capture_output=True, text=True)


def compile_plan(*arguments):
    done = run("compile", *arguments)
    assert done.returncode == 0, (arguments, done.stderr)
    return json.loads(done.stdout)


def removed_keys(document):
    for key in document:
        wrong = copy.deepcopy(document)
        del wrong[key]
        yield f"without {key}", wrong


def wrong_plans(plan):
    yield from removed_keys(plan)

    def changed(name, change):
        wrong = copy.deepcopy(plan)
        change(wrong)
        return name, wrong

    yield changed("unknown key", lambda p: p.update(extra=1))
    yield changed("unknown op key", lambda p: p["programs"][0]["ops"][0].update(extra=1))
    yield changed("op word", lambda p: p["programs"][0]["ops"][0].update(op="put"))
    yield changed("after is a number", lambda p: p["programs"][0]["ops"][0].update(after=1))
    yield changed("negative round", lambda p: p["programs"][0]["ops"][0].update(round=-1))
    yield changed("fractional block", lambda p: p["programs"][0]["ops"][0].update(block=0.5))
    yield changed("large block", lambda p: p["programs"][0]["ops"][0].update(block=2**32))
    yield changed("no lane", lambda p: p["channels"][0].pop("lane"))
    yield changed("lane 2", lambda p: p["channels"][0].update(lane=2))
    yield changed("mode", lambda p: p["ready"].update(mode="hope"))
    yield changed("version", lambda p: p.update(version="2.0"))
    yield changed("nodes is text", lambda p: p.update(nodes="2"))
    yield changed("channels is an object", lambda p: p.update(channels={}))


def wrong_columns(plan):
    """(name, what neither schema nor reader may accept) for a plan in columns with credits."""

    def changed(change):
        wrong = copy.deepcopy(plan)
        change(wrong, wrong["programs"][0])
        return wrong

    for key in ["op", "channel", "block", "round", "after_count"]:
        yield f"without {key}", changed(lambda p, g: g["columns"].pop(key))
    yield "both encodings", changed(lambda p, g: g.update(ops=[]))
    yield "no encoding", changed(lambda p, g: g.pop("columns"))
    yield "another letter", changed(
        lambda p, g: g["columns"].update(op="x" + g["columns"]["op"][1:])
    )
    yield "a null round", changed(lambda p, g: g["columns"]["round"].__setitem__(0, None))
    yield "a negative channel", changed(lambda p, g: g["columns"]["channel"].__setitem__(0, -1))
    yield "a fraction", changed(lambda p, g: g["columns"]["block"].__setitem__(0, 0.5))
    yield "a number too large", changed(lambda p, g: g["columns"]["after"].__setitem__(0, 2**32))
    yield "a column that is a number", changed(lambda p, g: g["columns"].update(round=1))
    yield "an unknown column", changed(lambda p, g: g["columns"].update(extra=[]))
    yield "no lanes", changed(lambda p, g: p["channels"].pop("lane"))
    yield "lane 2", changed(lambda p, g: p["channels"]["lane"].__setitem__(0, 2))


def check_encodings(algorithms, readies, plan_schema):
    """Columns and shards of all schedules: how many files validated.
    Catches a key that only the writer knows."""
    shard_schema, index_schema = schema("ir/json/plan_shard.schema.json"), schema(
        "ir/json/plan_index.schema.json"
    )
    files = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "shards"
        for algorithm, ready, nodes in itertools.product(algorithms, readies, [1, 6]):
            flags = [
                "--algorithm",
                algorithm,
                "--ready",
                ready,
                "--nodes",
                str(nodes),
                "--message-bytes",
                "25",
                "--block-bytes",
                "10",
            ]
            plan_schema.validate(compile_plan(*flags, "--encoding", "columns"))
            done = run("compile", *flags, "--encoding", "shards", "-o", str(folder))
            assert done.returncode == 0, (flags, done.stderr)
            index = json.loads((folder / "index.json").read_text())
            index_schema.validate(index)
            for shard in index["shards"]:
                shard_schema.validate(json.loads((folder / shard["file"]).read_text()))
            assert len(list(folder.iterdir())) == 1 + nodes
            files += 2 + nodes
    plan = compile_plan(
        "--nodes",
        "4",
        "--message-bytes",
        "30",
        "--block-bytes",
        "10",
        "--ready",
        "window=1",
        "--encoding",
        "columns",
    )
    for name, wrong in wrong_columns(plan):
        assert not plan_schema.is_valid(wrong), f"the schema accepts a plan: {name}"
        done = run("verify", "-", stdin=json.dumps(wrong))
        assert done.returncode == 1 and done.stderr.count("\n") == 1, (name, done)
    return files


def wrong_devices(device, limits):
    """Wrong profiles; `limits` are the schema's."""
    for key in ["format", "version", "name", "capabilities"]:
        yield f"without {key}", {key_: value for key_, value in device.items() if key_ != key}
    for key in device["capabilities"]:
        rest = {key_: value for key_, value in device["capabilities"].items() if key_ != key}
        yield f"without {key}", {**device, "capabilities": rest}
        for value in [1, "true", None, {}, {"value": 1}, {"value": True, "extra": 1}]:
            yield f"{key} {value}", {
                **device,
                "capabilities": {**device["capabilities"], key: value},
            }
    for key, (least, most) in limits.items():
        for value in [
            least - 1,
            most + 1,
            -1,
            4.5,
            "16",
            True,
            None,
            [],
            {},
            {"source": "a"},
            {"value": most + 1},
            {"value": least, "source": 7},
        ]:
            yield f"{key} {value}", {**device, "limits": {**device["limits"], key: value}}
    yield "unknown key", {**device, "extra": 1}
    yield "unknown limit", {**device, "limits": {"sq_wqebb": 16}}
    yield "limits is an array", {**device, "limits": []}
    yield "version", {**device, "version": "2.0"}
    yield "format", {**device, "format": "prepost.plan"}


def check_devices(plan):
    """Device profiles: how many files validated.
    Catches bounds that the reader and the schema do not share."""
    device_schema = schema("backends/nic/program/device_profile.schema.json")
    limits = {
        key: device_schema.schema["$defs"][limit["anyOf"][0]["$ref"].rsplit("/", 1)[1]]
        for key, limit in device_schema.schema["properties"]["limits"]["properties"].items()
    }
    limits = {key: (limit["minimum"], limit["maximum"]) for key, limit in limits.items()}
    paths = sorted((SOURCE / "examples" / "devices").glob("*.json"))
    assert len(paths) >= 2
    devices = [json.loads(path.read_text()) for path in paths]
    good = devices + [
        {**devices[0], "x-author": {"name": "someone"}},
        {**devices[0], "version": "1.1"},
    ]
    for key, bounds in limits.items():
        for value in bounds:
            good += [
                {**devices[0], "limits": {key: value}},
                {**devices[0], "limits": {key: {"value": value}}},
            ]
    with tempfile.TemporaryDirectory() as folder:
        plan_path = pathlib.Path(folder) / "plan.json"
        plan_path.write_text(json.dumps(plan))
        path = pathlib.Path(folder) / "device.json"
        for device in good:
            device_schema.validate(device)
            path.write_text(json.dumps(device))
            done = run("lower", str(plan_path), "--device-profile", str(path), "-o", "/dev/null")
            assert str(path) not in done.stderr.replace("warning: " + str(path), ""), (
                device,
                done.stderr,
            )
        for name, device in wrong_devices(devices[0], limits):
            assert not device_schema.is_valid(
                device
            ), f"the schema accepts a device profile: {name}"
            path.write_text(json.dumps(device))
            done = run("lower", str(plan_path), "--device-profile", str(path))
            assert done.returncode == 1 and done.stderr.startswith(f"prepost: {path}:"), (
                name,
                done,
            )
    return len(good)


def wrong_rolled_plans(plan):
    """(name, what no schema may accept) for a rolled plan with segments."""

    def changed(change):
        wrong = copy.deepcopy(plan)
        change(wrong, wrong["programs"][0]["segments"][0])
        return wrong

    yield "a major version", changed(lambda p, s: p.update(version="2.0"))
    yield "no programs", changed(lambda p, s: p.pop("programs"))
    yield "no slots", changed(lambda p, s: s.update(slots=[]))
    yield "a fraction", changed(lambda p, s: s.update({"from": 0.5}))
    yield "a number too large", changed(lambda p, s: s.update({"to": 1 << 33}))
    yield "a divisor of 0", changed(lambda p, s: s.update({"to": {"k": 1, "over": 0}}))
    yield "another word", changed(lambda p, s: s.update(above="wrap"))
    yield "a send to nobody", changed(lambda p, s: s["slots"][0].update(send={"offset": 0}))
    yield "an unknown key", changed(lambda p, s: s.update(extra=1))
    yield "no blocks", changed(lambda p, s: s.update(blocks_min=0))
    yield "a send window from no block on", changed(lambda p, s: p.update(send_window_blocks_min=0))


def wrong_topologies(topology):
    for key in ["format", "version", "racks"]:
        yield f"without {key}", {key_: value for key_, value in topology.items() if key_ != key}
    for key, values in {
        "host_rate": [0, -1, "10Gb/s", "fast", True, None, []],
        "up_rate": [0, "0x1B/s"],
        "core_rate": [0],
        "rack_latency": [-1, "1h", True],
        "racks": [[], {}, "a", [{"name": "a"}]],
        "version": ["2.0"],
        "format": ["prepost.spec"],
        "uprate": [1],
        "overrides": [{}, [{"rate": 1}], [{"hosts": "node1"}]],
    }.items():
        for value in values:
            yield f"{key} {value}", {**topology, key: value}
    for key, value in [
        ("hosts", ""),
        ("hosts", {}),
        ("hosts", [1]),
        ("name", 1),
        ("up_rate", 0),
        ("extra", 1),
    ]:
        racks = copy.deepcopy(topology["racks"])
        racks[0][key] = value
        yield f"rack {key} {value}", {**topology, "racks": racks}


def check_topologies():
    """Topologies: how many files validated. Catches a key or unit that only one of reader,
    writer and schema knows."""
    topology_schema = schema("compiler/topology/topology.schema.json")
    folder = SOURCE / "examples" / "topologies"
    files = 0
    for path in sorted(folder.iterdir()):
        if path.suffix == ".json":
            topology_schema.validate(json.loads(path.read_text()))
        done = run("topology", str(path), "-o", "-")
        assert done.returncode == 0, (path, done.stderr)
        topology_schema.validate(json.loads(done.stdout))
        files += 1
    assert files >= 6
    topology = json.loads((folder / "slow-node.json").read_text())
    for good in [
        {"x-note": 1},
        {"version": "1.1"},
        {"host_rate": 1.5},
        {"host_rate": "1.5 GiB/s"},
        {"core_latency": 2},
        {"core_rate": "1e3kbit/s"},
        {"overrides": [{"hosts": ["node[1-2]", "node3"], "send_rate": 1}]},
    ]:
        topology_schema.validate({**topology, **good})
        done = run("topology", "-", stdin=json.dumps({**topology, **good}))
        assert done.returncode == 0, (good, done.stderr)
    for name, wrong in wrong_topologies(topology):
        assert not topology_schema.is_valid(wrong), f"the schema accepts a topology: {name}"
        done = run("topology", "-", "--from", "json", stdin=json.dumps(wrong))
        assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1, (
            name,
            done,
        )
    return files


def check_choice(spec, spec_schema):
    """What auto is in specs and rule files: how many files validated. Catches a form that only
    reader or schema knows."""
    for change in [
        {"algorithm": "auto"},
        {"block_bytes": "auto"},
        {"algorithm": "auto", "block_bytes": "auto"},
    ]:
        spec_schema.validate({**spec, **change})
        done = run("compile", "-", stdin=json.dumps({**spec, **change}))
        assert done.returncode == 0 and done.stderr.count("\n") == 1, (change, done)
    rules_schema = schema("compiler/choice/choice_rules.schema.json")
    path = SOURCE / "examples" / "rules" / "small.json"
    rules = json.loads(path.read_text())
    rules_schema.validate(rules)

    def choose(document):
        return run(
            "choose",
            "--nodes",
            "3",
            "--message-bytes",
            "1",
            "--rules",
            "-",
            stdin=json.dumps(document),
        )

    assert choose(rules).returncode == 0
    for rule in [
        {"block_bytes": 1, "nodes": [0, 1048576], "x-note": 1},
        {"algorithm": "kary_tree=3", "block_bytes": "auto"},
    ]:
        good = {**rules, "rules": [rule]}
        rules_schema.validate(good)
        assert choose(good).returncode == 0, rule
    for rule in [
        {},
        {"nodes": [1, 2]},
        {"algorithm": 1},
        {"block_bytes": 0},
        {"block_bytes": "1"},
        {"algorithm": "chain", "nodes": [1]},
        {"algorithm": "chain", "nodes": []},
        {"algorithm": "chain", "bytes": [1, 2, 3]},
        {"algorithm": "chain", "bytes": 1},
        {"algorithm": "chain", "nodes": [-1, 2]},
        {"algorithm": "chain", "nodes": [1, 1048577]},
        {"algorithm": "chain", "extra": 1},
    ]:
        wrong = {**rules, "rules": [rule]}
        assert not rules_schema.is_valid(wrong), f"the schema accepts a rule: {rule}"
        done = choose(wrong)
        assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1, (
            rule,
            done,
        )
    return 1


def check_rounds(plan_schema):
    """Files of rounds: how many files validated.
    Catches a form that only reader or schema knows."""
    rounds_schema = schema("compiler/rounds/rounds.schema.json")
    path = SOURCE / "examples" / "rounds" / "ring-4.json"
    rounds = json.loads(path.read_text())
    plan = compile_plan("--rounds", str(path))
    plan_schema.validate(plan)
    assert plan == compile_plan("--rounds", str(path.with_suffix(".txt")))
    assert plan["algorithm"] == "rounds"

    def compile_rounds(document):
        return run("compile", "--rounds", "-", stdin=json.dumps(document))

    bare = {key: value for key, value in rounds.items() if key not in ["nodes", "root", "blocks"]}
    for good in [
        rounds,
        bare,
        {**bare, "version": "1.1"},
        {**rounds, "rounds": [[], *rounds["rounds"], []]},
        {**bare, "nodes": 1, "blocks": 16777216, "rounds": []},
        {**bare, "rounds": [["00>1:000"]]},
        {
            **bare,
            "collective": "reduce",
            "combine": {"op": "sum", "type": "int8"},
            "rounds": [["0>1+0-3"], ["2>1+2", "2>1+3"], ["2>1+0-1"]],
        },
        {**bare, "collective": "allgather", "rounds": [["0>1:0", "1>0:1"]]},
    ]:
        rounds_schema.validate(good)
        assert compile_rounds(good).returncode == 0, good
    wrong = [
        {**bare, **change}
        for change in [
            {"nodes": 0},
            {"nodes": 1048577},
            {"nodes": "4"},
            {"root": -1},
            {"root": 1048576},
            {"root": None},
            {"blocks": 0},
            {"blocks": 16777217},
            {"blocks": 1.5},
            {"rounds": {}},
            {"rounds": ["0>1:0"]},
            {"rounds": [["0>1"]]},
            {"rounds": [["0>1:0 0>2:0"]]},
            {"rounds": [[" 0>1:0"]]},
            {"rounds": [["0>1-0"]]},
            {"rounds": [["0>1:0-"]]},
            {"collective": "sum"},
            {"collective": "reduce", "combine": "sum:int8"},
            {"collective": "reduce", "combine": {"op": "sum"}},
            {"collective": "reduce", "combine": {"op": "add", "type": "int8"}},
            {"rounds": [[["0>1:0"]]]},
            {"rounds": [[[0, 1, 0]]]},
            {"rounds": [[{"from": 0, "to": 1, "block": 0}]]},
            {"extra": 1},
            {"version": "2.0"},
            {"format": "prepost.spec"},
        ]
    ]
    for document in wrong + [
        document for name, document in removed_keys(bare) if "x-comment" not in name
    ]:
        assert not rounds_schema.is_valid(document), f"the schema accepts rounds: {document}"
        done = compile_rounds(document)
        assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1, (
            document,
            done,
        )
    return 2


def main():
    plan_schema = schema("ir/json/plan.schema.json")
    spec_schema = schema("compiler/spec.schema.json")
    files = 0

    algorithms = [
        "sequential",
        "chain",
        "kary_chain",
        "binomial_tree",
        "kary_tree=3",
        "binomial_pipeline",
        "circulant",
        "two_tree",
        "scatter_allgather",
        "rack_chain",
        "rack_hybrid",
        "rack_circulant",
    ]
    readies = ["auto", "barrier", "channel", "window=2", "retry"]
    for algorithm, ready, nodes, size in itertools.product(algorithms, readies, [1, 2, 6], [0, 25]):
        plan = compile_plan(
            "--algorithm",
            algorithm,
            "--ready",
            ready,
            "--nodes",
            str(nodes),
            "--message-bytes",
            str(size),
            "--block-bytes",
            "10",
            "--root",
            str(nodes - 1),
        )
        plan_schema.validate(plan)
        files += 1

    files += check_encodings(algorithms, readies, plan_schema)

    rolled_schema = schema("ir/json/rolled_plan.schema.json")
    rolled_algorithms = [algorithm for algorithm in algorithms if algorithm != "scatter_allgather"]
    for algorithm, ready, nodes in itertools.product(rolled_algorithms, readies, [1, 2, 3, 6, 8]):
        rolled_schema.validate(
            compile_plan(
                "--algorithm",
                algorithm,
                "--ready",
                ready,
                "--nodes",
                str(nodes),
                "--message-bytes",
                "any",
            )
        )
        files += 1
    rolled = compile_plan("--nodes", "5", "--message-bytes", "any")
    for name, wrong in wrong_rolled_plans(rolled):
        assert not rolled_schema.is_valid(wrong), f"the schema accepts a rolled plan: {name}"
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(json.dumps(wrong))
            file.flush()
            done = run("verify", file.name)
            assert done.returncode == 1 and done.stderr.count("\n") == 1, (name, done)

    plan = compile_plan("--nodes", "4", "--message-bytes", "30", "--block-bytes", "10")
    for name, wrong in wrong_plans(plan):
        assert not plan_schema.is_valid(wrong), f"the schema accepts a plan: {name}"
        done = run("verify", "-", stdin=json.dumps(wrong))
        assert done.returncode == 1 and done.stderr.count("\n") == 1, (name, done)

    extended = copy.deepcopy(plan)
    extended["x-author"] = {"name": "someone"}
    extended["programs"][0]["ops"][0]["x-colour"] = "red"
    plan_schema.validate(extended)
    assert run("verify", "-", stdin=json.dumps(extended)).returncode == 0

    specs = sorted((SOURCE / "examples" / "specs").glob("*.json"))
    assert specs
    for path in specs:
        spec_schema.validate(json.loads(path.read_text()))
        plan_schema.validate(compile_plan(str(path)))
        files += 1
    spec = json.loads(specs[0].read_text())
    for change in [
        {"nodes": 0},
        {"nodes": "8"},
        {"root": -1},
        {"block_bytes": 0},
        {"block_bytes": "automatic"},
        {"algorithm": "tree"},
        {"ready": "window"},
        {"send_window": 0},
        {"order": [-1]},
        {"topology": 1},
        {"extra": 1},
        {"version": "2.0"},
        {"format": "plan"},
        {"combine": "sum"},
        {"combine": "add:int8"},
        {"combine": {"op": "sum"}},
        {"combine": 1},
        {"algorithm": ""},
    ]:
        wrong = {**spec, **change}
        assert not spec_schema.is_valid(wrong), f"the schema accepts a spec with {change}"
        done = run("compile", "-", stdin=json.dumps(wrong))
        assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1, (
            change,
            done,
        )

    for combine in ["user_ordered:bfloat16", {"op": "min", "type": "int8"}]:
        sums = {
            "format": "prepost.spec",
            "version": "1.0",
            "collective": "allreduce",
            "nodes": 3,
            "message_bytes": 8,
            "combine": combine,
        }
        spec_schema.validate(sums)
        assert run("compile", "-", stdin=json.dumps(sums)).returncode == 0, combine

    files += check_devices(plan)
    files += check_topologies()
    files += check_choice(spec, spec_schema)
    files += check_rounds(plan_schema)

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "plan.json"
        assert run("compile", str(specs[0]), "-o", str(path)).returncode == 0
        plan_schema.validate(json.loads(path.read_text()))
        assert [entry.name for entry in pathlib.Path(folder).iterdir()] == ["plan.json"]
    print(f"{files} files validate")


main()
