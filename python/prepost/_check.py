# SPDX-License-Identifier: Apache-2.0
"""Arguments of the package's calls. What has the wrong type is a UsageError that names the
argument, what is expected and the type that was found, before the module in C++ sees it, whose own
errors show all values of a call. No value that may be a secret gets here."""
import math
import operator
import os
from typing import Any, Iterable, List, Optional

from ._errors import UsageError


def wrong(name: str, expected: str, found: Any) -> UsageError:
    return UsageError(f"{name} is {expected}, not {type(found).__name__}")


def number(name: str, value: Any, bits: int = 64, expected: str = "a whole number") -> int:
    """From 0 on, of `bits` bits."""
    try:
        found = operator.index(value)
    except TypeError:
        raise wrong(name, expected, value) from None
    if not 0 <= found < 1 << bits:
        text = str(found) if found.bit_length() <= 128 else f"one of {found.bit_length()} bits"
        raise UsageError(f"{name} is {expected} from 0 to {(1 << bits) - 1}, not {text}")
    return found


def numbers(name: str, values: Any) -> List[int]:
    """Of members, nodes or blocks."""
    return [
        number(f"{name}[{i}]", value, 32)
        for i, value in enumerate(several(name, values, "a list of whole numbers"))
    ]


def counts(name: str, values: Any, members: int) -> List[int]:
    """Of elements, one for each of `members`."""
    found = [
        number(f"{name}[{i}]", value, 64)
        for i, value in enumerate(several(name, values, "a list of whole numbers"))
    ]
    if len(found) != members:
        raise UsageError(f"{name} has {len(found)} numbers, and the group has {members} members")
    return found


def several(name: str, values: Any, expected: str) -> List[Any]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise wrong(name, expected, values)
    return list(values)


def seconds(name: str, value: Any, unit: str = "seconds") -> float:
    try:
        found = math.nan if isinstance(value, (str, bytes, bytearray)) else float(value)
    except (TypeError, ValueError):
        found = math.nan
    except OverflowError:
        found = math.inf
    if math.isnan(found) and not isinstance(value, float):
        raise wrong(name, f"a number of {unit}", value)
    if not 0 <= found:
        raise UsageError(f"{name} is a number of {unit} from 0 on, not {found}")
    return found


def timeout(value: Any) -> Optional[float]:
    return None if value is None else seconds("timeout", value)


def text(name: str, value: Any, expected: str = "a str") -> str:
    if not isinstance(value, str):
        raise wrong(name, expected, value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{name} has characters that UTF-8 does not have") from None
    return str(value)


def flag(name: str, value: Any) -> bool:
    """A bool of Python or NumPy, or a number that stands for one."""
    is_number = isinstance(value, int) and value in (0, 1)
    if not is_number and type(value).__name__ not in ("bool", "bool_"):  # NumPy's names
        raise wrong(name, "True or False", value)
    return bool(value)


def path(name: str, value: Any, expected: str = "a path") -> str:
    try:
        found = os.fspath(value)
    except TypeError:
        raise wrong(name, expected, value) from None
    return text(name, os.fsdecode(found))


def choice(name: str, value: Any, *words: str) -> str:
    if text(name, value) not in words:
        raise UsageError(f"{name} is {', '.join(words[:-1])} or {words[-1]}, not {value!r:.40}")
    return str(value)
