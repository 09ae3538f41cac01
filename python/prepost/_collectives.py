# SPDX-License-Identifier: Apache-2.0
"""Groups for calls of collectives."""
import time
from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

from . import _check, _native
from ._errors import RejectedError, UsageError
from ._many import Coming, is_many, pack
from ._membership import Membership
from ._memory import buffer_of, bytes_of, element_type, is_of_bools, item_bytes, new_like, shape_of
from ._session import Paths, Session

#: Of reduce(), allreduce() and reduce_scatter(); or a function of two arrays of NumPy that returns
#: one of the same shape.
Op = Union[str, Callable[[Any, Any], Any]]

#: Of the first message of a broadcast of many: no root sends more.
_FIRST_MAX = 1 << 37
_OPS = ("sum", "prod", "min", "max", "and", "or", "xor")


class Call:
    """A call under way: what the methods of Collectives return with wait=False."""

    def __init__(
        self, group: "Collectives", number: int, result: Any, memory: Tuple[Any, ...]
    ) -> None:
        self._group, self._number, self._result = group, number, result
        self._memory = memory  # which stays as long as it is used

    def wait(self, timeout: Optional[float] = None) -> Any:
        """Waits until this member's part is over, and returns the result.
        Raises as Collectives does."""
        self._group._native.wait_call(self._number, _check.timeout(timeout))
        return self._result

    @property
    def done(self) -> bool:
        """Whether this member's part is over: wait() would return at once."""
        return self._group._native.calls > self._number


class Collectives(Membership):
    """A group for calls of collectives: Session.collectives() makes it.

    Every member makes the same calls, in the same order; each takes part in it with arrays of the
    same type and size, anything with contiguous memory: NumPy arrays, tensors of PyTorch on the
    CPU, memoryviews, bytearrays. A part is what a member has for, or gets from, another; results
    are new arrays, or `out`. In place where `out` is the array itself (allreduce, and reduce at the
    root). With wait=False a call returns at once, with a Call; arrays must then not be changed, and
    results not be read, until it is over. Any number may be under way.

    op: "sum", "prod", "min", "max"; of integers also "and", "or", "xor"; or a function of two
    arrays of NumPy, called by a thread of the session, that returns their combination, element by
    element. Where it does not commute, say commutative=False: operands are then in the order of the
    group's list of members. Sums are added in the same order at all members and in every run.

    Waiting lets other threads run, is interrupted by signals whose handlers raise, and ends with
    Timeout after `timeout` seconds (None: never). All calls raise TransferError once something has
    failed anywhere in the group, as when members call different things. In a `with` block,
    destroy() is called in the end or, where an exception leaves it, abort().
    """

    def __init__(self, native: "_native.Group", session: Session, members: List[int]) -> None:
        super().__init__(native)
        self._session = session  # which stays open as long as the group is used
        self._members = members
        self._place = members.index(session._number)

    @property
    def size(self) -> int:
        """How many members it has."""
        return len(self._members)

    @property
    def place(self) -> int:
        """This member's place in the group's list: which part is its own."""
        return self._place

    def barrier(self, *, wait: bool = True, timeout: Optional[float] = None) -> Any:
        """Waits until all members have called it."""
        return self._call("barrier", None, None, None, 0, "uint8", wait=wait, timeout=timeout)

    def broadcast(
        self, array: Any, root: int = 0, *, wait: bool = True, timeout: Optional[float] = None
    ) -> Any:
        """Fills `array` with that of member `root`; returns it.

        Of many, a list or a dict of arrays, of any types and sizes, in one call: elsewhere than at
        the root with the same names, sizes and types, or None, for new memory, as
        Group.receive_many(); what does not fit ends the group. Such a call waits.
        """
        root = self._check_root(root)
        is_root = root == self._session._number
        if is_many(array) or (array is None and not is_root):
            if not _check.flag("wait", wait):
                raise UsageError("a broadcast of many arrays waits until it is over")
            return self._broadcast_many(array, root, is_root, timeout)
        return self._call(
            "multicast",
            array if is_root else None,
            None if is_root else array,
            array,
            bytes_of(array),
            "uint8",
            root=root,
            wait=wait,
            timeout=timeout,
        )

    def _broadcast_many(
        self, items: Any, root: int, is_root: bool, timeout: Optional[float]
    ) -> Any:
        seconds = _check.timeout(timeout)
        due = None if seconds is None else time.monotonic() + seconds

        def left() -> Optional[float]:
            return None if due is None else max(due - time.monotonic(), 0)

        def start(memory: Any) -> Call:
            return self.broadcast(memory, root, wait=False)

        if is_root:
            first, large = pack(items)
            count = len(first).to_bytes(8, "little")
            for call in [start(memory) for memory in (count, first, *large)]:
                call.wait(left())
            return items
        count_read = start(bytearray(8)).wait(left())
        first_bytes = int.from_bytes(count_read, "little")
        try:
            if first_bytes > _FIRST_MAX:
                raise RejectedError(f"a first message of {first_bytes} bytes")
            coming = Coming(memoryview(start(bytearray(first_bytes)).wait(left())))
            coming.check(items)
        except (RejectedError, UsageError) as error:
            self.abort(str(error))  # the others' calls would wait for this member's
            raise
        calls = iter(
            [
                start(bytearray(size) if memory is None else memory)
                for memory, size in coming.large()
            ]
        )
        return coming.finish(
            lambda memory, size, until: memoryview(buffer_of(next(calls).wait(until))).cast("B"),
            left(),
        )

    def reduce(
        self,
        array: Any,
        root: int = 0,
        op: Op = "sum",
        *,
        out: Any = None,
        commutative: bool = True,
        wait: bool = True,
        timeout: Optional[float] = None,
    ) -> Any:
        """What all members' arrays combine to, at member `root`; None elsewhere."""
        root = self._check_root(root)
        is_root = root == self._session._number
        if is_root and out is None:
            out = new_like(array, shape_of(array))
        return self._combine(
            "reduce", array, out if is_root else None, op, commutative, 1, root, wait, timeout
        )

    def allreduce(
        self,
        array: Any,
        op: Op = "sum",
        *,
        out: Any = None,
        commutative: bool = True,
        wait: bool = True,
        timeout: Optional[float] = None,
    ) -> Any:
        """What all members' arrays combine to."""
        if out is None:
            out = new_like(array, shape_of(array))
        return self._combine("allreduce", array, out, op, commutative, 1, None, wait, timeout)

    def reduce_scatter(
        self,
        array: Any,
        op: Op = "sum",
        *,
        out: Any = None,
        commutative: bool = True,
        wait: bool = True,
        timeout: Optional[float] = None,
    ) -> Any:
        """Of arrays that have a part for each member (along the first axis):
        what those for this member combine to."""
        shape = self._parts_of(array)
        if out is None:
            out = new_like(array, shape)
        return self._combine(
            "reduce_scatter", array, out, op, commutative, self.size, None, wait, timeout
        )

    def allgather(
        self, array: Any, *, out: Any = None, wait: bool = True, timeout: Optional[float] = None
    ) -> Any:
        """All members' arrays, one after the other: with another axis before those of `array`."""
        if out is None:
            out = new_like(array, (self.size, *shape_of(array)))
        self._check_bytes(out, self.size * bytes_of(array))
        return self._call(
            "allgather", array, out, out, bytes_of(array), "uint8", wait=wait, timeout=timeout
        )

    def gather(
        self,
        array: Any,
        root: int = 0,
        *,
        out: Any = None,
        wait: bool = True,
        timeout: Optional[float] = None,
    ) -> Any:
        """As allgather(), at member `root`; None elsewhere."""
        root = self._check_root(root)
        if root != self._session._number:
            out = None
        elif out is None:
            out = new_like(array, (self.size, *shape_of(array)))
        if out is not None:
            self._check_bytes(out, self.size * bytes_of(array))
        return self._call(
            "gather",
            array,
            out,
            out,
            bytes_of(array),
            "uint8",
            root=root,
            wait=wait,
            timeout=timeout,
        )

    def scatter(
        self,
        array: Any,
        root: int = 0,
        *,
        out: Any = None,
        wait: bool = True,
        timeout: Optional[float] = None,
    ) -> Any:
        """Its part, along the first axis, of the array of member `root`, for each. Elsewhere
        `array` is None, and `out` is needed."""
        root = self._check_root(root)
        is_root = root == self._session._number
        if is_root:
            shape = self._parts_of(array)
            if out is None:
                out = new_like(array, shape)
            self._check_bytes(array, self.size * bytes_of(out))
        elif out is None:
            raise UsageError(f"scatter() needs `out` where this is not the root, member {root}")
        return self._call(
            "scatter",
            array if is_root else None,
            out,
            out,
            bytes_of(out),
            "uint8",
            root=root,
            wait=wait,
            timeout=timeout,
        )

    def alltoall(
        self, array: Any, *, out: Any = None, wait: bool = True, timeout: Optional[float] = None
    ) -> Any:
        """Of arrays that have a part for each member (along the first axis): those that are for
        this one, in the order of members."""
        self._parts_of(array)
        if out is None:
            out = new_like(array, shape_of(array))
        self._check_bytes(out, bytes_of(array))
        return self._call(
            "alltoall",
            array,
            out,
            out,
            bytes_of(array) // self.size,
            "uint8",
            wait=wait,
            timeout=timeout,
        )

    def alltoallv(
        self,
        array: Any,
        send_counts: Sequence[int],
        receive_counts: Sequence[int],
        *,
        out: Any = None,
        wait: bool = True,
        timeout: Optional[float] = None,
    ) -> Any:
        """As alltoall(), of parts of any sizes, none among them: how many elements go to each
        member, and come from each, one part after the other in flat arrays. What a member sends
        another is what that one expects, or the group ends with an error.
        """
        sent, received = _check.counts("send_counts", send_counts, self.size), _check.counts(
            "receive_counts", receive_counts, self.size
        )
        size = item_bytes(array)
        self._check_bytes(array, size * sum(sent))
        if sent[self._place] != received[self._place]:
            raise UsageError(
                f"this member sends itself {sent[self._place]} elements and expects"
                f" {received[self._place]}"
            )
        if out is None:
            out = new_like(array, (sum(received),))
        self._check_bytes(out, size * sum(received))
        counts = ([size * it for it in sent], [size * it for it in received])
        return self._call(
            "alltoall", array, out, out, 0, "uint8", counts=counts, wait=wait, timeout=timeout
        )

    def paths(self) -> Paths:
        """How blocks come to this member: from the peers of calls so far, as connections are opened
        when a call first uses them."""
        return Paths(*self._native.paths())

    def notes(self) -> List[str]:
        """What whoever runs the program may want to know of the group's paths, and of who plays
        over its device, a sentence each."""
        return self._native.notes()

    def wait_opened(self, timeout: Optional[float] = None) -> None:
        """Waits until all members are there. Nothing needs it: calls may be made before."""
        self._native.wait_opened(_check.timeout(timeout))

    def _check_root(self, root: int) -> int:
        found = _check.number("root", root, 32)
        if found not in self._members:
            raise UsageError(
                f"root {found} is not a member of the group, whose members are {self._members}"
            )
        return found

    def _parts_of(self, array: Any) -> Tuple[int, ...]:
        """The shape of one of the parts that `array` has for the members."""
        if array is None:
            raise UsageError("an array with a part for each member is needed")
        shape = shape_of(array)
        if shape and shape[0] == self.size:
            return shape[1:]
        if shape and shape[0] % self.size == 0:
            return (shape[0] // self.size, *shape[1:])
        raise UsageError(
            f"the array has no part for each of {self.size} members: its first axis is"
            f" {shape[0] if shape else 'missing'}"
        )

    @staticmethod
    def _check_bytes(memory: Any, needed: int) -> None:
        found = bytes_of(memory)
        if found != needed:
            raise UsageError(f"the array has {found} bytes, and {needed} are needed")

    def _combine(
        self,
        kind: str,
        array: Any,
        out: Any,
        op: Op,
        commutative: bool,
        parts: int,
        root: Optional[int],
        wait: bool,
        timeout: Optional[float],
    ) -> Any:
        type_of = element_type(array)
        if not type_of:
            raise UsageError(
                f"{kind} combines integers and floats, not"
                f" {getattr(array, 'dtype', type(array).__name__)}"
            )
        if out is not None:
            if element_type(out) != type_of:
                raise UsageError(
                    f"out has elements of {element_type(out) or 'another type'}, and the array of"
                    f" {type_of}"
                )
            self._check_bytes(out, bytes_of(array) // parts)
        function = None
        if callable(op):
            function = _function(op, type_of)
            op = "user" if _check.flag("commutative", commutative) else "user_ordered"
        else:
            _check.choice("op", op, *_OPS)
            if op == "sum" and is_of_bools(array):
                raise UsageError(
                    f'a sum of bools is no bool: {kind} of them with "or" or "and", or of an array'
                    " of integers"
                )
        size = int("".join(filter(str.isdigit, type_of))) // 8
        return self._call(
            kind,
            array,
            out,
            out,
            bytes_of(array) // parts // size,
            type_of,
            op=op,
            function=function,
            root=root,
            wait=wait,
            timeout=timeout,
        )

    def _call(
        self,
        kind: str,
        array: Any,
        out: Any,
        result: Any,
        count: int,
        type_of: str,
        *,
        op: str = "",
        function: Any = None,
        root: Optional[int] = None,
        counts: Tuple[List[int], List[int]] = ([], []),
        wait: bool,
        timeout: Optional[float],
    ) -> Any:
        seconds, is_waited_for = _check.timeout(timeout), _check.flag(
            "wait", wait
        )  # before the call is made, which all make
        memory = (
            None if array is None else buffer_of(array),
            None if out is None else buffer_of(out),
        )
        number = self._native.call(
            kind,
            0 if root is None else root,
            memory[0],
            memory[1],
            count,
            type_of,
            op,
            function,
            *counts,
        )
        call = Call(self, number, result, (array, out))
        return call.wait(seconds) if is_waited_for else call


def _function(op: Callable[[Any, Any], Any], type_of: str) -> Callable[[Any, Any, Any], None]:
    """`op` on memory: out, own, other."""
    try:
        import numpy
    except ImportError:
        raise UsageError(
            "a function as op combines arrays of NumPy, which is not installed"
        ) from None
    if type_of == "bfloat16":
        raise UsageError("a function as op combines arrays of NumPy, which has no bfloat16")
    dtype = numpy.dtype(type_of)

    def combine(out: Any, own: Any, other: Any) -> None:
        # Copies, as the memory is another call's afterwards, and `op` may keep what it got.
        result = numpy.asarray(
            op(numpy.frombuffer(own, dtype).copy(), numpy.frombuffer(other, dtype).copy())
        )
        target = numpy.frombuffer(out, dtype)
        if result.shape != target.shape or result.dtype != dtype:
            raise UsageError(
                f"op returned {result.shape} of {result.dtype}, for {target.shape} of {dtype}"
            )
        target[...] = result

    return combine
