#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the library exports: LIBRARY HEADERS, of include/prepost/.

Each function that a header declares and does not define, and nothing else. Catches a function that
the version script forgot, and internals that became an interface."""
import pathlib
import re
import subprocess
import sys

library, headers = sys.argv[1], pathlib.Path(sys.argv[2])


def code_of(text):
    """`text` without comments, directives, and values of default arguments in braces."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r"(?m)^\s*#(?:[^\n]*\\\n)*[^\n]*", "", text)
    return re.sub(r" = \{[^{}]*\}", "", text)


def members(text, name):
    """The functions that class `name` of `text` declares without a body,
    before its private part."""
    body = (
        re.search(r"class (?:\[\[\w+\]\] )?" + name + r" \{(.*?)\n\};", text, re.DOTALL)
        .group(1)
        .split("private:")[0]
    )
    while "{" in body:
        body = re.sub(r"\{[^{}]*\}", ";", body)
    return {
        f"prepost::{name}::{function}"
        for function in re.findall(r"(~?\w+)\([^;]*\)(?: const)?;", body)
    }


text = code_of((headers / "prepost.h").read_text() + (headers / "status.h").read_text())
declared = (
    members(text, "Session")
    | members(text, "MemoryPool")
    | members(text, "Status")
    | {"prepost::CheckFailed", "prepost::Status::kNothing"}
)
declared -= {"prepost::Session::Session", "prepost::MemoryPool::MemoryPool"}  # private or deleted
if (headers / "prepost_c.h").exists():
    declared |= set(
        re.findall(
            r"\b(prepost_\w+)\((?:[^;{}()]|\([^()]*\))*\);",
            code_of((headers / "prepost_c.h").read_text()),
        )
    )
listed = subprocess.run(
    ["nm", "-DC", "--defined-only", library], capture_output=True, text=True, check=True
).stdout
exported = set()
for line in listed.splitlines():
    _, kind, symbol = line.split(" ", 2)
    if kind != "A":  # the name of the version
        exported.add(
            re.sub(r"(\[abi:\w+\])?(\(.*)?(@.*)?$", "", symbol.replace("@@PREPOST_0.1", ""))
        )
if len(declared) < 10 or declared != exported:
    sys.exit(
        f"declared, not exported: {sorted(declared - exported)}\n"
        f"exported, not declared: {sorted(exported - declared)}"
    )
