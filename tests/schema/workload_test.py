# SPDX-License-Identifier: Apache-2.0
"""Workloads: the shipped ones and wrong ones, by the schema and by the command, which must agree
but where the schema cannot say what is wrong."""
import copy
import json
import pathlib
import subprocess
import sys
import tempfile

import jsonschema

COMMAND, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
PROFILE = str(SOURCE / "examples/profiles/fractus.json")
FULL = {
    "format": "prepost.workload",
    "version": "1.0",
    "name": "a test",
    "hosts": 6,
    "spec": {"algorithm": "chain", "block_bytes": 1000, "ready": "window=1"},
    "groups": [
        {"hosts": [3, 1], "spec": {"message_bytes": 2500}},
        {
            "spec": {
                "message_bytes": 4000,
                "nodes": 4,
                "root": 2,
                "send_window": None,
                "algorithm": "kary_tree=3",
            }
        },
        {"plan": "plan.json", "hosts": [5, 4, 0], "start": "1.5us"},
        {"hosts": [3, 1, 0], "spec": {"message_bytes": 0}, "start": 1e-5, "after": 0},
        {"spec": {"message_bytes": 10, "send_window": "auto"}, "after": 3},
    ],
}


def simulate(document, folder):
    """None when the command takes it, else what it says."""
    path = folder / "workload.json"
    path.write_text(json.dumps(document))
    done = subprocess.run(
        [
            COMMAND,
            "simulate",
            "--workload",
            str(path),
            "--profile",
            PROFILE,
            "--executor",
            "offload",
        ],
        capture_output=True,
        text=True,
    )
    if done.returncode == 0:
        return None
    assert done.returncode == 1 and done.stderr.count("\n") == 1, (document, done)
    assert "workload.json" in done.stderr, done.stderr
    return done.stderr


def changed(path, change):
    document = copy.deepcopy(FULL)
    part = document
    for key in path[:-1]:
        part = part[key]
    change(part, path[-1])
    return document


def put(path, value):
    def change(part, key):
        part[key] = value

    return changed(path, change)


def gone(path):
    return changed(path, lambda part, key: part.pop(key))


WRONG = {
    ("hosts",): [0, -1, 1.5, "6", None, 2**20 + 1, []],
    ("name",): [3, None, "a" * 257],
    ("spec",): [None, [], "chain", {"extra": 1}, {"topology": {}}, {"order": [0]}],
    ("spec", "algorithm"): ["chian", 3, None, "", "auto"],
    ("spec", "ready"): ["hope", "window=0", 1],
    ("groups",): [[], None, {}, [1], [{"extra": 1, "spec": {"message_bytes": 1}}]],
    ("groups", 0, "hosts"): [[], None, 3, [0.5, 1], [-1, 1], ["0", "1"], [[0], [1]]],
    ("groups", 0, "start"): [-1, "1", "-1us", None, True, 1000001, "1h", []],
    ("groups", 3, "after"): [-1, 0.5, "0", None, []],
    ("groups", 0, "plan"): ["plan.json", 3],
    ("groups", 0, "spec", "message_bytes"): [-1, "1", 0.5, None, 2**63],
    ("groups", 0, "spec", "block_bytes"): [0, "1MiB", None, "auto"],
    ("groups", 0, "spec", "send_window"): [0, "none", 2**32],
    ("groups", 1, "spec", "nodes"): [0, -1, 2**20 + 1, "4"],
    ("groups", 1, "spec", "root"): [-1, "0"],
    ("groups", 1, "spec", "collective"): ["allredcue", 1, None],
    ("groups", 1, "spec", "combine"): [
        "sum",
        "int32:sum",
        "sum:int33",
        1,
        None,
        {"op": "sum"},
        {"op": "sum", "type": "int32", "extra": 1},
    ],
    ("groups", 1, "spec", "deterministic"): [1, "yes", None],
    ("groups", 1, "spec", "part_bytes"): [[], 3, None, [-1], [[1, -1]], [[[1]]], ["1"]],
}
# What the schema cannot say.
BEYOND = [
    (put(("groups", 0, "hosts"), [3, 6]), "/groups/0/hosts: host 6, and the hosts are 0 to 5"),
    (put(("groups", 0, "hosts"), [3, 3]), "/groups/0/hosts: host 3 is there twice"),
    (put(("groups", 3, "after"), 3), "group 3 is no earlier one, this is group 3"),
    (put(("groups", 1, "hosts"), [3, 2]), "a spec of 4 nodes for 2 hosts"),
    (put(("groups", 2, "hosts"), [3, 2]), "group 2: a plan of 3 nodes for 2 hosts"),
    (put(("groups", 1, "spec", "nodes"), 7), "group 1: a plan of 7 nodes for 6 hosts"),
    (put(("groups", 1, "spec", "root"), 4), "/groups/1/spec/root: "),
    (put(("groups", 2, "plan"), "none.json"), "/groups/2/plan: "),
    (gone(("groups", 0, "spec", "message_bytes")), "/groups/0/spec/message_bytes: "),
    (put(("groups", 0, "spec", "message_bytes"), 2**61), "/groups/0/spec"),
    (
        {key: FULL[key] for key in ["format", "version", "hosts", "groups", "spec"]},
        "stands before them",
    ),
    (
        {
            **{key: value for key, value in FULL.items() if key != "spec"},
            "groups": [{"hosts": [0, 1]}],
        },
        "expected a plan or a spec, found none",
    ),
]


def generated(*flags):
    done = subprocess.run(
        [sys.executable, str(SOURCE / "bench/figures/cosmos_workload.py"), *flags],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def check_generator(validator, folder):
    """What bench/figures/cosmos_workload.py writes: a workload, the same for the same seed, with
    what is known of the trace."""
    one, again, other = (
        generated("--writes", "1365"),
        generated("--writes", "1365"),
        generated("--writes", "1365", "--seed", "2"),
    )
    assert one == again and one != other
    for document in [
        one,
        other,
        generated(
            "--writes", "9", "--per-second", "500", "--schedule", "chain", "--block-bytes", "65536"
        ),
    ]:
        validator.validate(document)
    sizes = sorted(group["spec"]["message_bytes"] for group in one["groups"])
    assert abs(sizes[len(sizes) // 2] / 12e6 - 1) < 0.02, sizes[len(sizes) // 2]
    assert abs(sum(sizes) / len(sizes) / 29e6 - 1) < 0.05, sum(sizes) / len(sizes)
    assert 200 <= sizes[0] < 1e6 and 1e8 < sizes[-1] <= 5e8
    targets = [tuple(group["hosts"]) for group in one["groups"]]
    assert len(set(targets)) == 455 and all(targets.count(target) == 3 for target in set(targets))
    assert all(hosts[0] == 0 and len(set(hosts)) == 4 and max(hosts) <= 15 for hosts in targets)
    poisson = generated("--writes", "2000", "--per-second", "500")
    starts = [group["start"] for group in poisson["groups"]]
    assert starts == sorted(starts) and abs(starts[-1] - 4) < 0.5, starts[-1]
    assert [group["spec"] for group in poisson["groups"]] == [
        group["spec"] for group in generated("--writes", "2000")["groups"]
    ]
    assert simulate(generated("--writes", "20"), folder) is None


def main():
    schema = json.loads((SOURCE / "sim/cluster/workload.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    shipped = sorted((SOURCE / "examples" / "workloads").glob("*.json"))
    assert shipped
    right = [json.loads(path.read_text()) for path in shipped]
    right += [
        FULL,
        {**FULL, "x-note": {"any": 1}},
        {**FULL, "version": "1.9"},
        gone(("name",)),
        gone(("groups", 0, "spec", "message_bytes")) | {"spec": {"message_bytes": 7}},
        put(("groups", 0, "start"), "2 ms"),
        put(("groups", 0, "start"), 0),
    ]
    wrong = [put(path, value) for path, values in WRONG.items() for value in values]
    wrong += [gone((key,)) for key in ["format", "version", "hosts", "groups"]]
    wrong += [{**FULL, "version": "2.0"}, {**FULL, "format": "prepost.plan"}, {**FULL, "extra": 1}]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run(
            [
                COMMAND,
                "compile",
                "--nodes",
                "3",
                "--message-bytes",
                "1000",
                "--block-bytes",
                "300",
                "-o",
                str(folder / "plan.json"),
            ],
            check=True,
        )
        for document in right:
            validator.validate(document)
            said = simulate(document, folder)
            assert said is None, said
        for document in wrong:
            assert not validator.is_valid(document), f"the schema accepts {document}"
            assert simulate(document, folder) is not None, f"the command accepts {document}"
        for document, words in BEYOND:
            said = simulate(document, folder)
            assert said is not None and words in said, (words, said)
        check_generator(validator, folder)
    print(f"{len(right)} workloads, {len(wrong) + len(BEYOND)} wrong ones")


main()
