# SPDX-License-Identifier: Apache-2.0
"""Calls of collectives from Python: the members of each group are threads of this process."""
import array
import os
import threading
import unittest
import unittest.mock

import numpy

import prepost

SECRET = b"a secret \0 of more than 16 bytes"
TIMEOUT = 20  # of what has to come
SEED = int(os.environ.get("PREPOST_TEST_SEED", "1"))


class Members:
    """Groups of `count` members for calls; run() calls a function for each,
    in a thread of its own."""

    def __init__(self, count, *, deterministic=False, **options):
        process = os.getpid()
        addresses = [f"127.{208 + i}.{process >> 8 & 255}.{process & 255}" for i in range(count)]
        self.sessions = [
            prepost.Session(self=i, members=addresses, secret=SECRET, **options)
            for i in range(count)
        ]
        self.groups = [
            session.collectives(1, deterministic=deterministic) for session in self.sessions
        ]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for session in self.sessions:
            session.close()

    def run(self, function):
        """Results; exceptions among them."""
        results = [None] * len(self.groups)

        def call(i):
            try:
                results[i] = function(i, self.groups[i])
            except BaseException as error:  # seen by the caller
                results[i] = error

        threads = [threading.Thread(target=call, args=(i,)) for i in range(len(self.groups))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results


class Values(unittest.TestCase):
    def setUp(self):
        print(f"PREPOST_TEST_SEED={SEED}")
        self.random = numpy.random.default_rng(SEED)

    def check(self, results, expected):
        for i, (found, wanted) in enumerate(zip(results, expected)):
            if isinstance(found, BaseException):
                raise found
            if wanted is None:
                self.assertIsNone(found)
                continue
            self.assertEqual((found.dtype, found.shape), (wanted.dtype, wanted.shape), i)
            self.assertTrue(numpy.array_equal(found, wanted), i)

    # Catches shapes and types that get lost, roots that are places, parts of the wrong member, and
    # results in arrays that others share.
    def test_all_kinds_are_what_numpy_says(self):
        for n in (1, 3, 4):
            with Members(n) as members:
                for dtype in ("int32", "float64", "uint8"):
                    inputs = [self.random.integers(0, 20, (4, 3)).astype(dtype) for _ in range(n)]
                    parts = [self.random.integers(0, 20, (n, 5, 2)).astype(dtype) for _ in range(n)]
                    total = numpy.sum(inputs, axis=0).astype(dtype)
                    root = n - 1
                    at_root = [None] * root
                    run = members.run
                    self.check(
                        run(lambda i, g: g.allreduce(inputs[i], timeout=TIMEOUT)), [total] * n
                    )
                    self.check(
                        run(lambda i, g: g.allreduce(inputs[i], "max")),
                        [numpy.max(inputs, axis=0)] * n,
                    )
                    self.check(run(lambda i, g: g.reduce(inputs[i], root)), [*at_root, total])
                    self.check(run(lambda i, g: g.allgather(inputs[i])), [numpy.stack(inputs)] * n)
                    self.check(
                        run(lambda i, g: g.gather(inputs[i], root)), [*at_root, numpy.stack(inputs)]
                    )
                    self.check(
                        run(lambda i, g: g.alltoall(parts[i])),
                        [numpy.stack([it[i] for it in parts]) for i in range(n)],
                    )
                    summed = numpy.sum(parts, axis=0).astype(dtype)
                    self.check(run(lambda i, g: g.reduce_scatter(parts[i])), list(summed))
                    self.check(
                        run(
                            lambda i, g: g.scatter(
                                parts[i] if i == root else None,
                                root,
                                out=numpy.empty((5, 2), dtype),
                            )
                        ),
                        list(parts[root]),
                    )
                    self.check(
                        run(lambda i, g: g.broadcast(inputs[i].copy(), root)), [inputs[root]] * n
                    )
                    copies = [it.copy() for it in inputs]
                    self.check(run(lambda i, g: g.allreduce(copies[i], out=copies[i])), [total] * n)
                self.assertEqual(members.run(lambda i, g: g.barrier(timeout=TIMEOUT)), [None] * n)
                self.assertEqual(members.run(lambda i, g: g.destroy(TIMEOUT)), [None] * n)

    def test_many_calls_are_under_way(self):
        with Members(3) as members:
            inputs = [
                [self.random.integers(0, 100, 1 + 700 * c) for c in range(30)] for _ in range(3)
            ]

            def calls(i, group):
                made = [group.allreduce(it, wait=False) for it in inputs[i]]
                results = [call.wait(TIMEOUT) for call in made]
                assert all(call.done for call in made)
                return results

            for results in members.run(calls):
                for c, found in enumerate(results):
                    self.assertTrue(
                        numpy.array_equal(found, sum(inputs[i][c] for i in range(3))), c
                    )

    def test_parts_of_any_sizes(self):
        counts = [[0, 3, 1], [5, 0, 2], [1, 1, 0]]
        with Members(3) as members:
            for dtype in ["int64", "float16", "complex128", "bool"]:

                def call(i, group):
                    values = (numpy.repeat(numpy.arange(3), counts[i]) + 10 * i).astype(dtype)
                    return group.alltoallv(
                        values, counts[i], [counts[j][i] for j in range(3)], timeout=TIMEOUT
                    )

                self.check(
                    members.run(call),
                    [
                        numpy.array(
                            [j * 10 + i for j in range(3) for _ in range(counts[j][i])], dtype=dtype
                        )
                        for i in range(3)
                    ],
                )

    # An own operation that does not commute: 2x2 matrices, each four elements.
    def test_own_operations(self):
        inputs = [self.random.integers(0, 5, (6, 2, 2)) for _ in range(4)]
        expected = inputs[0]
        for it in inputs[1:]:
            expected = expected @ it
        with Members(4) as members:

            def call(i, group):
                return group.allreduce(
                    inputs[i],
                    lambda a, b: (a.reshape(-1, 2, 2) @ b.reshape(-1, 2, 2)).reshape(-1),
                    commutative=False,
                    timeout=TIMEOUT,
                )

            self.check(members.run(call), [expected] * 4)
            self.check(
                members.run(lambda i, g: g.allreduce(inputs[i], numpy.minimum)),
                [numpy.min(inputs, axis=0)] * 4,
            )

    # Memory that is no array, types of 16 bits, and sums of floats that are the same for all.
    def test_other_memory_and_small_floats(self):
        with Members(2) as members:
            results = members.run(lambda i, g: g.allreduce(array.array("i", [i, 2, 3])))
            self.assertEqual([it.tolist() for it in results], [[1, 4, 6]] * 2)
            results = members.run(lambda i, g: bytes(g.allgather(bytes([i, 7]))))
            self.assertEqual(results, [b"\0\7\1\7"] * 2)
            halves = [self.random.random(1000).astype("float16") for _ in range(2)]
            self.check(
                members.run(lambda i, g: g.allreduce(halves[i])), [(halves[0] + halves[1])] * 2
            )
        floats = [self.random.random(5000).astype("float32") for _ in range(3)]
        with Members(3, deterministic=True) as members:
            large = members.run(lambda i, g: g.allreduce(floats[i]))
            small = members.run(lambda i, g: g.allreduce(floats[i][:77].copy()))
            for i in range(3):
                self.assertEqual(large[i].tobytes(), large[0].tobytes())
                self.assertEqual(small[i].tobytes(), large[0][:77].tobytes())


class Many(unittest.TestCase):
    """A broadcast of a list or a dict."""

    ITEMS = {
        "weights": numpy.arange(300_000, dtype="float32").reshape(300, 1000),
        "bias": numpy.arange(10),
        "more": numpy.arange(100_000, dtype="float64"),
    }

    def test_from_any_root_into_arrays_or_unseen(self):
        with Members(3) as members:
            for root in range(3):

                def call(i, group):
                    if i == root:
                        return group.broadcast(self.ITEMS, root, timeout=TIMEOUT)
                    into = None
                    if i == (root + 1) % 3:
                        into = {name: numpy.zeros_like(it) for name, it in self.ITEMS.items()}
                    found = group.broadcast(into, root, timeout=TIMEOUT)
                    for name in into or {}:
                        self.assertIs(found[name], into[name])
                    return found

                for found in members.run(call):
                    if isinstance(found, BaseException):
                        raise found
                    self.assertEqual(list(found), list(self.ITEMS))
                    for name, item in self.ITEMS.items():
                        self.assertEqual(found[name].dtype, item.dtype)
                        numpy.testing.assert_array_equal(found[name], item)

    def test_what_does_not_fit_ends_the_group(self):
        with Members(2) as members:

            def call(i, group):
                items = self.ITEMS if i == 0 else {"bias": numpy.zeros(10, dtype="i8")}
                group.broadcast(items, timeout=TIMEOUT)
                return group.barrier(timeout=TIMEOUT)

            at_root, found = members.run(call)
            self.assertIsInstance(found, prepost.UsageError)
            self.assertRegex(str(found), "3 buffers come, and there are 1 to fill: weights is")
            self.assertIsInstance(at_root, prepost.TransferError)
            self.assertRegex(str(at_root), "weights is missing")
            with self.assertRaisesRegex(prepost.UsageError, "waits until it is over"):
                members.groups[0].broadcast([b""], wait=False)


class Errors(unittest.TestCase):
    def test_members_call_different_things(self):
        with Members(2, failure_max=1) as members:
            results = members.run(
                lambda i, g: g.barrier() if i else g.allreduce(numpy.zeros(4, dtype="float32"))
            )
            for result in results:
                self.assertIsInstance(result, prepost.TransferError)
                self.assertIn("allreduce sum:float32 of 16 bytes at member 0", str(result))
                self.assertIn("barrier", str(result))
            self.assertIsInstance(members.groups[0].failure, prepost.TransferError)

    def test_an_operation_that_raises_ends_the_group(self):
        with Members(2, failure_max=1) as members, unittest.mock.patch(
            "sys.unraisablehook"
        ) as hook:

            def broken(a, b):
                raise ValueError("no such sum")

            for result in members.run(lambda i, g: g.allreduce(numpy.zeros(4), broken)):
                self.assertIsInstance(result, prepost.TransferError)
                self.assertIn("ValueError: no such sum", str(result))
            self.assertGreater(hook.call_count, 0)

    # An array that it was given is its own; a result is not stretched or rounded.
    def test_an_operation_gets_copies_and_gives_what_fits(self):
        kept = []
        with Members(2) as members:

            def keeps(a, b):
                kept.append((a, b, a + b))
                return a + b

            for round in range(3):
                members.run(
                    lambda i, g, n=10**round: g.allreduce(numpy.full(n, float(i + 1)), keeps)
                )
        for a, b, total in kept:
            self.assertTrue(numpy.array_equal(a + b, total))
            a[:] = 0
        for wrong in (numpy.dot, lambda a, b: (a + b).astype("float32"), lambda a, b: a[:1]):
            with Members(2, failure_max=1) as members, unittest.mock.patch("sys.unraisablehook"):
                for result in members.run(lambda i, g, op=wrong: g.allreduce(numpy.ones(4), op)):
                    self.assertIsInstance(result, prepost.TransferError)
                    self.assertIn("op returned", str(result))

    # A wrong argument makes no call, with which members would be out of step;
    # nor does an operation.
    def test_what_is_refused_makes_no_call(self):
        with Members(2, failure_max=1) as members:
            with self.assertRaises(prepost.UsageError):
                members.groups[0].barrier(wait="no")
            found = members.run(lambda i, g: g.allreduce(numpy.ones(4)))
            self.assertTrue(all(numpy.array_equal(it, numpy.full(4, 2.0)) for it in found), found)

            def calls(a, b):
                members.groups[0].barrier(wait=False)

            with unittest.mock.patch("sys.unraisablehook"):
                for result in members.run(lambda i, g: g.allreduce(numpy.ones(4), calls)):
                    self.assertIn("may make a call", str(result))

    def test_a_session_that_is_closed_gives_memory_back(self):
        with Members(2) as members:
            memory = bytearray(800)
            call = members.groups[0].allreduce(
                numpy.ones(100), out=memoryview(memory).cast("d"), wait=False
            )
            members.sessions[0].close()
            del call  # which has `out`
            memory.extend(b"more")

    def test_a_member_that_does_not_come(self):
        with Members(2) as members:
            with self.assertRaises(prepost.Timeout):
                members.groups[0].barrier(timeout=0.2)
            members.groups[0].abort("tired")
            with self.assertRaisesRegex(prepost.TransferError, "tired"):
                members.groups[1].barrier(timeout=TIMEOUT)

    def test_what_is_wrong_is_said(self):
        with Members(2) as members:
            group = members.groups[0]
            values = numpy.zeros((2, 4), dtype="float32")
            strided = numpy.zeros((4, 4), dtype="float32")[:, :2]
            for text, call in {
                "op is sum, prod": lambda: group.allreduce(values, "mean"),
                "xor of float32": lambda: group.allreduce(values, "xor"),
                "a sum of bools is no bool": lambda: group.allreduce(values.astype("bool")),
                "combines integers and floats, not complex64": lambda: group.allreduce(
                    values.astype("complex64")
                ),
                "32 bytes, and 64 are needed": lambda: group.allgather(
                    values, out=numpy.zeros_like(values)
                ),
                "out has elements of float64": lambda: group.allreduce(
                    values, out=values.astype("float64")
                ),
                "no part for each of 2 members": lambda: group.alltoall(numpy.zeros((3, 2))),
                "an alltoall cannot be in place": lambda: group.alltoall(values, out=values),
                "scatter.. needs `out`": lambda: group.scatter(None, 1),
                "root 5 is not a member": lambda: group.broadcast(values, 5),
                "root is a whole number": lambda: group.reduce(values, "sum"),
                "counts": lambda: group.alltoallv(values, [8], [4, 4]),
            }.items():
                with self.assertRaisesRegex(prepost.UsageError, text):
                    call()
            with self.assertRaises(BufferError):
                group.allreduce(strided)
            with self.assertRaises((BufferError, TypeError, ValueError)):
                group.broadcast(b"constant", 1)
            self.assertEqual(members.run(lambda i, g: g.barrier(timeout=TIMEOUT)), [None] * 2)


if __name__ == "__main__":
    unittest.main()
