# SPDX-License-Identifier: Apache-2.0
"""Sessions and groups from Python: the members of each are threads of this process.
The command is PREPOST_COMMAND."""
import array
import asyncio
import contextlib
import gc
import importlib.util
import mmap
import multiprocessing
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import threading
import types
import unittest
import unittest.mock
import weakref

import numpy

import prepost

SECRET = b"a secret \0 of more than 16 bytes"
TIMEOUT = 20  # of what has to come


def addresses(count):
    process = os.getpid()
    return [f"127.{216 + i}.{process >> 8 & 255}.{process & 255}" for i in range(count)]


def many():
    """Buffers of all kinds: small, large, empty, of types and shapes."""
    return {
        "weights": numpy.arange(300_000, dtype="float32").reshape(300, 1000),
        "bias": numpy.arange(10, dtype="<i8"),
        "mask": numpy.array([True, False, True]),
        "empty": numpy.empty((0, 3), dtype="float64"),
        "scalar": numpy.array(2.5),
        "text": b"words",
        "limit": bytearray(65536),
        "below": bytearray(b"x" * 65535),
    }


class Members:
    """The sessions of `count` members; run() calls a function for each, in a thread of its own."""

    def __init__(self, count, **options):
        self.sessions = [
            prepost.Session(self=i, members=addresses(count), secret=SECRET, **options)
            for i in range(count)
        ]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for session in self.sessions:
            session.close()

    def groups(self, number=1, **options):
        return [session.group(number, **options) for session in self.sessions]

    @staticmethod
    def run(function, groups):
        results = [None] * len(groups)

        def call(i):
            try:
                results[i] = function(i, groups[i])
            except BaseException as error:  # seen by the caller
                results[i] = error

        threads = [threading.Thread(target=call, args=(i,)) for i in range(len(groups))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return results


class FakeTensor:
    """Of the tensors of PyTorch what sending and filling them takes, with the errors of theirs."""

    def __init__(self, shape, dtype="float32", requires_grad=False, device="cpu", values=None):
        width = {"float32": 4, "bfloat16": 2, "uint8": 1}[dtype]
        self.values = numpy.zeros((*shape, width), dtype="u1") if values is None else values
        self.dtype, self.requires_grad, self.device = (
            dtype,
            requires_grad,
            types.SimpleNamespace(type=device),
        )

    def _like(self, values, dtype=None):
        return FakeTensor((), dtype or self.dtype, self.requires_grad, self.device.type, values)

    def is_contiguous(self):
        return self.values.flags.c_contiguous

    def t(self):
        return self._like(self.values.swapaxes(0, 1))

    def detach(self):
        return FakeTensor((), self.dtype, False, self.device.type, self.values)

    def reshape(self, size):
        assert size == -1
        return self._like(self.values.reshape(-1, self.values.shape[-1]))

    def view(self, dtype):
        if self.values.ndim < 2:
            raise RuntimeError(
                "self.dim() cannot be 0 to view Float as Byte (different element sizes)"
            )
        if self.requires_grad:
            raise RuntimeError("view() of a tensor that requires grad to a type that has none")
        return self._like(self.values.reshape(-1, 1), dtype)

    def numpy(self):
        if self.device.type != "cpu":
            raise TypeError("can't convert cuda:0 device type tensor to numpy")
        if self.requires_grad:
            raise RuntimeError(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy()"
                " instead."
            )
        if self.dtype == "bfloat16":
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self.values.reshape(-1)

    def fill(self, content):
        self.values.reshape(-1)[:] = numpy.frombuffer(content, dtype="u1")

    def content(self):
        return self.values.tobytes()


class TensorLike:
    """What other tensors have: no buffer protocol, but numpy() on the same memory."""

    def __init__(self, values):
        self.values = values

    def numpy(self):
        return self.values


class Buffers(unittest.TestCase):
    # Catches memory that is copied too early or freed too late, and a lock that a wait keeps:
    # all members would hang.
    def test_anything_with_a_buffer_is_sent_and_filled(self):
        content = os.urandom(300_001)
        with tempfile.TemporaryFile() as file, Members(3) as members:
            file.write(content)
            file.flush()
            with mmap.mmap(file.fileno(), len(content)) as mapped:
                sources = [
                    content,
                    bytearray(content),
                    memoryview(content),
                    array.array("B", content),
                    mapped,
                    numpy.frombuffer(content, dtype="u1"),
                    TensorLike(numpy.frombuffer(content, dtype="u1")),
                ]
                groups = members.groups()
                for source in sources:
                    numbers = numpy.zeros((len(content) + 7) // 8, dtype=">f8").reshape(
                        1, -1
                    )  # larger, and of another kind
                    filled = [source, bytearray(len(content)), TensorLike(numbers)]
                    results = members.run(
                        lambda i, group: (group.receive if i else group.broadcast)(
                            filled[i], TIMEOUT
                        ),
                        groups,
                    )
                    self.assertIs(results[0], source)
                    self.assertEqual(filled[1], content)
                    self.assertEqual(numbers.tobytes()[: len(content)], content)
                    for result in results[1:]:
                        self.assertEqual(
                            (result.nbytes, result.format, result.readonly),
                            (len(content), "B", False),
                        )
                        self.assertEqual(result, content)
                        result.release()
                new = members.run(
                    lambda i, group: group.broadcast(content if i == 0 else None, TIMEOUT), groups
                )
                self.assertEqual(new[1], content)
                new[1][0] ^= 255  # is the caller's
                self.assertEqual(
                    members.run(
                        lambda i, group: bytes(group.broadcast(b"" if i == 0 else None, TIMEOUT)),
                        groups,
                    ),
                    [b""] * 3,
                )
                members.run(lambda i, group: group.destroy(TIMEOUT), groups)
                self.assertTrue(all(group.closed for group in groups))

    # Catches parameters, whose numpy() raises, and types that NumPy does not have.
    def test_tensors(self):
        fake = types.SimpleNamespace(Tensor=FakeTensor, uint8="uint8")
        with unittest.mock.patch.dict(sys.modules, torch=fake), Members(2) as members:
            groups = members.groups()
            for shape, dtype, requires_grad in (
                ((3, 5), "float32", True),
                ((7,), "bfloat16", False),
                ((2, 2), "bfloat16", True),
                ((), "float32", True),
                ((0,), "float32", False),
            ):
                with self.subTest(shape=shape, dtype=dtype, requires_grad=requires_grad):
                    tensors = [FakeTensor(shape, dtype, requires_grad) for _ in range(2)]
                    tensors[0].fill(os.urandom(tensors[0].values.size))
                    results = members.run(
                        lambda i, group: group.broadcast(tensors[i], TIMEOUT), groups
                    )
                    self.assertIs(results[0], tensors[0])
                    self.assertEqual(tensors[1].content(), tensors[0].content())
            for error, text, wrong in (
                (BufferError, "is not contiguous", FakeTensor((2, 3)).t()),
                (TypeError, "only memory of the CPU", FakeTensor((2, 3), device="cuda")),
            ):
                with self.assertRaisesRegex(error, text):
                    groups[0].send(wrong)
                with self.assertRaisesRegex(error, text):
                    groups[1].receive(wrong, 0)

    # Catches pointers that are sent for values, at both ends, and NumPy's words for what is wrong.
    def test_memory_that_is_no_values(self):
        with Members(2) as members:
            groups = members.groups()
            for error, text, wrong in (
                (TypeError, "references to objects", numpy.array([[1], "a"], dtype=object)),
                (
                    TypeError,
                    "references to objects",
                    numpy.zeros(2, dtype=[("Of", "i4"), ("b", "O")]),
                ),
                (TypeError, "cannot include dtype 'M'", numpy.zeros(3, dtype="datetime64[s]")),
                (BufferError, "in the order of C", numpy.asfortranarray(numpy.ones((2, 3)))),
            ):
                with self.subTest(text=text):
                    with self.assertRaisesRegex(error, text):
                        groups[0].send(wrong)
                    with self.assertRaisesRegex(error, text):
                        groups[1].receive(wrong, 0)
            named = numpy.ones(2, dtype=[("Of", "i4")])
            into = numpy.zeros(2, dtype=[("Of", "i4")])
            members.run(
                lambda i, group: group.broadcast(named if i == 0 else into, TIMEOUT), groups
            )
            self.assertEqual(into.tolist(), named.tolist())

    # Catches waits that cannot be repeated, and an end of `with` that fails after start_destroy().
    def test_destroy_again(self):
        with Members(2) as members:
            groups = members.groups()
            with self.assertRaises(prepost.Timeout):
                groups[0].destroy(0.05)
            with groups[1] as group:
                group.start_destroy()
            groups[0].destroy(TIMEOUT)
            groups[0].destroy(TIMEOUT)

    @unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")
    def test_tensors_of_pytorch(self):
        import torch

        with Members(2) as members:
            groups = members.groups()
            for dtype in (
                torch.float32,
                torch.float64,
                torch.bfloat16,
                torch.float16,
                torch.complex64,
            ):
                for shape in ((30, 7), (), (0,)):
                    with self.subTest(dtype=dtype, shape=shape):
                        tensors = [
                            torch.nn.Parameter(torch.randn(shape, dtype=dtype)) for _ in range(2)
                        ]
                        members.run(lambda i, group: group.broadcast(tensors[i], TIMEOUT), groups)
                        self.assertTrue(torch.equal(*tensors))
            for values in (torch.arange(100), torch.tensor([True, False])):
                filled = torch.zeros_like(values)
                members.run(lambda i, group: group.broadcast((values, filled)[i], TIMEOUT), groups)
                self.assertTrue(torch.equal(filled, values))
            with self.assertRaisesRegex(BufferError, "not contiguous"):
                groups[0].send(torch.zeros(2, 3).t())

    # Catches memory that grows without bound where nobody receives,
    # and messages that then never come.
    def test_backlog(self):
        def send(group, messages):
            for message in messages:
                group.send(message)
            group.wait_sent(TIMEOUT)

        def receive(session, group, sizes, kept):
            while group.available < kept:
                self.assertTrue(session.poll(TIMEOUT))
            for _ in range(4):
                session.poll(0.05)
                self.assertEqual(group.available, kept)
            buffer = bytearray(max(sizes))
            return [
                bytes(group.receive(buffer if i % 2 else None, TIMEOUT)) for i in range(len(sizes))
            ]

        cases = (
            ([100_000] * 10, 250_000, 2),
            ([0, 1, 4096, 0, 5], 8192, 2),
            ([300_000] * 3, 10, 1),
        )
        for options, own_thread in (({}, True), ({}, False), ({"device": "emulated"}, True)):
            with Members(2, own_thread=own_thread) as members:
                for number, (sizes, backlog_bytes, kept) in enumerate(cases):
                    with self.subTest(options=options, own_thread=own_thread, sizes=sizes):
                        groups = members.groups(number, backlog_bytes=backlog_bytes, **options)
                        messages = [os.urandom(size) for size in sizes]
                        results = members.run(
                            lambda i, group: (
                                send(group, messages)
                                if i == 0
                                else receive(members.sessions[1], group, sizes, kept)
                            ),
                            groups,
                        )
                        self.assertEqual(results[1], messages)
                        members.run(lambda i, group: group.destroy(TIMEOUT), groups)
        with Members(1) as members, self.assertRaisesRegex(
            prepost.UsageError, "backlog_bytes is a number of bytes from 0 to [0-9]+, not -1"
        ):
            members.sessions[0].group(1, backlog_bytes=-1)

    def test_memory_that_does_not_do(self):
        with Members(1) as members:
            [group] = members.groups()
            for wrong in (numpy.zeros((4, 4))[:, 1], memoryview(b"abcd")[::2], 7, "text", None):
                with self.assertRaises((BufferError, TypeError, ValueError)):
                    group.send(wrong)
            with self.assertRaisesRegex(prepost.UsageError, "at the root needs a buffer"):
                group.broadcast()
            with self.assertRaisesRegex(
                prepost.UsageError,
                "^cannot receive from group 1: this member is its root, which sends$",
            ):
                group.receive()
        with Members(2) as members:
            with self.assertRaises(BufferError):
                members.groups()[1].receive(b"not to be written", 0)

    # Catches a buffer that may be freed, or moves, while the library reads it;
    # and one that stays held.
    def test_a_buffer_stays_until_it_is_sent(self):
        buffer = bytearray(b"message")
        session = prepost.Session(self=0, members=addresses(2), secret=SECRET)
        group = session.group(1)
        self.assertEqual(group.send(buffer), 0)
        self.assertEqual(group.sent, 0)
        with self.assertRaises(BufferError):
            buffer.append(1)
        with self.assertRaises(prepost.Timeout):
            group.wait_sent(0.01)
        session.close()
        buffer.append(1)
        with self.assertRaisesRegex(prepost.UsageError, "^the session is closed$"):
            group.wait_sent()
        with self.assertRaisesRegex(prepost.UsageError, "^the session is closed$"):
            session.group(2)

    def test_messages_that_came_before(self):
        with Members(2) as members:
            root, other = members.groups(notify_delivered=True)
            for message in (b"one", b"two", b"three"):
                root.send(message)
            root.wait_delivered(TIMEOUT)
            self.assertEqual((root.sent, root.delivered), (3, 3))
            while other.available < 3:
                self.assertTrue(members.sessions[1].poll(TIMEOUT))
            small = bytearray(2)
            with self.assertRaisesRegex(
                prepost.UsageError, "the message has 3 bytes, the buffer 2"
            ):
                other.receive(small)
            self.assertEqual(bytes(other.receive(timeout=0)), b"one")
            large = bytearray(b"......")
            self.assertEqual(bytes(other.receive(large)), b"two")
            self.assertEqual(large, b"two...")
            self.assertEqual(bytes(other.receive()), b"three")
            with self.assertRaises(prepost.Timeout):
                other.receive(timeout=0)


class Memory(unittest.TestCase):
    # Catches buffers that are given back too early, by the wrong one, or never.
    def test_pool(self):
        pool = prepost.MemoryPool(1 << 16, 2)
        self.assertEqual((pool.buffer_bytes, pool.buffers, pool.free_buffers), (1 << 16, 2, 2))
        with Members(2) as members:
            groups = [
                [
                    session.group(number, pool=pool if i == 1 else None, notify_delivered=True)
                    for i, session in enumerate(members.sessions)
                ]
                for number in (1, 2)
            ]
            (root, other), (root2, other2) = groups
            messages = [bytes([i]) * (1 << 16) for i in range(4)]
            for message in messages:
                root.send(message)
            first, second = other.receive(timeout=TIMEOUT), other.receive(timeout=TIMEOUT)
            self.assertEqual((first, second), (messages[0], messages[1]))
            self.assertEqual((first.nbytes, first.format, first.readonly), (1 << 16, "B", False))
            root2.send(b"two")  # of the other group, which has no buffer either
            for group in (other, other2):
                with self.assertRaises(prepost.Timeout):
                    group.receive(timeout=0.05)
            self.assertEqual((root.delivered, pool.free_buffers), (2, 0))
            part = numpy.frombuffer(first[1:9], dtype="u1")
            first.release()
            self.assertEqual(pool.free_buffers, 0)  # as long as somebody has a part of it
            self.assertEqual(part.tobytes(), bytes(8))
            del part
            second.release()
            into = bytearray(1 << 16)
            for message in messages[2:]:
                self.assertEqual(
                    other.receive(into, TIMEOUT), message
                )  # copied, and given back at once
            root.wait_delivered(TIMEOUT)
            self.assertEqual(bytes(other2.receive(timeout=TIMEOUT)), b"two")
            root.send(b"")
            self.assertEqual(bytes(other.receive(timeout=TIMEOUT)), b"")
            self.assertEqual(pool.free_buffers, 2)
            # What nobody can take any more is given back.
            root2.send(b"not taken")
            root2.wait_delivered(TIMEOUT)
            while other2.available == 0:
                members.sessions[1].poll(TIMEOUT)
            self.assertEqual(pool.free_buffers, 1)
            del other2, group, groups
            self.assertEqual(pool.free_buffers, 2)
            for _ in range(3):
                root2.send(b"nobody is there")
            root2.wait_delivered(TIMEOUT)
            root.send(bytes((1 << 16) + 1))
            with self.assertRaisesRegex(
                prepost.TransferError,
                "cannot take message 5 of 65537 bytes: the buffers of its pool",
            ):
                other.receive(timeout=TIMEOUT)
            with self.assertRaisesRegex(prepost.UsageError, "have no file to be synced to"):
                members.sessions[1].group(4, pool=pool, sync=True)
            with self.assertRaisesRegex(prepost.UsageError, "both a pool and `incoming`"):
                members.sessions[1].group(4, pool=pool, incoming=lambda message, bytes: None)
        with self.assertRaisesRegex(prepost.UsageError, "a pool has buffers"):
            prepost.MemoryPool(1, 0)

    # Catches a pool that is freed before its buffers.
    def test_what_is_received_outlives_pool_and_session(self):
        with Members(2) as members:
            root, other = members.groups(pool=prepost.MemoryPool(100, 1))
            root.send(b"message")
            message = other.receive(timeout=TIMEOUT)
        del members, root, other
        gc.collect()
        self.assertEqual(bytes(message), b"message")

    # Catches memory that is copied, and a lock of the interpreter that callbacks take while
    # somebody waits for them.
    def test_incoming_supplies_the_memory(self):
        for own_thread in (True, False):
            with self.subTest(own_thread=own_thread), Members(2, own_thread=own_thread) as members:
                asked, memory = [], numpy.zeros(4, dtype=">f8")

                def incoming(message, bytes):
                    asked.append((message, bytes))
                    with self.assertRaisesRegex(prepost.UsageError, "incoming may neither wait"):
                        groups[1].wait_opened()
                    with self.assertRaisesRegex(prepost.UsageError, "incoming may neither wait"):
                        members.sessions[1].close()
                    return TensorLike(memory)

                groups = [
                    members.sessions[0].group(1),
                    members.sessions[1].group(1, incoming=incoming),
                ]
                for message in (b"seven..", b"", bytes(range(32))):
                    results = members.run(
                        lambda i, group: group.broadcast(message if i == 0 else None, TIMEOUT),
                        groups,
                    )
                    self.assertEqual(bytes(results[1]), message)
                self.assertEqual(memory.tobytes(), bytes(range(32)))
                self.assertEqual(asked, [(0, 7), (2, 32)])
                into = bytearray(32)
                members.run(
                    lambda i, group: (
                        group.send(b"copied") if i == 0 else group.receive(into, TIMEOUT)
                    ),
                    groups,
                )
                self.assertEqual((into[:6], memory.tobytes()[:6]), (b"copied", b"copied"))
                with self.assertRaisesRegex(prepost.RejectedError, "has 5 bytes, the buffer 32"):
                    members.run(
                        lambda i, group: group.broadcast(b"short" if i == 0 else into, TIMEOUT),
                        groups,
                    )
                alive = weakref.ref(incoming)
                members.run(lambda i, group: group.destroy(TIMEOUT), groups)
                del incoming, results
                gc.collect()
                self.assertIsNone(alive())

    def test_incoming_that_has_no_memory(self):
        def wrong(message, bytes):
            raise KeyError("mine")

        unraisable, reported = sys.unraisablehook, []
        self.addCleanup(setattr, sys, "unraisablehook", unraisable)
        sys.unraisablehook = lambda it: reported.append(it.exc_type)
        for incoming, why in (
            (lambda message, bytes: None, "$"),
            (wrong, ".*KeyError: 'mine'"),
            (lambda message, bytes: b"not to be written", ".*BufferError: "),
            (
                lambda message, bytes: bytearray(bytes - 1),
                ".*ValueError: the memory for message 0 has 6 bytes",
            ),
        ):
            with Members(2) as members:
                root, other = members.sessions[0].group(1), members.sessions[1].group(
                    1, incoming=incoming
                )
                root.send(b"message")
                for group in (root, other):
                    with self.assertRaisesRegex(
                        prepost.TransferError,
                        "member 1 has no memory for message 0 of 7 bytes" + why,
                    ):
                        group.barrier(TIMEOUT)
        self.assertEqual(reported, [KeyError, BufferError, ValueError])

    # Catches members that wait for one whose program has failed,
    # as long as that has its session open.
    def test_an_exception_in_with_ends_the_group(self):
        for own_thread in (True, False):
            with self.subTest(own_thread=own_thread), Members(3, own_thread=own_thread) as members:

                def play(i, session):
                    with session.group(1) as group:
                        group.broadcast(b"first" if i == 0 else None, TIMEOUT)
                        if i == 1:
                            raise LookupError("mine")

                def end(i, session):
                    with self.assertRaises(
                        LookupError if i == 1 else prepost.TransferError
                    ) as raised:
                        play(i, session)
                    return str(raised.exception)

                texts = members.run(end, members.sessions)
                self.assertEqual(texts[1], "mine")
                for text in (texts[0], texts[2]):
                    self.assertRegex(text, "member 1 has aborted the group: LookupError: mine")

    # Catches locks and threads of the parent's that a child waits for, views that it frees, and
    # calls that are no errors.
    def test_a_forked_child_has_nothing_of_its_parents_sessions(self):
        def child(session, group, pool, context):
            with self.assertRaisesRegex(prepost.UsageError, "before this process was forked"):
                group.send(b"x")
            for call in (
                group.receive,
                group.barrier,
                group.wait_opened,
                group.paths,
                group.start_destroy,
                session.poll,
                session.fileno,
                lambda: session.group(3),
                lambda: session.set_address(1, "a"),
                lambda: group.available,
                lambda: group.closed,
            ):
                self.assertRaises(prepost.UsageError, call)
            self.assertIsInstance(group.failure, prepost.UsageError)
            group.abort()
            context.close()
            session.close()
            del group, session, pool, context
            gc.collect()

        pool = prepost.MemoryPool(1000, 2)
        with Members(2) as members:
            groups = [members.sessions[0].group(1), members.sessions[1].group(1, pool=pool)]
            groups[0].send(bytes(1000))
            received = groups[1].receive(timeout=TIMEOUT)
            for group, session in zip(groups, members.sessions):
                pid = os.fork()
                if pid == 0:
                    code = 1
                    try:
                        signal.alarm(TIMEOUT)
                        context = contextlib.ExitStack()
                        context.enter_context(session)
                        context.enter_context(group)
                        child(session, group, pool, context)
                        received.release()
                        code = 0
                    finally:
                        os._exit(code)
                self.assertEqual(os.waitpid(pid, 0)[1], 0)
            process = multiprocessing.get_context("fork").Process(
                target=groups[0].send, args=(b"x",)
            )
            with open(os.devnull, "w") as nowhere, unittest.mock.patch.object(
                sys, "stderr", nowhere
            ):
                process.start()
            process.join(TIMEOUT)
            self.assertEqual(process.exitcode, 1)  # a UsageError
            results = members.run(
                lambda i, group: group.broadcast(b"on" if i == 0 else None, TIMEOUT), groups
            )
            self.assertEqual(results[1], b"on")
            results[1].release()

    # Catches threads that Python ends while the library waits for the interpreter:
    # the program aborts.
    def test_threads_that_wait_at_exit(self):
        program = """
import prepost, sys, threading
calls = {
    "receive": lambda: groups[1].receive(),
    "short": lambda: groups[1].receive(timeout=0.001),
    "barrier": lambda: groups[1].barrier(),
    "poll": lambda: sessions[1].poll(None),
}
members, kind = sys.argv[1].split(","), sys.argv[2]
options = {"members": members, "secret": "16 bytes or more", "own_thread": kind != "poll"}
sessions = [prepost.Session(self=i, **options) for i in range(2)]
groups = [session.group(1) for session in sessions]
def call():
    while True:
        try:
            calls[kind]()
        except Exception:
            begun.release()
def second():
    groups[1].receive()
    begun.release()
    groups[1].receive()  # which fails when the main thread closes the other session
begun = threading.Semaphore(0)
if kind == "second":
    groups[0].send(b"x")
    threading.Thread(target=second, daemon=True).start()
    begun.acquire()
    sys.exit()
for _ in range(3):
    threading.Thread(target=call, daemon=True).start()
if kind not in ("receive", "short"):
    threading.Thread(target=calls[kind], daemon=True).start()  # which reports what it raises
if kind in ("receive", "short"):  # of which one at a time is allowed
    begun.acquire()
"""
        for kind in ("receive", "short", "barrier", "poll", "second"):
            with self.subTest(kind):
                done = subprocess.run(
                    [sys.executable, "-c", program, ",".join(addresses(2)), kind],
                    capture_output=True,
                    text=True,
                    timeout=60,
                )
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    # Catches a thread of a session that asks an interpreter which is gone,
    # and one that nobody ends.
    def test_a_session_that_nobody_closes(self):
        program = """
import os, prepost, sys, threading
members = sys.argv[1].split(",")
sessions = [prepost.Session(self=i, members=members, secret="16 bytes or more") for i in range(2)]
root = sessions[0].group(1)
other = sessions[1].group(1, incoming=lambda message, bytes: bytearray(bytes))
for _ in range(100):
    root.send(bytes(100000))
other.receive(timeout=20)
if os.fork() == 0:
    sys.exit(0)  # which closes nothing of its parent's, and does not crash
assert os.wait()[1] == 0
"""
        done = subprocess.run(
            [sys.executable, "-c", program, ",".join(addresses(2))],
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_sync(self):
        with tempfile.TemporaryDirectory() as folder, Members(3) as members:

            def incoming_of(member):
                def incoming(message, bytes):
                    with open(pathlib.Path(folder, f"{member}-{message}"), "w+b") as file:
                        file.truncate(bytes)
                        return mmap.mmap(file.fileno(), bytes)

                return incoming

            groups = [
                session.group(
                    1, sync=True, notify_delivered=True, incoming=None if i == 0 else incoming_of(i)
                )
                for i, session in enumerate(members.sessions)
            ]
            messages = [os.urandom(size) for size in (1, 300_001, 4096)]
            for message in messages:
                groups[0].send(message)
            groups[0].wait_delivered(TIMEOUT)
            for i in (1, 2):
                for number, message in enumerate(messages):
                    self.assertEqual(pathlib.Path(folder, f"{i}-{number}").read_bytes(), message)
                    self.assertEqual(groups[i].receive(timeout=TIMEOUT), message)
            with self.assertRaisesRegex(
                prepost.UsageError,
                "^cannot create group 2: with sync, incoming returns mappings of files$",
            ):
                members.sessions[1].group(2, sync=True)


class Plans(unittest.TestCase):
    def broadcast(self, message, **options):
        with Members(4) as members:
            groups = members.groups(**options)
            results = members.run(
                lambda i, group: group.broadcast(message if i == 0 else None, TIMEOUT), groups
            )
            members.run(lambda i, group: group.destroy(TIMEOUT), groups)
            return [bytes(result) for result in results]

    def test_plans(self):
        message = os.urandom(50_000)
        rounds = [[(0, 1, 0)], [(0, 2, 1), (1, 3, 0)], [(0, 1, 1), (3, 2, 0)], [(1, 3, 1)]]
        flat = prepost.compile(rounds=rounds, message_bytes=len(message))
        with tempfile.TemporaryDirectory() as folder:
            file, rolled, shards = (
                pathlib.Path(folder, name) for name in ("flat.json", "rolled.json", "shards/")
            )
            flat.save(file)
            for flags in (
                ["--message-bytes", "any", "-o", rolled],
                ["--message-bytes", 50_000, "--encoding", "shards", "-o", f"{shards}/"],
            ):
                subprocess.run(
                    [
                        os.environ["PREPOST_COMMAND"],
                        "compile",
                        "--nodes",
                        "4",
                        "--block-bytes",
                        "9000",
                        *map(str, flags),
                    ],
                    check=True,
                )
            for plan in (flat, file, str(file), rolled, shards):
                with self.subTest(plan=plan):
                    self.assertEqual(self.broadcast(message, plan=plan), [message] * 4)
            for plan in (rolled, prepost.roll(nodes=4, algorithm="chain", block_bytes=3)):
                self.assertEqual(self.broadcast(b"any size", plan=plan), [b"any size"] * 4)
            with Members(3) as members:
                session = members.sessions[0]
                for error, options in (
                    (
                        "the plan: it is a plan for 4 nodes, and the group has 3 members",
                        {"plan": flat},
                    ),
                    ("cannot create group 1: .*no such file: ", {"plan": "no such file"}),
                    ("a plan file has an algorithm", {"plan": file, "algorithm": "chain"}),
                ):
                    with self.assertRaisesRegex(prepost.UsageError, error):
                        session.group(1, **options)
            with Members(4) as members:
                with self.assertRaisesRegex(
                    prepost.UsageError, "is a plan for messages of 50000 bytes"
                ):
                    members.sessions[0].group(1, plan=flat).send(b"another size")

    def test_devices(self):
        message = os.urandom(300_001)
        for executor in ("auto", "offload", "cpu"):
            with self.subTest(executor=executor):
                self.assertEqual(
                    self.broadcast(message, device="emulated", executor=executor), [message] * 4
                )
        with Members(2) as members:
            for error, text, options in (
                (prepost.UsageError, 'no executor "gpu"', {"executor": "gpu"}),
                (prepost.UsageError, "takes a device", {"executor": "offload"}),
                (prepost.EnvironmentError, "no card", {"device": "no card"}),
            ):
                with self.assertRaisesRegex(error, text):
                    members.sessions[0].group(1, **options)

    # Catches an interpreter's lock that is held while a plan is read and verified, and a session
    # that is closed meanwhile.
    def test_other_threads_run_while_a_group_is_created(self):
        plan = prepost.compile(nodes=64, message_bytes=1 << 20, block_bytes=1 << 10)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "plan.json")
            plan.save(path, "columns")
            session = prepost.Session(self=0, members=addresses(64), secret=SECRET)
            ended, counted, results = threading.Event(), 0, []

            def create():
                try:
                    results.append(session.group(1, plan=path))
                except prepost.UsageError as error:
                    results.append(error)
                ended.set()

            thread = threading.Thread(target=create)
            thread.start()
            while not ended.wait(0.001):
                counted += 1
                if counted == 3:
                    session.close()
            thread.join()
            self.assertGreaterEqual(counted, 3)
            [result] = results
            with self.assertRaisesRegex(prepost.UsageError, "^the session is closed$"):
                raise result if isinstance(result, prepost.UsageError) else result.failure


class Waits(unittest.TestCase):
    # Catches waits that hold the signal back, and buffers that stay with the library after them.
    def test_ctrl_c_and_timeouts_interrupt_a_wait(self):
        for own_thread in (True, False):
            with self.subTest(own_thread=own_thread), Members(2, own_thread=own_thread) as members:
                root, other = members.groups()
                buffer = bytearray(7)
                timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
                with self.assertRaises(KeyboardInterrupt):
                    timer.start()
                    other.broadcast(buffer, TIMEOUT)
                timer.join()
                buffer.append(0)  # is free again
                with self.assertRaises(TimeoutError):
                    other.broadcast(buffer, 0.01)
                message = bytearray(b"message")
                members.run(
                    lambda i, group: group.receive(buffer, TIMEOUT)
                    if i
                    else group.broadcast(message, TIMEOUT),
                    [root, other],
                )
                message.append(0)  # is free as soon as it is sent
                self.assertEqual(buffer, b"message\0")

    # Catches waits for what other threads queue meanwhile, which here never ends.
    def test_wait_for_messages_that_were_queued_before(self):
        with Members(2) as members:
            root, other = members.groups(notify_delivered=True)
            over, filled = threading.Event(), bytearray(1000)

            def send():
                while not over.is_set():
                    while root.send(filled) - min(root.sent, root.delivered) < 200:
                        pass
                    over.wait(0.001)

            def receive():
                while not over.is_set():
                    with contextlib.suppress(prepost.Timeout):
                        other.receive(timeout=0.01)

            threads = [threading.Thread(target=function) for function in (send, receive)]
            for thread in threads:
                thread.start()
            try:
                while root.delivered < 10:
                    root.wait_sent(TIMEOUT)
                    root.wait_delivered(TIMEOUT)
            finally:
                over.set()
                for thread in threads:
                    thread.join()

    def test_barrier(self):
        with Members(3) as members:
            groups = members.groups()
            self.assertEqual(groups[0].enter_barrier(), 1)
            self.assertEqual(groups[1].enter_barrier(), 1)
            groups[0].wait_opened(TIMEOUT)
            with self.assertRaises(prepost.Timeout):
                groups[0].barrier(0.02)  # its second, and member 2 was at none
            self.assertEqual(groups[0].barriers, 0)
            groups[2].barrier(TIMEOUT)
            members.run(lambda i, group: i > 0 and group.barrier(TIMEOUT), groups)
            members.sessions[0].poll(TIMEOUT)
            self.assertEqual([group.barriers for group in groups[1:]], [2, 2])

    # One thread moves all members, as a program's own loop does.
    def test_own_loop(self):
        with Members(2, own_thread=False) as members:
            root, other = members.groups()
            root.send(b"message")
            poll = select.poll()
            for session in members.sessions:
                poll.register(session, select.POLLIN)
            for _ in range(10_000):
                if other.available:
                    break
                poll.poll(1)
                for session in members.sessions:
                    session.poll()
            self.assertEqual(bytes(other.receive(timeout=0)), b"message")

    def test_asyncio(self):
        async def receive(session, group):
            loop = asyncio.get_running_loop()
            came = asyncio.Event()
            loop.add_reader(
                session.fileno(), lambda: session.poll() and group.available and came.set()
            )
            await asyncio.wait_for(came.wait(), TIMEOUT)
            loop.remove_reader(session.fileno())
            return bytes(group.receive(timeout=0))

        with Members(2) as members:
            root, other = members.groups()
            root.send(b"message")
            self.assertEqual(asyncio.run(receive(members.sessions[1], other)), b"message")
            self.assertTrue(members.sessions[0].poll(TIMEOUT))


class Secret:
    """Of a wrong type, and as talkative as a list or a dataclass with a secret in it."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return f"Secret({self.text!r})"


def words_of(error):
    """All that a report of an error may show: texts, and the variables of the package's functions
    that it has come through."""
    words, seen = [], []
    while error is not None and error not in seen:
        seen.append(error)
        words += [repr(error), str(error), repr(error.args), repr(vars(error))]
        words += [repr(getattr(error, name, None)) for name in ("object", "obj")]
        frame = error.__traceback__
        while frame is not None:
            if "prepost" in pathlib.Path(frame.tb_frame.f_code.co_filename).parts:
                words.append(repr(frame.tb_frame.f_locals))
            frame = frame.tb_next
        error = error.__cause__ or error.__context__
    return "\n".join(words)


class Arguments(unittest.TestCase):
    def refused(self, text, call):
        with self.assertRaisesRegex(prepost.UsageError, text) as raised:
            call()
        return raised.exception

    # Catches errors of the module in C++, which show the values of all arguments,
    # and tracebacks with the variables.
    def test_no_error_shows_the_secret(self):
        mark = "do not tell it"
        whole = f"{mark} to anybody"

        def check(text, **changed):
            options = {"self": 0, "members": ["127.0.0.1:0"], "secret": whole, **changed}
            with self.subTest(changed=text):
                error = self.refused(text, lambda: prepost.Session(**options))
                self.assertNotIn(mark, words_of(error))

        check("^self is a whole number, not str$", self="0")
        check("^self is a whole number, not float$", self=0.5)
        check("^self is a whole number from 0 to 4294967295, not -1$", self=-1)
        check(
            "^self is a whole number from 0 to 4294967295, not one of 20000 bits$", self=1 << 19999
        )
        check("^self is 1, but there are 1 member: 0 to 0$", self=1)
        check("^members is a list of addresses, not int$", members=5)
        check("^members is a list of addresses, not NoneType$", members=None)
        check(r"^members\[0\] is an address, a str or \(host, port\), not int$", members=[7])
        check(
            r"^members\[1\] is an address, a str or \(host, port\), not tuple of 1$",
            members=["a", ("b",)],
        )
        check(
            r"^members\[0\] is an address, a str or \(host, port\), not tuple of 2$",
            members=[(7, "b")],
        )
        check(r"^members\[0\] .*: a port is a number from 0 to 65535$", members=[("b", None)])
        check(r"^members\[0\] .*: a port is a number from 0 to 65535$", members=[("b", "x")])
        check(r"^members\[0\] .*: of several colons, expected an IPv6", members=["10.0.0.1:80:2"])
        check("^bind is a str, not bytes$", bind=b"127.0.0.1")
        check("^bind has characters that UTF-8 does not have$", bind="\udc80")
        check("^waiting is a str, not int$", waiting=1)
        check("^waiting is polling, hybrid or interrupt, not 'x'$", waiting="x")
        for name in ("idle_max", "failure_max", "connect_max"):
            for value in ("2", None, [], 1j):
                check(
                    f"^{name} is a number of seconds, not {type(value).__name__}$", **{name: value}
                )
            check(f"^{name} is a number of seconds from 0 on, not -1.0$", **{name: -1})
        for name in ("local_copies", "own_thread"):
            for value in ("no", None, 2, []):
                check(f"^{name} is True or False, not {type(value).__name__}$", **{name: value})
        for value in (
            [whole],
            (whole,),
            {whole: whole},
            Secret(whole),
            numpy.array([whole]),
            numpy.frombuffer(whole.encode(), "u1"),
            None,
            16,
        ):
            check(f"^secret is bytes or a str, not {type(value).__name__}$", secret=value)
        check("^secret has characters that UTF-8 does not have$", secret=f"{whole}\udc80")
        check("^the secret has more than 4096 bytes, expected 16 to 4096$", secret=whole * 1000)
        check("^the secret has 14 bytes, expected 16 to 4096$", secret=mark)
        for options in (
            {"secrets": whole},
            {"self": 0, "secret": whole},
            {"members": [], "secret": whole, "self": 0, "x": whole},
        ):
            with self.assertRaises(TypeError) as raised:
                prepost.Session(**options)
            self.assertNotIn(mark, words_of(raised.exception))
        with prepost.Session(
            self=0, members=["127.0.0.1:0"], secret=whole
        ) as session, session.group(1) as group:
            for shown in (
                session,
                group,
                session._native,
                vars(session),
                vars(group),
                prepost._native.Secret(whole.encode()),
            ):
                self.assertNotIn(mark, repr(shown))
            for wrong in (
                lambda: session._native.create_group(1),
                lambda: prepost._native.Session(prepost._native.Secret(whole.encode())),
            ):
                with self.assertRaises(TypeError) as raised:
                    wrong()
                self.assertNotIn(mark, words_of(raised.exception))

    # Catches errors of the module in C++, whose words are about C++.
    def test_wrong_types_are_named(self):
        with Members(1) as members:
            [session] = members.sessions
            group, plan = session.group(1), prepost.compile(nodes=2, message_bytes=10)
            rolled = prepost.roll(nodes=2, algorithm="chain")
            wrong = object()
            for text, call in (
                ("number is a whole number", lambda: session.group("1")),
                (
                    "number is a whole number from 0 to 18446744073709551615, not -1",
                    lambda: session.group(-1),
                ),
                (r"members\[0\] is a whole number, not str", lambda: session.group(2, ["0"])),
                ("members is a list of whole numbers, not int", lambda: session.group(2, 5)),
                ("members is a list of whole numbers, not str", lambda: session.group(2, "0")),
                ("root is a whole number", lambda: session.group(2, root=None)),
                ("algorithm is a str", lambda: session.group(2, algorithm=5)),
                ("block_bytes is a whole number", lambda: session.group(2, block_bytes=1.5)),
                ("plan is a plan or a path", lambda: session.group(2, plan=5)),
                (
                    "notify_delivered is True or False",
                    lambda: session.group(2, notify_delivered="no"),
                ),
                ("sync is True or False", lambda: session.group(2, sync="no")),
                ("device is a str", lambda: session.group(2, device=None)),
                ("executor is a str", lambda: session.group(2, executor=None)),
                ("pool is a MemoryPool", lambda: session.group(2, pool=5)),
                ("incoming is a function", lambda: session.group(2, incoming=bytearray(5))),
                (
                    "backlog_bytes is a number of bytes, not str",
                    lambda: session.group(2, backlog_bytes="5"),
                ),
                ("member is a whole number", lambda: session.set_address("1", "a")),
                ("address is an address", lambda: session.set_address(1, 5)),
                ("buffer_bytes is a whole number", lambda: prepost.MemoryPool("1", 1)),
                (
                    "buffers is a whole number from 0 to 4294967295",
                    lambda: prepost.MemoryPool(1, 1 << 32),
                ),
                ("why is a str", lambda: group.abort(5)),
                *[
                    ("timeout is a number of seconds, not str", lambda call=call: call(timeout="1"))
                    for call in (
                        session.poll,
                        group.barrier,
                        group.wait_opened,
                        group.wait_sent,
                        group.wait_delivered,
                        group.destroy,
                    )
                ],
                ("timeout is a number of seconds, not str", lambda: group.broadcast(b"x", "1")),
                ("timeout is a number of seconds from 0 on, not -1.0", lambda: session.poll(-1)),
                (
                    "timeout is a number of seconds from 0 on, not nan",
                    lambda: session.poll(float("nan")),
                ),
                ("spec is a mapping or a path", lambda: prepost.compile(wrong)),
                ("rounds is a path, a text or an iterable", lambda: prepost.compile(rounds=5)),
                (
                    "node is a whole number",
                    lambda: prepost.roll(nodes=2, algorithm="chain", node="1"),
                ),
                ("path is a path", lambda: prepost.Plan.load(5)),
                ("path is a path", lambda: prepost.RolledPlan.load(None)),
                ("path is a path", lambda: plan.save(1)),  # which is a file's number
                ("text is a str", lambda: prepost.Plan.from_json(b"{}")),
                ("text is a str", lambda: prepost.RolledPlan.from_json(None)),
                ("encoding is a str", lambda: plan.to_json(5)),
                ("message_bytes is a whole number", lambda: rolled.unroll("5")),
                (r"nodes\[0\] is a whole number", lambda: plan.draw(nodes=["a"])),
                ("blocks is a list of whole numbers", lambda: plan.draw(blocks=5)),
                ("rounds are two numbers", lambda: plan.draw(rounds=(1, 2, 3))),
                ("topology is a path", lambda: plan.draw(topology=5)),
                ("trace is a path", lambda: plan.draw(trace=5)),
                ("profile is a path", lambda: plan.simulate(None)),
                ("executor is a str", lambda: plan.simulate("fractus", executor=1)),
                ("settings is a mapping", lambda: plan.simulate("fractus", settings=["x"])),
                ("delay is a str or a list", lambda: plan.simulate("fractus", delay=5)),
            ):
                with self.subTest(text):
                    self.refused(f"^{text}", call)
            self.assertFalse(group.closed)
            self.assertIsNone(group.failure)
            for fine in (
                {"members": numpy.arange(1), "root": numpy.uint8(0)},
                {"notify_delivered": numpy.True_, "sync": 0},
                {"block_bytes": True},
            ):
                session.group(7, **fine).destroy(numpy.float32(TIMEOUT))


class Errors(unittest.TestCase):
    def test_options(self):
        def refused(text, **changed):
            options = {"self": 0, "members": addresses(2), "secret": SECRET, **changed}
            with self.assertRaisesRegex(prepost.Error, text):
                prepost.Session(**options)

        refused("^a session needs members$", members=[])
        refused("^self is 2, but there are 2 members: 0 to 1$", self=2)
        refused("15 bytes", secret=b"x" * 15)
        refused("waiting is polling, hybrid or interrupt, not 'never'", waiting="never")
        refused("failure_max is 50 ms; at least 100 are needed", failure_max=0.05)
        refused("a port is a number from 0 to 65535", members=["127.0.0.1:http", "b"])
        refused("failure_max is a number of seconds", failure_max=float("nan"))
        refused("members is a list", members="127.0.0.1")
        with Members(1) as members:
            with self.assertRaisesRegex(
                prepost.UsageError, "cannot create group 5: there is no member 1"
            ):
                members.sessions[0].group(5, [0, 1])
            with self.assertRaises(prepost.EnvironmentError):  # the port is taken
                prepost.Session(self=0, members=addresses(1), secret=SECRET)
            with self.assertRaisesRegex(prepost.UsageError, "timeout"):
                members.groups()[0].wait_opened(-1)
        self.assertTrue(issubclass(prepost.UsageError, ValueError))

    def test_addresses(self):
        parse = prepost._session._address
        self.assertEqual(
            [parse(it) for it in ("a", "a:1", "fe80::1", "[fe80::1]", "[fe80::1]:2", ("a", 3), "")],
            [
                ("a", 7811),
                ("a", 1),
                ("fe80::1", 7811),
                ("fe80::1", 7811),
                ("fe80::1", 2),
                ("a", 3),
                ("", 7811),
            ],
        )

    def test_sites(self):
        with self.assertRaisesRegex(
            prepost.UsageError, "there are 2 members, but the sites of 1 member"
        ):
            prepost.Session(
                self=0, members=["127.0.0.1", "127.0.0.1:1"], secret=SECRET, sites=["a"]
            )
        with self.assertRaisesRegex(prepost.UsageError, "member 1 has no site"):
            prepost.Session(
                self=0, members=["127.0.0.1", "127.0.0.1:1"], secret=SECRET, sites=["a", ""]
            )
        with self.assertRaisesRegex(prepost.UsageError, "no congestion control 'nonesuch'"):
            prepost.Session(self=0, members=["127.0.0.1:0"], secret=SECRET, congestion="nonesuch")
        with self.assertRaisesRegex(prepost.UsageError, "pace is a number of bytes/s"):
            prepost.Session(self=0, members=["127.0.0.1:0"], secret=SECRET, pace=-1)
        with self.assertRaisesRegex(prepost.UsageError, "17 streams"):
            prepost.Session(self=0, members=["127.0.0.1:0"], secret=SECRET, streams=17)

    def test_paths(self):
        for local_copies, expected in (
            (True, prepost.Paths(memory=1, network=0, forbidden=0, short_memory=1)),
            (False, prepost.Paths(memory=0, network=1, forbidden=0, short_network=1)),
        ):
            with Members(2, local_copies=local_copies) as members:
                groups = members.groups()
                for group in groups:
                    group.wait_opened(TIMEOUT)
                self.assertEqual([group.paths() for group in groups], [expected] * 2)
                members.run(lambda i, group: group.destroy(TIMEOUT), groups)
                with self.assertRaisesRegex(prepost.UsageError, "group 1"):
                    groups[0].paths()

    def test_seal(self):
        with Members(2) as members:
            groups = members.groups(seal=True)
            groups[0].send(b"sealed" * 30000)
            self.assertEqual(bytes(groups[1].receive(timeout=TIMEOUT)), b"sealed" * 30000)
            self.assertEqual(
                [group.paths() for group in groups],
                [prepost.Paths(memory=0, network=1, forbidden=0, short_network=1)] * 2,
            )
            calls = [session.collectives(2, seal=True) for session in members.sessions]
            members.run(lambda i, call: call.barrier(timeout=TIMEOUT), calls)
            with self.assertRaisesRegex(
                prepost.UsageError, "device emulated the NIC itself moves, which seals nothing"
            ):
                members.sessions[0].group(3, seal=True, device="emulated")
            with self.assertRaisesRegex(prepost.UsageError, "seal is True or False"):
                members.sessions[0].group(3, seal="no")

    def test_any_port_and_a_late_address(self):
        host = addresses(2)
        with prepost.Session(
            self=1, members=["", f"{host[1]}:0"], secret=SECRET
        ) as other, prepost.Session(self=0, members=[host[0], ""], secret=SECRET) as first:
            first.set_address(1, (host[1], other.port))
            other.set_address(0, host[0])
            with first.group(1) as group:
                there = threading.Thread(target=lambda: other.group(1).destroy(TIMEOUT))
                there.start()
            there.join()
            self.assertTrue(group.closed)

    def test_members_that_do_not_agree(self):
        with Members(2, connect_max=0.3) as members:
            groups = [
                session.group(1, algorithm=algorithm)
                for session, algorithm in zip(members.sessions, ("chain", "sequential"))
            ]
            for group in groups:
                with self.assertRaises(prepost.TransferError):
                    group.wait_opened(TIMEOUT)

    # Catches a wait that nobody ends, and a failure that loses its cause on the way.
    def test_a_member_that_leaves(self):
        with Members(3) as members:
            groups = members.groups()
            for group in groups:
                group.wait_opened(TIMEOUT)
            self.assertIsNone(groups[1].failure)
            groups[0].broadcast(b"first", TIMEOUT)
            groups[2].receive(timeout=TIMEOUT)
            self.assertEqual(groups[2].messages, 1)
            waiting = threading.Thread(target=members.sessions[2].close)
            waiting.start()
            for group in groups[:2]:
                with self.assertRaises(prepost.TransferError) as raised:
                    group.broadcast(None if group is groups[1] else bytes(1 << 24), TIMEOUT)
                    group.receive(timeout=TIMEOUT) if group is groups[1] else None
                    group.barrier(TIMEOUT)  # the root may have been through with sending
                self.assertEqual((raised.exception.member, raised.exception.members), (2, (2,)))
                self.assertRegex(str(raised.exception), "member 2")
                self.assertEqual(str(group.failure), str(raised.exception))
                self.assertGreaterEqual(raised.exception.messages, 1)
                self.assertEqual(raised.exception.messages, group.messages)
            waiting.join()
            survivors = [session.group(1, [0, 1]) for session in members.sessions[:2]]
            self.assertEqual(
                bytes(
                    members.run(
                        lambda i, group: group.broadcast(b"on" if i == 0 else None, TIMEOUT),
                        survivors,
                    )[1]
                ),
                b"on",
            )


class ManyTest(unittest.TestCase):
    """Lists and dicts of buffers, in one call."""

    def same(self, found, sent):
        self.assertEqual(
            found.dtype if hasattr(sent, "dtype") else None, getattr(sent, "dtype", None)
        )
        self.assertEqual(
            getattr(found, "shape", None) if hasattr(sent, "dtype") else None,
            getattr(sent, "shape", None),
        )
        self.assertEqual(bytes(memoryview(found).tobytes()), bytes(memoryview(sent).tobytes()))

    def test_receivers_take_them_unseen(self):
        with Members(3) as members:
            for number, items in enumerate([many(), list(many().values()), {}, [b""] * 3]):
                groups = members.groups(number)

                def call(i, group):
                    if i == 0:
                        return group.broadcast(items, TIMEOUT)
                    if i == 1:
                        return group.receive_many(timeout=TIMEOUT)
                    return group.broadcast(None, TIMEOUT)

                for found in Members.run(call, groups)[1:]:
                    self.assertEqual(type(found), type(items))
                    if isinstance(items, dict):
                        self.assertEqual(list(found), list(items))
                        pairs = zip(found.values(), items.values())
                    else:
                        pairs = zip(found, items)
                        self.assertEqual(len(found), len(items))
                    for one, other in pairs:
                        self.same(one, other)

    def test_into_memory_of_the_receivers(self):
        items = {name: item for name, item in many().items() if name != "text"}
        with Members(2) as members:
            root, other = members.groups()
            into = {
                name: numpy.zeros_like(item) if hasattr(item, "dtype") else bytearray(len(item))
                for name, item in reversed(items.items())
            }
            thread = threading.Thread(target=root.broadcast, args=(items, TIMEOUT))
            thread.start()
            found = other.broadcast(into, TIMEOUT)
            thread.join()
            for name, item in items.items():
                self.assertIs(found[name], into[name])
                self.same(into[name], item)

    def test_what_does_not_fit_is_named_and_nothing_is_lost(self):
        items = [numpy.arange(4), numpy.arange(100_000)]
        with Members(2) as members:
            root, other = members.groups()
            root.broadcast(items, TIMEOUT)
            root.send(b"plain")
            root.broadcast({"a": b"b"}, TIMEOUT)
            for into, words in [
                ([bytearray(8)], "2 buffers come, and there are 1 to fill: 1 is missing"),
                ({"0": items[0], "x": items[1]}, "1 is missing, x does not come"),
                ([bytearray(32), bytearray(5)], "1 has 5 bytes, and 800000 come"),
                (
                    [numpy.zeros(4), numpy.zeros(100_000, "i8")],
                    "0 is of type float64, and int64 comes",
                ),
            ]:
                with self.assertRaisesRegex(prepost.UsageError, words):
                    other.receive_many(into, TIMEOUT)
            into = [numpy.zeros_like(item) for item in items]
            other.receive_many(into, TIMEOUT)
            for found, item in zip(into, items):
                self.same(found, item)
            with self.assertRaisesRegex(prepost.RejectedError, "not the first message"):
                other.receive_many(timeout=TIMEOUT)
            self.assertEqual(bytes(other.receive(timeout=TIMEOUT)), b"plain")
            self.assertEqual(bytes(other.receive_many(timeout=TIMEOUT)["a"]), b"b")

    def test_what_has_no_type_fits_any(self):
        items = [numpy.arange(4), b"12345678"]
        with Members(2) as members:
            root, other = members.groups()
            root.broadcast(items, TIMEOUT)
            into = [bytearray(32), numpy.zeros(1, "i8")]
            other.receive_many(into, TIMEOUT)
            self.assertEqual(bytes(into[0]), items[0].tobytes())
            self.assertEqual(into[1].tobytes(), items[1])

    def test_leaving_messages_for_which_there_is_no_room(self):
        for options in {"backlog_bytes": 100_000}, {"pool": prepost.MemoryPool(100_000, 2)}:
            with Members(2) as members, self.subTest(options=options):
                root = members.sessions[0].group(1)
                other = members.sessions[1].group(1, **options)
                for _ in range(5):
                    root.send(bytes(100_000))

                def leave(i, group):
                    try:
                        with group:
                            pass
                    except (prepost.UsageError, prepost.TransferError) as error:
                        return [error]

                (left,), (taken,) = members.run(leave, [root, other])
                self.assertIsInstance(taken, prepost.UsageError)
                self.assertRegex(str(taken), "left group 1 with [12] messages? not received")
                self.assertIsInstance(left, prepost.TransferError)
                self.assertRegex(str(left), "member 1 has aborted the group: left group 1 with")

    def test_a_timeout_goes_on_with_the_next_call(self):
        with Members(2) as members:
            root, other = members.groups()
            with self.assertRaises(prepost.Timeout):
                other.receive_many(timeout=0.05)
            items = [bytearray(b"y" * 100_000)] * 3
            first, large = prepost._many.pack(items)
            root.send(first)
            root.send(large[0])
            with self.assertRaisesRegex(prepost.Timeout, "1 has not come"):
                other.receive_many(timeout=0.5)
            root.send(large[1])
            root.send(large[2])
            found = other.broadcast(timeout=TIMEOUT)
            self.assertEqual([bytes(item) for item in found], [bytes(items[0])] * 3)

    def test_first_messages_that_no_root_sends(self):
        head = prepost._many._HEAD.pack
        magic = prepost._many._MAGIC
        item = '["a", "numpy", "<f4", [1], 4]'
        text = ('{"is_dict": true, "items": [%s]}' % item).encode()
        good = head(magic, len(text)) + text + b"1234"
        self.assertEqual(prepost._many.Coming(memoryview(good)).items[0].bytes, 4)
        for bad in [
            b"",
            good[:15],
            b"x" + good[1:],
            head(magic, 1 << 63) + text,
            head(magic, len(text) + 5) + text + b"1234",
            head(magic, len(text)) + text + b"123",
            head(magic, 2) + b"[]",
            head(magic, 4) + b"{}xx",
            head(magic, len(text)) + text.replace(b", 4]", b",-4]") + b"1234",
            *(
                head(magic, len(lie)) + lie + b"1234"
                for lie in (
                    text.replace(b"[1]", b"[1e999]"),
                    text.replace(b"[1]", b"[-1]"),
                    text.replace(b"[1]", b"[%s]" % b",".join([b"1"] * 65)),
                    text.replace(b", 4]", b", Infinity]"),
                    text.replace(b", 4]", b", 4.5]"),
                    text.replace(b", 4]", b", %d]" % (1 << 70)),
                )
            ),
            head(magic, 200_000) + b"[" * 200_000,
        ]:
            with self.assertRaisesRegex(prepost.RejectedError, "not the first message"):
                prepost._many.Coming(memoryview(bad))
        odd = text.replace(b"<f4", b"|O8").replace(b"[1]", b"[9]")
        found = prepost._many.Coming(memoryview(head(magic, len(odd)) + odd + b"1234"))
        view = found.finish(None, None)["a"]
        self.assertEqual(bytes(view), b"1234", "a view, where no array can be made of it")

    def test_keys_and_memory_that_cannot_be_sent(self):
        with Members(1) as members:
            (group,) = members.groups()
            with self.assertRaisesRegex(prepost.UsageError, "keys of a dict"):
                group.send_many({1: b""})
            with self.assertRaisesRegex(TypeError, "a: .*str"):
                group.send_many({"a": "text"})
            with self.assertRaisesRegex(BufferError, "1: "):
                group.send_many([b"", numpy.zeros((4, 4)).T[1:]])


if __name__ == "__main__":
    unittest.main()
