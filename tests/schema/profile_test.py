# SPDX-License-Identifier: Apache-2.0
"""Profiles: the shipped ones and wrong ones, by the schema and by the reader, which must agree; and
docs/simulate.md has what is in the shipped ones."""
import copy
import json
import pathlib
import subprocess
import sys
import tempfile

import jsonschema

READER, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
SOURCES = ["paper", "data_sheet", "measured", "assumed"]


def read_all(documents):
    """What the reader says of each: "ok", or an error."""
    with tempfile.TemporaryDirectory() as name:
        paths = []
        for i, document in enumerate(documents):
            paths.append(pathlib.Path(name) / f"{i}.json")
            paths[-1].write_text(json.dumps(document))
        done = subprocess.run(
            [READER, *map(str, paths)], capture_output=True, text=True, check=True
        )
        lines = done.stdout.splitlines()
        assert len(lines) == len(documents), "one line for each"
        for path, line in zip(paths, lines):
            assert line == "ok" or line.startswith(f"{path}:"), line
        return lines


def values_of(part, schema_part, schema, path=()):
    """(path, name of its definition in the schema) of each sourced value."""
    for key, inner in part.items():
        if not isinstance(inner, dict):
            continue
        described = schema_part["properties"][key]
        if "value" in inner:
            yield (*path, key), described["$ref"].rsplit("/", 1)[1]
        else:
            yield from values_of(inner, described, schema, (*path, key))


def changed(document, path, change):
    document = copy.deepcopy(document)
    part = document
    for key in path[:-1]:
        part = part[key]
    change(part, path[-1])
    return document


def assign(value):
    def change(part, key):
        part[key] = value

    return change


def update(**more):
    def change(part, key):
        part[key].update(**more)

    return change


WRONG = {
    "time": [-1, 3600.5, "1", "us", "-1us", "1h", None, True, [], {}],
    "rate": [0, 0.5, 1.1e15, -1, "1", "100Gb/s", "-1bit/s", None, False, [], {}],
    "host_rate": [0, 0.5, 1.1e12, -1, "1", "100Gb/s", "-1bit/s", None, False, [], {}],
    "rack_hosts": [0, 2**20 + 1, -1, 1.5, "4", None, True, []],
    "cores": [0, 65537, -1, 1.5, "4", None, True, []],
    "neighbours": [-1, 1001, 1.5, "1", None, True, []],
    "oversubscription": [0.5, 1.1e6, -1, "2", None, True, []],
    "preemption_rate": [0, 1.1e6, -1, "2", None, True, []],
    "segment_bytes": [0, 2**30 + 1, 1.5, "4", None, []],
    "overhead_bytes": [-1, 65537, 1.5, "4", None, []],
    "port_sharing": ["per_pq", "", 1, None, []],
    "lengths": ["exponental", "", 1, None, []],
}
GOOD = {
    "time": [0, 3600, 1e-9, "0ns", "1.5 us", "3600s", "1e3ms"],
    "rate": [1, 1e15, 1.5, "8bit/s", "12.5 GB/s", "3KiB/s"],
    "host_rate": [1, 1e12, 1.5, "8bit/s", "12.5 GB/s", "8Tbit/s"],
    "rack_hosts": [1, 2**20],
    "cores": [1, 65536],
    "neighbours": [0, 1000],
    "oversubscription": [1, 3.5, 1e6],
    "preemption_rate": [1e-9, 0.5, 1e6],
    "segment_bytes": [1, 2**30],
    "overhead_bytes": [0, 65536],
    "port_sharing": ["per_qp", "fifo"],
    "lengths": ["fixed", "exponential"],
}


def full(profile):
    """`profile` (one with racks) with everything that may be left out."""

    def value(of=1):
        return {"value": of, "assumed": "for the test"}

    profile = copy.deepcopy(profile)
    profile["network"]["duplex"] = value()
    profile["network"]["racks"].update(down_rate=value(), core_rate=value())
    profile["host"].update(combine=value(), combine_rate=value())
    profile["host"]["preemption"] = {"rate": value(), "length": value(), "lengths": value("fixed")}
    profile["host"]["neighbours"] = {"count": value(), "slice": value()}
    profile["tcp"] = {
        "system_call": value(),
        "copy_rate": value(),
        "segment_bytes": value(),
        "segment_calls": value(),
    }
    profile["control"] = {"system_call": value(), "latency": value()}
    return profile


def variants(profile, schema):
    """(what, document, whether it is right)."""
    yield "full", profile, True
    yield "an extension", {**profile, "x-author": {"name": "someone"}}, True
    yield "a minor version", {**profile, "version": "1.7"}, True
    yield "a major version", {**profile, "version": "2.0"}, False
    yield "another format", {**profile, "format": "prepost.device"}, False
    yield "an unknown key", {**profile, "extra": 1}, False
    for key in profile:
        yield f"without {key}", {k: v for k, v in profile.items() if k != key}, key in (
            "tcp",
            "control",
        )
    # Without segment_bytes, segment_calls has no meaning.
    optional = {
        "segment_calls",
        "core_rate",
        "duplex",
        "doorbell_interval",
        "down_rate",
        "combine",
        "combine_rate",
    }
    used = set()
    for path, kind in values_of(profile, schema, schema):
        used.add(kind)
        what = "/".join(path)
        for value in GOOD[kind]:
            yield f"{what} = {value!r}", changed(profile, path, update(value=value)), True
        for value in WRONG[kind]:
            yield f"{what} = {value!r}", changed(profile, path, update(value=value)), False
        yield f"{what} plain", changed(profile, path, assign(1)), False
        yield f"{what} twice sourced", changed(
            profile, path, update(paper="a", measured="b")
        ), False
        yield f"{what} of unknown source", changed(profile, path, update(source="a")), False
        yield f"{what} with a note", changed(profile, path, update(**{"x-note": [1]})), True
        yield f"{what} gone", changed(profile, path, lambda p, k: p.pop(k)), path[-1] in optional
        for source in SOURCES:
            for where, right in [
                ("there", True),
                ("", False),
                (" \n", False),
                (7, False),
                (None, False),
                ("a" * 1025, False),
            ]:
                value = {"value": GOOD[kind][0], source: where}
                yield f"{what} {source} {where!r:.9}", changed(profile, path, assign(value)), right
        value = {"value": GOOD[kind][0]}
        yield f"{what} without source", changed(profile, path, assign(value)), False
    assert used == set(GOOD), "every kind of value is tried"
    for path in [
        ("network",),
        ("network", "racks"),
        ("nic",),
        ("host",),
        ("host", "preemption"),
        ("host", "neighbours"),
        ("tcp",),
        ("control",),
    ]:
        yield f"{path} is an array", changed(profile, path, assign([])), False
        yield f"{path} has an unknown key", changed(
            profile, path, update(wat={"value": 1, "assumed": "a"})
        ), False
    racks = profile["network"]["racks"]
    rate = {"value": 1, "assumed": "a"}
    yield "both uplinks", changed(profile, ("network", "racks"), update(up_rate=rate)), False
    only_rate = {k: v for k, v in racks.items() if k != "oversubscription"}
    yield "an uplink's rate", changed(
        profile, ("network", "racks"), assign({**only_rate, "up_rate": rate})
    ), True
    whole = {k: v for k, v in profile["tcp"].items() if not k.startswith("segment")}
    yield "blocks copied as a whole", changed(profile, ("tcp",), assign(whole)), True
    yield "one rack", changed(profile, ("network", "racks"), lambda p, k: p.pop(k)), True


def check_documentation():
    """The tables of docs/simulate.md are those that scripts/profile-tables writes now."""
    done = subprocess.run(
        [sys.executable, str(SOURCE / "scripts" / "profile-tables"), "--check"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def main():
    schema = json.loads((SOURCE / "sim/cluster/profile.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    paths = sorted((SOURCE / "examples" / "profiles").glob("*.json"))
    assert len(paths) >= 6
    profiles = {path.stem: json.loads(path.read_text()) for path in paths}
    cases = [(name, profile, True) for name, profile in profiles.items()]
    cases += variants(full(profiles["apt"]), schema)
    said = read_all([document for _, document, _ in cases])
    for (what, document, right), line in zip(cases, said):
        assert validator.is_valid(document) == right, f"the schema says otherwise: {what}"
        assert (line == "ok") == right, f"the reader says otherwise: {what}: {line}"
    check_documentation()
    print(f"{len(cases)} profiles, {sum(1 for _, _, right in cases if not right)} of them wrong")


main()
