# SPDX-License-Identifier: Apache-2.0
"""Plans, by the same code as the command."""
import array
import json
import numbers
import operator
import os
import warnings
from dataclasses import dataclass
from typing import (
    Any,
    Dict,
    Generic,
    Iterable,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
    Union,
)

from . import _check, _native
from ._errors import RejectedError, UsageError

Path = Union[str, "os.PathLike[str]"]

#: A block, or a range of them in one message; numbers of Python or NumPy.
Blocks = Union[int, range]
#: (sender, receiver, blocks), or (sender, receiver, blocks, combines): whether the receiver
#: combines what comes with what it has.
Transfer = Union[Tuple[int, int, Blocks], Tuple[int, int, Blocks, bool]]

#: Of a schedule that Python generates; a file may have as many as a plan.
_TRANSFERS_MAX = 1 << 24

_PLACED = (
    "the rounds name the nodes themselves, so none are placed; draw() takes the topology of a plan"
)
_NOT_BESIDE_ROUNDS = {
    "algorithm": "the rounds are the schedule",
    "topology": _PLACED,
    "order": _PLACED,
    "part_bytes": "rounds are of parts of one size",
    "deterministic": "the rounds say in which order values are combined",
}


@dataclass(frozen=True)
class Finding:
    """What is wrong with a plan: a rule of docs/plan.md,
    the place in the file as a JSON pointer, and the text."""

    rule: str
    where: str
    message: str
    notes: Tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n  ".join([f"{self.where}: {self.rule}: {self.message}", *self.notes])


def _topology(value: Any, folder: str) -> Any:
    """A topology as JSON: that of a file, relative to `folder`, or `value` itself."""
    if not isinstance(value, (str, os.PathLike)):
        return value
    path = os.path.join(folder, _check.path("topology", value))
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        _native.check_topology(path)  # says where, and what else it may be
        raise RejectedError(f"{path}: cannot read the topology: {error}") from error


def _six(number: int, transfer: Transfer) -> Tuple[int, int, int, int, int, int]:
    """Round, sender, receiver, first block, how many blocks, and whether they are combined. Raises
    RejectedError with a reason, or TypeError or ValueError: it is no transfer."""
    sender, receiver, blocks, *rest = transfer
    (combines,) = rest or (False,)
    if isinstance(blocks, range):
        if len(blocks) == 0 or blocks.step != 1:
            raise RejectedError(
                f"rounds: round {number}: {blocks} is no range of consecutive blocks such as"
                " range(3, 6)"
            )
        first, count = blocks.start, len(blocks)
    else:
        first, count = operator.index(blocks), 1
    try:
        combines = _check.flag("the fourth entry of a transfer", combines)
    except UsageError as error:
        raise RejectedError(f"rounds: round {number}: {error}") from None
    return number, operator.index(sender), operator.index(receiver), first, count, int(combines)


def _transfers(rounds: Iterable[Iterable[Transfer]]) -> "array.array[int]":
    """The numbers of _six() of all transfers. A generator may never end: rounds and transfers are
    _TRANSFERS_MAX together at most."""
    numbers = array.array("I")
    left = _TRANSFERS_MAX
    blocks = _native.transfers_max
    for number, transfers in enumerate(rounds):
        left -= 1
        if not isinstance(transfers, Iterable):
            raise RejectedError(
                f"rounds: round {number}: expected transfers, found {transfers!r:.40}"
            )
        for transfer in transfers:
            try:
                six = _six(number, transfer)
                numbers.extend(six)
            except (TypeError, ValueError, OverflowError) as error:
                raise RejectedError(
                    f"rounds: round {number}: expected a transfer (sender, receiver, block) such as"
                    f" (0, 1, 0), found {transfer!r:.40}"
                ) from error
            left -= 1
            blocks -= six[4]
            if left < 0 or blocks < 0:
                break
        if left < 0 or blocks < 0:
            raise RejectedError(
                f"rounds: round {number}: the limit is {_TRANSFERS_MAX} rounds and transfers"
                f" together, of {_native.transfers_max} blocks"
            )
    return numbers


def _compile_rounds(
    rounds: Union[Path, Iterable[Iterable[Transfer]]], keys: Dict[str, Any]
) -> "Plan":
    for key, reason in _NOT_BESIDE_ROUNDS.items():
        if key in keys:
            raise UsageError(f"{key}: {reason}")
    if keys.get("block_bytes") == "auto":
        raise UsageError(
            "block_bytes: auto chooses how many blocks there are, and the rounds say it"
        )
    spec = _spec_text(keys, {})
    if isinstance(rounds, str) and (">" in rounds or "\n" in rounds):
        plan, notes = _native.compile_rounds_text(spec, _check.text("rounds", rounds))
    elif isinstance(rounds, (str, os.PathLike)):
        plan, notes = _native.compile_rounds_file(spec, _check.path("rounds", rounds))
    elif isinstance(rounds, Iterable):
        plan, notes = _native.compile_transfers(spec, _transfers(rounds))
    else:
        raise _check.wrong("rounds", "a path, a text or an iterable of rounds", rounds)
    for note in notes:
        warnings.warn(note, stacklevel=3)
    return Plan(plan)


def _combine(value: Any) -> Any:
    """{"op": "sum", "type": "float32"} of "sum:float32"."""
    if not isinstance(value, str):
        return value
    op, _, kind = value.partition(":")
    return {"op": op, "type": kind}


def _spec_text(
    keys: Mapping[str, Any], defaults: Mapping[str, Any] = {"collective": "multicast"}
) -> str:
    keys = {**keys, "combine": _combine(keys["combine"])} if "combine" in keys else keys
    return _json("the spec", {"format": "prepost.spec", "version": "1.0", **defaults, **keys})


def compile(
    spec: Union[Mapping[str, Any], Path, None] = None,
    *,
    rounds: Union[Path, Iterable[Iterable[Transfer]], None] = None,
    **keys: Any,
) -> "Plan":
    """Compiles a spec, or a schedule of your own, into a verified plan.

    spec: a mapping with the keys of a spec file (docs/compiler.md), or the path of one. `keys` win
        over it: nodes, root, message_bytes, block_bytes (a number or "auto"), algorithm, ready,
        send_window, topology (a path, relative to the spec's folder, or a mapping), order,
        collective ("allreduce"; without it a multicast), combine ("sum:float32"), deterministic,
        part_bytes (a size for each part, of an alltoall a row of sizes for each node). Sizes are
        numbers of bytes, of collectives of parts those of a part. What is left to "auto" is chosen.
    rounds: in place of a spec, the schedule itself (docs/compiler.md, "Your own schedule"): the
        path of a file of rounds, its text, or an iterable of rounds, such as a generator. Each
        round is an iterable of its transfers, (sender, receiver, block), and may be empty; a node
        can send what it had before the round began. (sender, receiver, block, True) has the
        receiver combine what comes with what it has, and range(3, 6) in the place of a block is
        blocks 3 to 5 in one message; both are for other collectives than multicasts. Of the keys
        collective, combine, nodes, root, message_bytes, block_bytes, ready and send_window may
        stand beside it; nodes, root and blocks that are not said are found from the transfers. A
        str with ">" or an end of line in it is a text. A warning names the first round in which a
        node needs several ports.

    Raises UsageError or RejectedError, which names the rounds in which something is wrong.

        plan = prepost.compile(nodes=8, message_bytes=1 << 24, algorithm="auto", block_bytes="auto")
        star = ([(0, node, block)] for node in range(1, 4) for block in range(8))
        plan = prepost.compile(rounds=star, message_bytes=1 << 24)
        pairs = ([(node, node ^ 1 << bit, 0, True) for node in range(8)] for bit in range(3))
        total = prepost.compile(
            rounds=pairs, collective="allreduce", combine="sum:float32", message_bytes=1 << 20
        )
    """
    if rounds is not None:
        if spec is not None:
            raise UsageError("rounds are there in place of a spec; keys say what a spec would")
        return _compile_rounds(rounds, keys)
    return Plan(_native.compile(_spec_text(_wanted(spec, keys))))


def roll(
    spec: Union[Mapping[str, Any], Path, None] = None, *, node: Optional[int] = None, **keys: Any
) -> "RolledPlan":
    """Compiles a spec into a plan for messages of every size (docs/compiler.md, "Rolled plans").

    spec, keys: as in compile(), but without a size of the message, whose own is ignored, and with
        nothing left to "auto".
    node: only this node's program, which is enough at its member of a group.

    Raises UsageError or RejectedError, also for schedules that have no such form.

        group = session.group(1, plan=prepost.roll(nodes=8, algorithm="chain", block_bytes=1 << 16))
    """
    if "message_bytes" in keys:
        raise UsageError("message_bytes: a rolled plan is for every size")
    wanted = {key: value for key, value in _wanted(spec, keys).items() if key != "message_bytes"}
    return RolledPlan(
        _native.roll(_spec_text(wanted), None if node is None else _check.number("node", node, 32))
    )


def _wanted(spec: Union[Mapping[str, Any], Path, None], keys: Mapping[str, Any]) -> Dict[str, Any]:
    """The keys of a spec with its topology."""
    folder = ""
    if spec is None:
        wanted: Dict[str, Any] = {}
    elif isinstance(spec, Mapping):
        wanted = dict(spec)
    else:
        path = _check.path("spec", spec, "a mapping or a path")
        folder = os.path.dirname(path)
        try:
            with open(path, encoding="utf-8") as file:
                wanted = json.load(file)
        except (OSError, ValueError) as error:
            raise RejectedError(f"{path}: cannot read the spec: {error}") from error
    wanted.update(keys)
    if wanted.get("topology") is not None:
        wanted["topology"] = _topology(wanted["topology"], "" if "topology" in keys else folder)
    return wanted


def _words(**flags: Any) -> List[str]:
    """Those flags that are not None, as a command takes them."""
    words: List[str] = []
    for name, value in flags.items():
        if value is not None:
            words += ["--" + name.replace("_", "-"), _check.text(name, str(value))]
    return words


def _number(value: Any) -> Union[int, float]:
    """Of other types than Python's, as NumPy's."""
    try:
        return operator.index(value)
    except TypeError:
        if isinstance(value, numbers.Real):
            return float(value)
        raise


def _json(what: str, value: Any) -> str:
    try:
        return json.dumps(value, allow_nan=False, default=_number)
    except RecursionError:
        raise UsageError(f"{what} is nested too deep") from None
    except (TypeError, ValueError) as error:
        raise UsageError(f"{what} is no JSON: {error}") from error


def _given(topology: Union[Path, Mapping[str, Any], None]) -> Optional[Tuple[str, Optional[str]]]:
    """Its name, and its text if it is not the file of that name."""
    if topology is None:
        return None
    if isinstance(topology, (str, os.PathLike)):
        return _check.path("topology", topology), None
    if not isinstance(topology, Mapping):
        raise _check.wrong("topology", "a path or a mapping", topology)
    head = {"format": "prepost.topology", "version": "1.0"}
    return "topology", _json("the topology", {**head, **topology})


def profile(name: str) -> Dict[str, Any]:
    """A shipped profile, to change and to give to Plan.simulate(). Raises UsageError, with the
    names of all.

        slower = prepost.profile("fractus")
        slower["host"]["interrupt"] = {"value": "20us", "assumed": "to see what it does"}
    """
    result: Dict[str, Any] = json.loads(_native.shipped_profile(_check.text("name", name)))
    return result


def choose(
    spec: Union[Mapping[str, Any], Path, None] = None,
    *,
    profile: Optional[Path] = None,
    executor: Optional[str] = None,
    transport: Optional[str] = None,
    rules: Optional[Path] = None,
    rate: Optional[str] = None,
    latency: Optional[str] = None,
    block_overhead: Optional[str] = None,
    **keys: Any,
) -> Dict[str, Any]:
    """What "auto" is for a spec, and what that was compared with: what `prepost choose --json`
    prints (docs/compiler.md), by models.

    spec, keys: as in compile(); what they leave open is chosen. The others are the flags of these
        names.

        best = prepost.choose(nodes=16, message_bytes=256 << 20, profile="tcp-10g")["algorithm"]
    """
    words = _words(
        profile=profile,
        executor=executor,
        transport=transport,
        rules=rules,
        rate=rate,
        latency=latency,
        block_overhead=block_overhead,
    )
    result: Dict[str, Any] = json.loads(_native.choose(_spec_text(_wanted(spec, keys)), words))
    return result


def _write(path: Path, text: str) -> None:
    with open(_check.path("path", path), "w", encoding="utf-8", newline="\n") as file:
        file.write(text)


_Native = TypeVar("_Native", bound="_native._AnyPlan")


class _AnyPlan(Generic[_Native]):
    """What a plan and a rolled plan have in common."""

    def __init__(self, native: _Native) -> None:
        self._native = native

    @property
    def algorithm(self) -> str:
        """The schedule."""
        return self._native.algorithm

    @property
    def nodes(self) -> int:
        """How many nodes there are, the root included."""
        return self._native.nodes

    @property
    def root(self) -> int:
        """The node that has the message; of a reduce or gather the one that gets it."""
        return self._native.root

    @property
    def block_bytes(self) -> int:
        """The size of every block but the last."""
        return self._native.block_bytes


class Plan(_AnyPlan["_native.Plan"]):
    """A plan: the ops of every node. compile(), load() and from_json() make it; it never changes.

    Those that were read may be invalid, which verify() shows; draw() and simulate()
    then raise RejectedError.
    """

    @classmethod
    def load(cls, path: Path) -> "Plan":
        """Reads a plan file or a folder of shards. Raises RejectedError if it is none; whether it
        is valid verify() says."""
        return cls(_native.load_plan(_check.path("path", path)))

    @classmethod
    def from_json(cls, text: str) -> "Plan":
        """The plan of a plan file's text."""
        return cls(_native.read_plan(_check.text("text", text), "plan"))

    def to_json(self, encoding: str = "rows") -> str:
        """The text of a plan file. encoding: "rows", for people, or "columns",
        a quarter of the size."""
        return self._native.text(
            _check.choice("encoding", encoding, "rows", "columns") == "columns"
        )

    def save(self, path: Path, encoding: str = "rows") -> None:
        """Writes a plan file, which the command reads. Raises OSError."""
        _write(path, self.to_json(encoding))

    def verify(self) -> List[Finding]:
        """What is wrong with it, the first 20 findings by place; empty: it is valid."""
        return [
            Finding(rule, where, message, tuple(notes))
            for rule, where, message, notes in self._native.findings()
        ]

    def draw(
        self,
        view: str = "spacetime",
        *,
        format: str = "svg",
        nodes: Sequence[int] = (),
        blocks: Sequence[int] = (),
        rounds: Optional[Tuple[int, int]] = None,
        topology: Union[Path, Mapping[str, Any], None] = None,
        trace: Union[Path, Sequence[Path], None] = None,
    ) -> str:
        """A picture, as `prepost draw` makes it (docs/inspect.md).

        view: "spacetime", "tree", "queues" (of one node), or "graph",
            which needs Graphviz on this machine.
        format: "svg"; "html", a page for a browser with all views, of which `view` is shown first;
            or, of a graph, "dot".
        nodes, blocks, rounds: only these; rounds are (first, last).
        topology: a file or what is in one: node i of the plan is its host i, and racks are shown.
        trace: the file, or files, of a run of this plan (`prepost run --trace`), whose times are
            shown: spacetime and tree.

        Queues are of multicasts: of other collectives they raise RejectedError.
        """
        _check.choice("view", view, "spacetime", "tree", "queues", "graph")
        _check.choice("format", format, "svg", "html", "dot")
        if format == "dot" and view != "graph":
            raise UsageError(f"the {view} view has no dot form, only the graph view has")
        traces = (
            []
            if trace is None
            else (
                [trace]
                if isinstance(trace, (str, os.PathLike))
                else _check.several("trace", trace, "a path or a list of paths")
            )
        )
        span = None if rounds is None else tuple(_check.numbers("rounds", rounds))
        if span is not None and len(span) != 2:
            raise UsageError(f"rounds are two numbers, the first and the last, not {len(span)}")
        if traces and format != "html" and view not in ("spacetime", "tree"):
            raise UsageError(f"the {view} view shows no times, a trace is for spacetime and tree")
        return self._native.draw(
            view,
            format,
            _check.numbers("nodes", nodes),
            _check.numbers("blocks", blocks),
            span,
            _given(topology),
            [_check.path("trace", path) for path in traces],
        )

    def simulate(
        self,
        profile: Union[Path, Mapping[str, Any]],
        *,
        topology: Union[Path, Mapping[str, Any], None] = None,
        executor: str = "both",
        wait: Optional[str] = None,
        settings: Optional[Mapping[str, Any]] = None,
        groups: Optional[int] = None,
        delay: Union[str, Sequence[str]] = (),
        slow: Union[str, Sequence[str]] = (),
        preempt: Union[str, Sequence[str]] = (),
        neighbours: Union[str, Sequence[str]] = (),
        seed: Optional[int] = None,
        mode: Optional[str] = None,
        device_profile: Optional[Path] = None,
        copy_first_block: bool = False,
        causes: bool = False,
    ) -> Dict[str, Any]:
        """How long it takes on a modelled cluster: what `prepost simulate --json` prints
        (docs/simulate.md), all of it modelled.

        profile: the cluster: a shipped one, such as "fractus", a file, or what is in one, such as
            a changed profile().
        topology: the network in place of the profile's, a file or what is in one: node i of the
            plan is its host i.
        executor: "cpu", "offload" (preposted) or "both".
        wait: how hosts wait: "polling", "hybrid" or "interrupt".
        settings: values of the profile in place of the file's, {"host.completion": "1us"}.
        groups: the plan so many times at once, with rotated roots.
        causes: what the time goes to.

        Other collectives than multicasts are CPU-driven only: "both" leaves out the other way, and
        "offload" raises RejectedError. The others are the flags of these names.
        """
        words = ["--executor", _check.text("executor", executor)]
        given = _json("the profile", profile) if isinstance(profile, Mapping) else None
        if given is None:
            words += ["--profile", _check.path("profile", profile, "a path, a name or a mapping")]
        if settings is not None and not isinstance(settings, Mapping):
            raise _check.wrong("settings", "a mapping", settings)
        for key, value in (settings or {}).items():
            words += ["--set", _check.text("settings", f"{key}={value}")]
        for flag, values in (
            ("--delay", delay),
            ("--slow", slow),
            ("--preempt", preempt),
            ("--neighbours", neighbours),
        ):
            name = flag.strip("-")
            for value in (
                [values]
                if isinstance(values, str)
                else _check.several(name, values, "a str or a list of them")
            ):
                words += [flag, _check.text(name, value)]
        words += _words(
            wait=wait, groups=groups, seed=seed, mode=mode, device_profile=device_profile
        )
        words += ["--copy-first-block"] if copy_first_block else []
        words += ["--causes"] if causes else []
        result: Dict[str, Any] = json.loads(self._native.simulate(words, given, _given(topology)))
        return result

    def stats(self, topology: Union[Path, Mapping[str, Any], None] = None) -> Dict[str, Any]:
        """What it costs, and how near it is to what is possible: what `prepost stats --json` prints
        (docs/inspect.md).

        topology: a file or what is in one: node i of the plan is its host i.
        """
        result: Dict[str, Any] = json.loads(self._native.stats(_given(topology)))
        return result

    def explain(self, what: Union[str, int]) -> Dict[str, Any]:
        """Why an op waits: what `prepost explain --json` prints (docs/inspect.md).

        what: "5/12", op 12 of node 5; "0>4:2", the message that carries block 2 from node 0 to
            node 4; "5", or 5, node 5; ":3", block 3.
        """
        text = str(what) if isinstance(what, int) else _check.text("what", what)
        result: Dict[str, Any] = json.loads(self._native.explain(text))
        return result

    def lower(
        self,
        *,
        node: Optional[int] = None,
        mode: Optional[str] = None,
        masters: Optional[str] = None,
        device_profile: Optional[Path] = None,
    ) -> Dict[str, Any]:
        """What its queue programs need of NICs, and which shipped profiles they fit: what `prepost
        lower --json` prints (docs/offload.md).

        node: only this node's. The others are the flags of these names.

        Raises RejectedError where it does not fit `device_profile`, or is no multicast.
        """
        words = _words(mode=mode, masters=masters, device_profile=device_profile)
        number = None if node is None else _check.number("node", node, 32)
        result: Dict[str, Any] = json.loads(self._native.lower(words, number))
        return result

    @property
    def rounds(self) -> int:
        """How many rounds the schedule has."""
        return self._native.rounds

    @property
    def message_bytes(self) -> int:
        """The size of the message."""
        return self._native.message_bytes

    @property
    def blocks(self) -> int:
        """How many blocks the message has, 1 at least."""
        return self._native.blocks

    @property
    def ops(self) -> int:
        """How many ops all nodes have together."""
        return self._native.ops

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self._native.equals(other._native)

    def __hash__(self) -> int:
        return hash(
            (self.algorithm, self.nodes, self.root, self.message_bytes, self.block_bytes, self.ops)
        )

    def __repr__(self) -> str:
        return (
            f"<prepost.Plan {self.algorithm}: {self.nodes} nodes, {self.blocks} blocks,"
            f" {self.rounds} rounds>"
        )


class RolledPlan(_AnyPlan["_native.RolledPlan"]):
    """A plan for messages of every size, of all nodes or of one. roll(), load() and from_json()
    make it; it never changes.

    Plans that were read may be invalid, which unroll() and groups refuse.
    """

    @classmethod
    def load(cls, path: Path) -> "RolledPlan":
        """Reads the file of a rolled plan. Raises RejectedError if it is none."""
        return cls(_native.load_rolled(_check.path("path", path)))

    @classmethod
    def from_json(cls, text: str) -> "RolledPlan":
        """The plan of such a file's text."""
        return cls(_native.read_rolled(_check.text("text", text), "plan"))

    def to_json(self) -> str:
        """The text of the file of a rolled plan."""
        return self._native.text()

    def save(self, path: Path) -> None:
        """Writes such a file, which the command reads. Raises OSError."""
        _write(path, self.to_json())

    def unroll(self, message_bytes: int) -> Plan:
        """The plan for messages of this size, verified: what compile() makes of the spec with that
        size. Raises RejectedError."""
        return Plan(self._native.unroll(_check.number("message_bytes", message_bytes)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RolledPlan) and self._native.equals(other._native)

    def __hash__(self) -> int:
        return hash(
            (self.algorithm, self.nodes, self.root, self.block_bytes, self._native.programs)
        )

    def __repr__(self) -> str:
        programs = (
            f"{self.nodes} nodes"
            if self._native.programs == self.nodes
            else f"{self._native.programs} of {self.nodes} nodes"
        )
        return (
            f"<prepost.RolledPlan {self.algorithm}: {programs}, blocks of {self.block_bytes} bytes>"
        )
