# SPDX-License-Identifier: Apache-2.0
"""Many buffers in one broadcast: a list or a dict of them, of any types and sizes. The first
message says what they are and has the small ones, one after the other; each large one is a message
of its own, from and into its own memory."""
import json
import math
import re
import struct
import sys
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, Union

from ._errors import RejectedError, Timeout, UsageError
from ._memory import buffer_of, bytes_of, is_tensor, shape_of

#: What broadcast() takes in place of one buffer.
Many = Union[List[Any], Tuple[Any, ...], Dict[str, Any]]

_MAGIC = b"prepost\1"
_HEAD = struct.Struct("<8sQ")  # and the bytes of the text that follows
#: Smaller ones are copied into the first message.
PACKED_MAX = 64 << 10
_ITEMS_MAX = 1 << 20
_TEXT_MAX = 64 << 20
_SIDES_MAX = 64


class Item(NamedTuple):
    """One of them, as the root has it."""

    name: str  #: its key in a dict, or its place in a list
    of: str  #: "torch", "numpy" or "memory"
    type: str  #: of its elements, as NumPy ("<f4") or PyTorch ("bfloat16") have it, or ""
    shape: Tuple[int, ...]
    bytes: int

    @property
    def is_packed(self) -> bool:
        return self.bytes < PACKED_MAX


def is_many(buffer: Any) -> bool:
    return isinstance(buffer, (list, tuple, dict))


def begins_many(message: memoryview) -> bool:
    """Whether it is, by its first bytes, the first message of pack()."""
    return len(message) >= _HEAD.size and message[: len(_MAGIC)] == _MAGIC


def _named(items: Many) -> List[Tuple[str, Any]]:
    if not isinstance(items, dict):
        return [(str(i), item) for i, item in enumerate(items)]
    for name in items:
        if not isinstance(name, str):
            raise UsageError(f"the keys of a dict to broadcast are strings, not {name!r}")
    return list(items.items())


def _item(name: str, memory: Any) -> Item:
    numpy = sys.modules.get("numpy")
    if numpy is not None and type(memory) is numpy.ndarray and memory.dtype.kind in "biufc":
        if memory.flags.c_contiguous:  # as most are; what follows is three times as long
            return Item(name, "numpy", memory.dtype.str, memory.shape, memory.nbytes)
    is_array = numpy is not None and isinstance(memory, (numpy.ndarray, numpy.generic))
    of, type_ = "memory", ""
    if is_tensor(memory):
        of, type_ = "torch", str(memory.dtype).partition(".")[2]
    elif is_array and memory.dtype.names is None:
        of, type_ = "numpy", memory.dtype.str
    try:
        return Item(name, of, type_, shape_of(memory), bytes_of(memory))
    except (TypeError, BufferError) as error:
        raise type(error)(f"{name}: {error}") from None


def _type_name(item: Item) -> str:
    """Of its elements, the same for NumPy's and PyTorch's; "": any."""
    numpy = sys.modules.get("numpy")
    if item.of != "numpy" or numpy is None:
        return item.type
    try:
        return numpy.dtype(item.type).name
    except TypeError:  # what came is not believed
        return ""


def _count(items: List[Item]) -> str:
    return "1 buffer comes" if len(items) == 1 else f"{len(items)} buffers come"


def pack(items: Many) -> Tuple[bytes, List[Any]]:
    """The first message, and the large ones."""
    named = _named(items)
    found = [_item(name, memory) for name, memory in named]
    if len(found) > _ITEMS_MAX:
        raise UsageError(f"{len(found)} buffers in one broadcast, the limit is {_ITEMS_MAX}")
    text = json.dumps(
        {"is_dict": isinstance(items, dict), "items": [list(item) for item in found]},
        separators=(",", ":"),
    ).encode()
    if len(text) > _TEXT_MAX:
        raise UsageError(f"names and shapes have {len(text)} bytes, the limit is {_TEXT_MAX}")
    parts = [_HEAD.pack(_MAGIC, len(text)), text]
    large = []
    for item, (_, memory) in zip(found, named):
        if item.is_packed and item.of == "numpy":
            parts.append(memory.tobytes())
        elif item.is_packed:
            with memoryview(buffer_of(memory)) as view:
                parts.append(view.tobytes())
        else:
            large.append(memory)
    return b"".join(parts), large


class Coming:
    """What a first message announces, and how far it has come."""

    def __init__(self, first: memoryview) -> None:
        self.is_dict, self.items, self._packed = _read(first)
        self._into: Optional[List[Any]] = None
        self._memory: List[Any] = []  # of the items so far

    def check(self, into: Optional[Many]) -> None:
        """Remembers what they are received into. Raises UsageError where that does not fit, and
        nothing is lost."""
        if into is None or self._memory:
            return
        named = dict(_named(into))
        missing = [item.name for item in self.items if item.name not in named]
        beyond = named.keys() - {item.name for item in self.items}
        if missing or beyond:
            raise UsageError(
                f"{_count(self.items)}, and there are {len(named)} to fill: "
                + ", ".join(
                    [f"{name} is missing" for name in missing[:3]]
                    + [f"{name} does not come" for name in sorted(beyond)[:3]]
                )
            )
        for item in self.items:
            found = _item(item.name, named[item.name])
            if found.bytes != item.bytes:
                raise UsageError(f"{item.name} has {found.bytes} bytes, and {item.bytes} come")
            types = _type_name(found), _type_name(item)
            if all(types) and types[0] != types[1]:
                raise UsageError(f"{item.name} is of type {types[0]}, and {types[1]} comes")
        self._into = [named[item.name] for item in self.items]

    def large(self) -> List[Tuple[Optional[Any], int]]:
        """What is to be received, and into what; None: new memory."""
        into = [None] * len(self.items) if self._into is None else self._into
        return [
            (memory, item.bytes) for item, memory in zip(self.items, into) if not item.is_packed
        ]

    def finish(
        self,
        receive: Callable[[Optional[Any], int, Optional[float]], Any],
        timeout: Optional[float],
    ) -> Any:
        """All of them. `receive`(memory, bytes, seconds) gets a large one, into new memory if that
        is None. After a Timeout it goes on where it was."""
        due = None if timeout is None else time.monotonic() + timeout
        for item in self.items[len(self._memory) :]:
            target = None if self._into is None else self._into[len(self._memory)]
            if item.is_packed:
                memory = self._packed[: item.bytes]
                self._packed = self._packed[item.bytes :]
                if target is not None:
                    with memoryview(buffer_of(target)) as view:
                        if view.readonly:
                            raise UsageError(f"{item.name} cannot be written to")
                        if item.bytes > 0:  # a view of none cannot be cast
                            view.cast("B")[:] = memory
            else:
                left = None if due is None else max(due - time.monotonic(), 0)
                try:
                    memory = receive(target, item.bytes, left)
                except Timeout:
                    raise Timeout(f"{item.name} has not come") from None
                if len(memory) != item.bytes:
                    raise RejectedError(
                        f"{item.name} was to have {item.bytes} bytes, and {len(memory)} came"
                    )
            self._memory.append(memory if target is None else target)
        if self._into is not None:
            found = self._into
        else:
            found = [_build(item, memory) for item, memory in zip(self.items, self._memory)]
        if self.is_dict:
            return {item.name: memory for item, memory in zip(self.items, found)}
        return found


def _read(first: memoryview) -> Tuple[bool, List[Item], memoryview]:
    def refuse(what: str) -> RejectedError:
        return RejectedError(f"what came is not the first message of a broadcast of many: {what}")

    if len(first) < _HEAD.size:
        raise refuse(f"it has {len(first)} bytes")
    magic, text_bytes = _HEAD.unpack_from(first)
    if magic != _MAGIC:
        raise refuse("it does not begin as one")
    if text_bytes > min(_TEXT_MAX, len(first) - _HEAD.size):
        raise refuse(f"a text of {text_bytes} bytes in {len(first)}")

    def size(value: Any) -> int:
        if type(value) is not int or not 0 <= value < 1 << 63:
            raise ValueError(f"{value!r:.40} is no size")
        return value

    try:
        read = json.loads(bytes(first[_HEAD.size : _HEAD.size + text_bytes]))
        is_dict = read["is_dict"] is True
        if len(read["items"]) > _ITEMS_MAX:
            raise ValueError("too many")
        items = [
            Item(str(name), str(of), str(type_), tuple(map(size, shape)), size(bytes_))
            for name, of, type_, shape, bytes_ in read["items"]
        ]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise refuse(str(error)) from None
    packed = first[_HEAD.size + text_bytes :]
    if any(len(item.shape) > _SIDES_MAX for item in items):
        raise refuse("a shape that cannot be")
    if len({item.name for item in items}) != len(items):
        raise refuse("two buffers of one name")
    if sum(item.bytes for item in items if item.is_packed) != len(packed):
        raise refuse(f"its buffers do not have {len(packed)} bytes")
    return is_dict, items, packed


def _build(item: Item, memory: Any) -> Any:
    """What the root has, in `memory`: where this process does not have what that is of, a view with
    its type, or of bytes."""
    memory = memoryview(memory).cast("B")
    try:
        if item.of == "torch":
            return _tensor(item, memory)
        if item.of == "numpy" and re.fullmatch("[<>|=][biufcmMSUV][0-9]+", item.type):
            import numpy

            return numpy.frombuffer(memory, item.type).reshape(item.shape)
    except (ImportError, AttributeError, TypeError, ValueError, RuntimeError):
        pass
    return memory


def _tensor(item: Item, memory: memoryview) -> Any:
    import torch

    dtype = getattr(torch, item.type)
    if not isinstance(dtype, torch.dtype):
        raise TypeError(item.type)
    if math.prod(item.shape) * dtype.itemsize != item.bytes:
        raise ValueError(item.shape)
    if item.bytes == 0:
        return torch.empty(item.shape, dtype=dtype)
    if memory.readonly or memory.nbytes % dtype.itemsize != 0:
        memory = memoryview(bytearray(memory))
    return torch.frombuffer(memory, dtype=dtype).reshape(item.shape)
