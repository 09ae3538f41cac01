# SPDX-License-Identifier: Apache-2.0
"""Sessions and groups."""
import atexit
import contextlib
import ipaddress
import math
import tempfile
import threading
import time
import weakref
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    Type,
    Union,
)

from . import _check, _native
from ._errors import Error, RejectedError, Timeout, UsageError
from ._many import Coming, Many, begins_many, is_many, pack
from ._memory import buffer_of
from ._membership import Membership
from ._plan import Path, Plan, RolledPlan

if TYPE_CHECKING:
    from ._collectives import Collectives

#: The port of a member that gives none.
PORT = 7811

#: What a group keeps of messages that come before receive() does, unless Session.group()
#: is told otherwise.
BACKLOG_BYTES = 1 << 28

#: "host", "host:port", "[IPv6]:port" or (host, port).
Member = Union[str, Tuple[str, int]]


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text.partition("%")[0])
    except ValueError:
        return False
    return True


def _address(member: Member, name: str = "member") -> Tuple[str, int]:
    port: Union[str, int]
    if not isinstance(member, str):
        pair = _check.several(name, member, "an address, a str or (host, port)")
        if len(pair) != 2 or not isinstance(pair[0], str):
            raise UsageError(
                f"{name} is an address, a str or (host, port), not {type(member).__name__} of"
                f" {len(pair)}"
            )
        host, port = pair
    elif member.startswith("["):
        host, _, rest = member[1:].partition("]")
        port = rest[1:] if rest.startswith(":") else rest or PORT
    elif member.count(":") == 1:
        host, _, port = member.partition(":")
    else:  # a name, or IPv6 without a port
        host, port = member, PORT
        if ":" in member and not _is_ipv6(member):
            raise UsageError(
                f"{name} {member!r:.80}: of several colons, expected an IPv6 address; with a port"
                " it stands in brackets"
            )
    try:
        number = int(port)
    except (TypeError, ValueError):
        number = -1
    if not 0 <= number <= 65535:
        raise UsageError(f"{name} {member!r:.80}: a port is a number from 0 to 65535")
    return _check.text(name, host), number


def _milliseconds(name: str, seconds: float) -> int:
    return math.ceil(min(_check.seconds(name, seconds), 1e9) * 1000)


def _secret_of(secret: Union[bytes, str]) -> Union["_native.Secret", UsageError]:
    """The error is returned, too: raised here, or while the caller has the secret,
    its traceback would lead to it."""
    if isinstance(secret, str):
        try:
            return _native.Secret(secret.encode())
        except UnicodeEncodeError:
            return UsageError("secret has characters that UTF-8 does not have")
    if isinstance(secret, (bytes, bytearray, memoryview)):
        return _native.Secret(bytes(secret))
    return _check.wrong("secret", "bytes or a str", secret)


#: What Session.group() takes as `incoming`.
Incoming = Callable[[int, int], Any]


def _supply(incoming: Incoming) -> Incoming:
    def supply(message: int, bytes: int) -> Any:
        memory = incoming(message, bytes)
        return None if memory is None else buffer_of(memory)

    return supply


@contextlib.contextmanager
def _plan_file(plan: Union[Plan, RolledPlan, Path, None]) -> Iterator[str]:
    """The name of a file with the plan, which may be gone afterwards; "": there is none."""
    if not isinstance(plan, (Plan, RolledPlan)):
        yield "" if plan is None else _check.path("plan", plan, "a plan or a path")
        return
    with tempfile.NamedTemporaryFile(
        "w", prefix="prepost-", suffix=".json", encoding="utf-8"
    ) as file:
        file.write(plan.to_json("columns") if isinstance(plan, Plan) else plan.to_json())
        file.flush()
        try:
            yield file.name
        except Error as error:
            raise type(error)(str(error).replace(file.name, "the plan")) from None


#: Those that are to be closed before the interpreter ends,
#: since no thread may ask it for memory then.
_open: "weakref.WeakSet[Session]" = weakref.WeakSet()


@atexit.register
def _end() -> None:
    for session in list(_open):
        session._native.end()


class MemoryPool:
    """Buffers of one size, which messages of one group or several are received into:
    Session.group(pool=...).

    buffer_bytes: the size of each; a message that is larger ends its group.
    buffers: how many there are. While none is free the next message waits, and its senders with it.

    A buffer is taken by a message from its beginning on, and is free again when the memoryview that
    receive() returned is released: by release(), or when nothing refers to it or to what was made
    of it any more. Raises UsageError, and EnvironmentError where there is no memory.
    """

    def __init__(self, buffer_bytes: int, buffers: int) -> None:
        self._native = _native.MemoryPool(
            _check.number("buffer_bytes", buffer_bytes), _check.number("buffers", buffers, 32)
        )

    @property
    def buffer_bytes(self) -> int:
        """The size of a buffer."""
        return self._native.buffer_bytes

    @property
    def buffers(self) -> int:
        """How many there are."""
        return self._native.buffers

    @property
    def free_buffers(self) -> int:
        """How many of them no message has."""
        return self._native.free_buffers


class Session:
    """One member of a session: what groups are created with.

    self: this member's number, its place in `members`.
    members: where each member listens, as many at all members. Those that are not known yet are "";
        set_address() says it later. Port 0 of this member is any that is free.
    secret: what members prove to each other that they have, 16 to 4096 bytes. Messages are
        encrypted in groups with seal alone.
    bind: the address to listen at; "": this member's own or, if that is a name,
        all of this machine.
    waiting: "polling" (polls while a message is under way, and for `idle_max` after the last),
        "hybrid" (polls for as long as that has lately paid, `idle_max` at most, then sleeps) or
        "interrupt" (sleeps): the session's thread or, without own_thread, the caller's.
    failure_max: every survivor of a failure hears of it within, with the exceptions of
        docs/library.md ("Failures"); at least 0.1.
    connect_max: how long a group waits for members that are not there yet.
    local_copies: between members on one machine,
        messages go through memory, where that is allowed.
    own_thread: a thread of the session moves messages. Otherwise that happens only in calls that
        wait and in poll(), which is to be called whenever fileno() is readable.

    sites: the name of each member's site, the same at all members; None: all are at one. Plans of
        groups take each block to every site once, in whatever order a group names its members.
    streams: TCP connections, side by side,
        that a connection over a long path is made of, 1 to 16; 0: 8.
    pace: what this member sends to another, at most, in bytes/s; 0: no limit.
    congestion: the kernel's congestion control by name, as "bbr"; "": the system's.

    Times are in seconds. Raises UsageError, and EnvironmentError if the port is taken. May be used
    by any thread; use it in a `with` block, or close() it. A process that was forked since, by
    os.fork() or multiprocessing, has nothing of it: calls are UsageErrors there, and close() does
    nothing.
    """

    def __init__(
        this,
        *,
        self: int,
        members: Sequence[Member],
        secret: Union[bytes, str],
        bind: str = "",
        waiting: str = "hybrid",
        idle_max: float = 0.05,
        failure_max: float = 2.0,
        connect_max: float = 30.0,
        local_copies: bool = True,
        own_thread: bool = True,
        sites: Optional[Sequence[str]] = None,
        streams: int = 0,
        pace: float = 0,
        congestion: str = "",
    ) -> None:
        given = _secret_of(secret)
        del secret
        if isinstance(given, UsageError):
            raise given
        places = _check.several("members", members, "a list of addresses")
        this._number = _check.number("self", self, 32)
        this._members = len(places)
        this._native = _native.Session(
            this._number,
            [_address(it, f"members[{i}]") for i, it in enumerate(places)],
            given,
            _check.text("bind", bind),
            _check.choice("waiting", waiting, "polling", "hybrid", "interrupt"),
            _milliseconds("idle_max", idle_max),
            _milliseconds("failure_max", failure_max),
            _milliseconds("connect_max", connect_max),
            _check.flag("local_copies", local_copies),
            _check.flag("own_thread", own_thread),
            (
                []
                if sites is None
                else [
                    _check.text(f"sites[{i}]", it)
                    for i, it in enumerate(_check.several("sites", sites, "a list of names"))
                ]
            ),
            _check.number("streams", streams, 16),
            _check.seconds("pace", pace, "bytes/s"),
            _check.text("congestion", congestion),
        )
        _open.add(this)

    def group(
        self,
        number: int,
        members: Optional[Sequence[int]] = None,
        root: int = 0,
        *,
        algorithm: str = "auto",
        block_bytes: int = 0,
        plan: Union[Plan, RolledPlan, Path, None] = None,
        notify_delivered: bool = False,
        sync: bool = False,
        device: str = "",
        executor: str = "auto",
        pool: Optional[MemoryPool] = None,
        incoming: Optional[Incoming] = None,
        backlog_bytes: int = BACKLOG_BYTES,
        seal: bool = False,
        root_connects: bool = False,
    ) -> "Group":
        """Creates a group; returns at once.

        To be called by all `members` (numbers of the session's members, this one among them; None:
        all), each in its own time, with the same arguments up to `device`, and the same `seal`
        and `root_connects`.
        `number` is free here; any number of groups may exist at once.

        algorithm: a schedule of `prepost compile --algorithm`, or "auto".
        block_bytes: 0: chosen for each message.
        plan: in place of both a Plan or RolledPlan, or a file or folder of `prepost compile -o`;
            its nodes are the places in `members`. A rolled plan carries messages of any size, and
            this member's program of it is enough; others carry those of their own size only. Paths
            may differ between members.
        notify_delivered: Group.delivered and Group.wait_delivered() can be used;
            costs a notice from every member.
        sync: `incoming` returns mappings of files (mmap), and a message is there, and counts for
            `delivered`, when it is on the file's disk.
        device: over which NICs messages go: "" none, over TCP; a card of mlx5, such as "mlx5_0";
            any device of libibverbs, "verbs:NAME[,port=N][,gid=INDEX][,pkey=KEY]"; a provider of
            libfabric, "fabric:tcp"; "emulated", NICs in software, for sessions of one process.
            Members have devices of one kind, whatever theirs are called.
        executor: who moves messages over the device: "offload", the NIC; "cpu"; "auto",
            the NIC if the plan fits it.
        pool: where messages are received into, until receive()
            copies them or what it returned is released.
        incoming: in place of a pool: incoming(message, bytes) returns the memory for a message that
            begins: contiguous, writable, of `bytes` bytes or more. Not called for messages of 0
            bytes. A thread of the session calls it and waits for it, or the call that waits without
            own_thread; so it may not wait for the session itself. None ends the group, as does an
            exception, which sys.unraisablehook gets and all members' TransferError names.

        backlog_bytes: without both, messages that come before receive() does are kept in new
            memory, up to so many bytes together; one always is, whatever its size, and each counts
            for 4096 bytes at least. The next message waits, as for a pool, and its senders with it,
            until others were received.
        seal: all that members say to each other in the group is encrypted and authenticated;
            without a device. Nothing is copied from memory to memory then (local_copies).
        root_connects: the root opens all connections: for members that reach neither the root, as
            where it is behind NAT, nor each other. With algorithm "sequential".

        Raises UsageError, and EnvironmentError if the device cannot be used.
        """
        number, root = _check.number("number", number), _check.number("root", root, 32)
        chosen = (
            list(range(self._members)) if members is None else _check.numbers("members", members)
        )
        if pool is not None and not isinstance(pool, MemoryPool):
            raise _check.wrong("pool", "a MemoryPool", pool)
        if incoming is not None and not callable(incoming):
            raise _check.wrong("incoming", "a function", incoming)
        is_root = self._number == root
        if sync and not is_root and incoming is None and pool is None:
            raise UsageError(
                f"cannot create group {number}: with sync, incoming returns mappings of files"
            )
        with _plan_file(plan) as path:
            native = self._native.create_group(
                number,
                chosen,
                root,
                algorithm=_check.text("algorithm", algorithm),
                block_bytes=_check.number("block_bytes", block_bytes),
                plan=path,
                notify_delivered=_check.flag("notify_delivered", notify_delivered),
                sync=_check.flag("sync", sync),
                device=_check.text("device", device),
                executor=_check.text("executor", executor),
                pool=None if pool is None else pool._native,
                incoming=None if incoming is None else _supply(incoming),
                backlog_bytes=_check.number(
                    "backlog_bytes", backlog_bytes, 64, "a number of bytes"
                ),
                seal=_check.flag("seal", seal),
                root_connects=_check.flag("root_connects", root_connects),
            )
        return Group(native, self, is_root)

    def collectives(
        self,
        number: int,
        members: Optional[Sequence[int]] = None,
        *,
        deterministic: bool = False,
        seal: bool = False,
    ) -> "Collectives":
        """Creates a group for calls of collectives: allreduce(), broadcast() from any member, and
        so on. Returns at once.

        To be called by all `members`, as group() is; the first of them leads the group. Two are
        connected when a call first uses that.

        deterministic: sums of floats are added in one order whatever the size of the arrays; an
            allreduce takes n/(n-1) of its time then, 1.14 for 8 members.
        seal: all that members say to each other is encrypted and authenticated.
        """
        from ._collectives import Collectives

        number = _check.number("number", number)
        chosen = (
            list(range(self._members)) if members is None else _check.numbers("members", members)
        )
        native = self._native.create_calls(
            number,
            chosen,
            _check.flag("deterministic", deterministic),
            _check.flag("seal", seal),
        )
        return Collectives(native, self, chosen)

    def set_address(self, member: int, address: Member) -> None:
        """Where another member listens, for the groups that are created from now on."""
        self._native.set_address(_check.number("member", member, 32), *_address(address, "address"))

    @property
    def port(self) -> int:
        """The port that it listens at."""
        return self._native.port

    def fileno(self) -> int:
        """A file that is readable when poll() has something to do or to report, for select() and
        asyncio's add_reader()."""
        return self._native.fileno()

    def poll(self, timeout: Optional[float] = 0) -> bool:
        """Whether something happened to a group since the last call; waits for it for up to
        `timeout` seconds (None: for ever).

        Without own_thread it also moves messages. What happened is seen in the groups: available,
        sent, opened and so on.
        """
        return self._native.poll(_check.timeout(timeout))

    def close(self) -> None:
        """Leaves all groups; where they were not destroyed, the other members see a failure.
        May be called twice."""
        self._native.close()

    def __enter__(self) -> "Session":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()


class Paths(NamedTuple):
    """From how many peers, the members that it receives from or sends to,
    a member has blocks which way: Group.paths()."""

    #: Through memory.
    memory: int
    #: Over TCP.
    network: int
    #: Of those over TCP: peers on this machine with which the system does not let this process
    #: share memory.
    forbidden: int
    #: With how many neighbours in the tree of short messages, which are not moved by plans, these
    #: go through memory that both map,
    short_memory: int = 0
    #: and over TCP. Both 0: there are no short messages.
    short_network: int = 0


class Group(Membership):
    """A group of a session: Session.group() makes it.

    The root sends messages of any size, and every other member receives them, in order. Calls that
    wait let other threads run, are interrupted by Ctrl-C and other signals whose handlers raise,
    and end with Timeout after `timeout` seconds (None: never). All raise TransferError once
    something failed anywhere in the group. In a `with` block, destroy() is called in the end or,
    where an exception leaves it, abort(), with the exception's name and text.
    """

    def __init__(self, native: "_native.Group", session: Session, is_root: bool) -> None:
        super().__init__(native)
        self._session = session  # which stays open as long as the group is used
        self._is_root = is_root
        self._sending = threading.Lock()  # messages that belong together stay together
        self._coming: Optional[Coming] = None  # what receive_many() has begun
        self._kept: Optional[memoryview] = None  # a message that receive_many() did not want

    def broadcast(self, buffer: Any = None, timeout: Optional[float] = None) -> Any:
        """Sends `buffer` at the root and receives it elsewhere; returns the message.

        At the root: waits until the memory of `buffer` may be changed, and returns `buffer`.
        Elsewhere as receive(buffer, timeout), but a message of fewer bytes than `buffer` has, which
        fills its beginning, raises RejectedError. Of many, a list or a dict of buffers, as
        send_many() and receive_many(), also where `buffer` is None.
        """
        if not self._is_root:
            if is_many(buffer) or (buffer is None and self._coming is not None):
                return self.receive_many(buffer, timeout)
            seconds = _check.timeout(timeout)
            due = None if seconds is None else time.monotonic() + seconds
            message = self.receive(buffer, seconds)
            if buffer is None and begins_many(message):
                self._kept = message
                left = None if due is None else max(due - time.monotonic(), 0)
                try:
                    return self.receive_many(None, left)
                except RejectedError:
                    if self._coming is not None:
                        raise
                    self._kept = None  # it only begins as one
            room = message.nbytes if buffer is None else memoryview(buffer_of(buffer)).nbytes
            if message.nbytes != room:
                raise RejectedError(
                    f"the message has {message.nbytes} bytes, the buffer {room}: its beginning is "
                    "filled; receive() takes a message of any size that fits"
                )
            return message
        if buffer is None:
            raise UsageError("broadcast() at the root needs a buffer to send")
        seconds = _check.timeout(timeout)
        (self.send_many if is_many(buffer) else self.send)(buffer)
        self.wait_sent(seconds)
        return buffer

    def send_many(self, items: Many) -> int:
        """At the root: queues many buffers at once, a list or a dict with names, of any types and
        sizes; returns the number of the last message.

        What they are goes with the first message, and those of less than 64 KiB are copied into it;
        each larger one is a message of its own, as with send(). Elsewhere receive_many() takes all
        of them together.
        """
        first, large = pack(items)
        buffers = [buffer_of(memory) for memory in large]
        with self._sending:
            number = self._native.send(first)
            for buffer in buffers:
                number = self._native.send(buffer)
        return number

    def receive_many(self, into: Optional[Many] = None, timeout: Optional[float] = None) -> Any:
        """Elsewhere than at the root: what it has sent by send_many(), as a list or a dict.

        into: a list or a dict of memory to be filled, with the same names, sizes and, where both
        are arrays or tensors, types of elements, which is returned; UsageError says what does not
        fit, and the next call gets them again. None: arrays of NumPy or tensors of PyTorch in new
        memory, where the root's are and this process has these packages; else memoryviews of bytes.
        After a Timeout the next call goes on, with the same `into`. A message that is none of
        send_many()'s raises RejectedError, and receive() gets it.
        """
        seconds = _check.timeout(timeout)
        due = None if seconds is None else time.monotonic() + seconds
        if self._coming is None:
            message = self.receive(None, seconds)
            try:
                self._coming = Coming(message)
            except RejectedError:
                self._kept = message
                raise
        self._coming.check(into)
        left = None if due is None else max(due - time.monotonic(), 0)
        found = self._coming.finish(
            lambda memory, _, seconds_left: self.receive(memory, seconds_left), left
        )
        self._coming = None
        return found

    def send(self, buffer: Any) -> int:
        """At the root: queues a message, and returns its number, from 0 on; does not wait.

        `buffer` is anything with contiguous memory: bytes, bytearray, memoryview, mmap, array,
        NumPy arrays, tensors of PyTorch on the CPU, of all types and parameters of models among
        them. It is not copied: it must not be changed, and cannot be resized, until `sent` is more
        than that number.
        """
        with self._sending:
            return self._native.send(buffer_of(buffer))

    def receive(self, into: Any = None, timeout: Optional[float] = None) -> memoryview:
        """Elsewhere than at the root: the oldest message that was not received yet, as a writable
        memoryview of bytes.

        into: the memory for it, contiguous and writable, of the message's size or more; the result
        is the part that it fills. A message that comes during the call is received in place; one
        that came before is copied, and so are all of groups with a pool or `incoming`. None: the
        memory that the message is in: of the pool, what `incoming` returned, or new memory. Where
        `into` is too small it raises UsageError, and the next call gets the same message. A timeout
        of 0 asks for what is there.

        After a Timeout or Ctrl-C a message that has begun to come still goes into `into`;
        the next call returns it. One thread at a time receives messages of a group: a second one
        raises UsageError.
        """
        if self._is_root:
            raise UsageError(
                f"cannot receive from group {self.number}: this member is its root, which sends"
            )
        seconds = _check.timeout(timeout)
        if self._kept is None:
            return memoryview(
                self._native.receive(None if into is None else buffer_of(into), seconds)
            )
        if into is None:
            message, self._kept = self._kept, None
            return message
        view = memoryview(buffer_of(into)).cast("B")
        if view.nbytes < self._kept.nbytes or view.readonly:
            raise UsageError(
                f"the buffer has {view.nbytes} writable bytes, the message {self._kept.nbytes}"
            )
        view = view[: self._kept.nbytes]
        view[:], self._kept = self._kept, None
        return view

    def _check_root(self, call: str) -> None:
        if not self._is_root:
            raise UsageError(f"{call} is for the root of group {self.number}, which sends")

    def wait_sent(self, timeout: Optional[float] = None) -> None:
        """At the root: waits until the memory of all messages that were queued before the call may
        be changed."""
        seconds = _check.timeout(timeout)
        self._check_root("wait_sent()")
        self._native.wait_sent(seconds)

    def wait_delivered(self, timeout: Optional[float] = None) -> None:
        """At the root: waits until all members have all messages that were queued before the call.
        Needs notify_delivered."""
        seconds = _check.timeout(timeout)
        self._check_root("wait_delivered()")
        self._native.wait_delivered(seconds)

    def wait_opened(self, timeout: Optional[float] = None) -> None:
        """Waits until this member's connections are there. Nothing needs it:
        messages may be sent before."""
        self._native.wait_opened(_check.timeout(timeout))

    def enter_barrier(self) -> int:
        """As barrier(), but does not wait: the barrier is passed when `barriers` has reached the
        result."""
        return self._native.enter_barrier()

    def barrier(self, timeout: Optional[float] = None) -> None:
        """Waits until all members have called it as often as this one has.
        Says nothing about messages.

        After a Timeout this member still counts as being there.
        """
        seconds = _check.timeout(timeout)
        self._native.wait_barrier(self._native.enter_barrier(), seconds)

    def paths(self) -> Paths:
        """How blocks come to this member. Known from `opened` on;
        before that and over a device all 0."""
        return Paths(*self._native.paths())

    def notes(self) -> List[str]:
        """What whoever runs the program may want to know of the group's paths, a sentence each: how
        often blocks cross between sites, members that are farther away than their sites say,
        buffers of this system that are too small for a long path. Known from `opened` on; empty
        before."""
        return self._native.notes()

    def _leave(self) -> None:
        """destroy(), unless messages that nobody receives any more are in its way."""
        while True:
            before = self.available
            try:
                return self.destroy(timeout=1)
            except Timeout:
                if not (self._native.lacks_room and self.available == before):
                    continue
            count = "1 message" if before == 1 else f"{before} messages"
            why = f"left group {self.number} with {count} not received, and no room for the next"
            self.abort(why)
            raise UsageError(f"{why}: receive() them first, or abort() the group")

    def start_destroy(self) -> None:
        """As destroy(), but does not wait: `closed` says when it is done."""
        if not self._is_left:
            self._native.destroy()
        self._is_left = True

    @property
    def available(self) -> int:
        """How many messages receive() would return at once."""
        return self._native.available

    @property
    def messages(self) -> int:
        """How many messages this member has, the first ones of the group: at the root those that
        were sent and whose memory may be changed. Also after a failure, when others may have more
        or fewer: a new group can tell them. receive() still returns those that it has not yet."""
        return self._native.messages

    @property
    def sent(self) -> int:
        """At the root: how many messages' memory may be changed."""
        return self._native.sent

    @property
    def delivered(self) -> int:
        """At the root, with notify_delivered: how many messages all members have."""
        return self._native.delivered

    @property
    def barriers(self) -> int:
        """How many barriers were passed."""
        return self._native.barriers
