# SPDX-License-Identifier: Apache-2.0
"""Sweeps: simulations of all combinations of some values."""
import difflib
import inspect
import itertools
import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple, Union

from . import _check
from ._errors import RejectedError, UsageError
from ._plan import Path, Plan, compile

_OF_SIMULATE = frozenset(inspect.signature(Plan.simulate).parameters) - {"self"}
#: As of `prepost simulate --sweep`.
_ROWS_MAX = 100_000


#: Of a spec (docs/compiler.md).
_KEYS = frozenset(
    "nodes root message_bytes part_bytes block_bytes algorithm ready send_window topology order "
    "collective combine deterministic".split()
)


def _check_name(name: str) -> None:
    known = _KEYS | _OF_SIMULATE
    if "." in name or name in known:
        return
    near = difflib.get_close_matches(name, sorted(known), 1)
    raise UsageError(
        f"{name}: neither a key of a spec nor an argument of Plan.simulate()"
        + (f", did you mean '{near[0]}'?" if near else "")
    )


class _Plans:
    """Each is compiled once, by the first thread that wants it. Used by several threads."""

    def __init__(self, spec: Union[Mapping[str, Any], Path, None], plan: Optional[Plan]) -> None:
        self._spec = spec
        self._plan = plan
        self._lock = threading.Lock()
        self._made: Dict[Tuple[Tuple[str, str], ...], "Future[Plan]"] = {}

    def get(self, keys: Mapping[str, Any]) -> Plan:
        if self._plan is not None:
            return self._plan
        key = tuple(sorted((name, repr(value)) for name, value in keys.items()))
        with self._lock:
            made = self._made.get(key)
            is_first = made is None
            if made is None:
                made = self._made[key] = Future()
        if is_first:
            try:
                made.set_result(compile(self._spec, **keys))
            except BaseException as error:
                made.set_exception(error)
        return made.result()


def _parts(
    values: Mapping[str, Any], has_plan: bool
) -> Tuple[Dict[str, Any], Dict[str, Any], Dict[str, Any]]:
    """The keys of the spec, the arguments of simulate(), and what replaces the profile's."""
    spec: Dict[str, Any] = {}
    arguments: Dict[str, Any] = {}
    settings: Dict[str, Any] = {}
    for name, value in values.items():
        if "." in name:
            settings[name] = value
            continue
        if name in _OF_SIMULATE:
            arguments[name] = value
        if name == "topology" or name not in _OF_SIMULATE:
            if not has_plan:
                spec[name] = value
            elif name != "topology":
                raise UsageError(f"{name}: the plan is given, and is what it is")
    return spec, arguments, settings


def sweep(
    over: Mapping[str, Iterable[Any]],
    *,
    plan: Optional[Plan] = None,
    spec: Union[Mapping[str, Any], Path, None] = None,
    jobs: Optional[int] = None,
    **fixed: Any,
) -> List[Dict[str, Any]]:
    """Simulates all combinations of some values, the last name varying fastest; all of it modelled.

    over: names and the values of each: keys of a spec ("nodes", "block_bytes"), arguments of
        Plan.simulate() ("wait", "seed", "profile"), and values of the profile by their names in it
        ("host.completion").
    plan: what is simulated; without it each combination is compiled from `spec` and the keys, and
        what is left to "auto" is chosen as compile() does.
    jobs: so many at a time; None: one per core.
    fixed: what is the same in all, by the same names.

    Returns a dict for each combination, with its values as "point", and what Plan.simulate()
    returns as "simulation" or, where it cannot be simulated, the reason as "error". Raises
    UsageError for what is wrong with the call.

        rows = prepost.sweep(
            {"nodes": [4, 8, 16], "algorithm": ["chain", "binomial_pipeline"]},
            message_bytes=16 << 20, block_bytes=1 << 20, profile="fractus", executor="cpu",
        )
        best = min(rows, key=lambda row: row["simulation"]["cpu"]["completion_seconds"])
    """
    if not isinstance(over, Mapping):
        raise _check.wrong("over", "a mapping of names to values", over)
    if plan is not None and spec is not None:
        raise UsageError("plan: a spec is there, too")
    names = [_check.text("over", name) for name in over]
    values = [_check.several(f"over[{name!r}]", over[name], "a list of values") for name in names]
    for name in names:
        if name in fixed:
            raise UsageError(f"{name}: it is swept, and the same in all")
    if "profile" not in names and "profile" not in fixed:
        raise UsageError("profile: the cluster is missing")
    rows = 1
    for several in values:
        rows *= len(several)
    if rows > _ROWS_MAX:
        raise UsageError(f"over: {rows} combinations, the limit is {_ROWS_MAX}")
    if plan is None:
        for name in [*fixed, *names]:
            _check_name(name)
    plans = _Plans(spec, plan)

    def run(combination: Tuple[Any, ...]) -> Dict[str, Any]:
        point = dict(zip(names, combination))
        keys, arguments, settings = _parts({**fixed, **point}, plan is not None)
        if settings:
            arguments["settings"] = {**(arguments.get("settings") or {}), **settings}
        try:
            return {"point": point, "simulation": plans.get(keys).simulate(**arguments)}
        except RejectedError as error:
            return {"point": point, "error": str(error)}

    workers = os.cpu_count() or 1 if jobs is None else max(1, _check.number("jobs", jobs, 32))
    with ThreadPoolExecutor(max_workers=min(workers, max(rows, 1))) as pool:
        return list(pool.map(run, itertools.product(*values)))
