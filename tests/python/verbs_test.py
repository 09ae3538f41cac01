# SPDX-License-Identifier: Apache-2.0
"""A group over the device of libibverbs that PREPOST_TEST_VERBS names;
its members are threads of this process."""
import os
import threading
import unittest

import prepost

DEVICE = os.environ.get("PREPOST_TEST_VERBS", "")


@unittest.skipUnless(DEVICE, "PREPOST_TEST_VERBS names no device (scripts/test-verbs)")
class VerbsTest(unittest.TestCase):
    def test_messages_of_several_sizes(self):
        """Catches buffers of Python that the NIC may not write,
        and a lock that is held while it does."""
        messages = [os.urandom(size) for size in (0, 1, 70_000, 3_000_001)]
        hosts = [f"127.0.7.{i + 1}" for i in range(3)]
        received = [None] * 3
        sessions = [
            prepost.Session(self=i, members=hosts, secret=b"a secret of this test alone")
            for i in range(3)
        ]

        def member(i):
            group = sessions[i].group(1, device=DEVICE, executor="cpu")
            if i == 0:
                received[i] = [bytes(group.broadcast(message)) for message in messages]
            else:
                received[i] = [bytes(group.broadcast()) for _ in messages]
            group.destroy()

        threads = [threading.Thread(target=member, args=(i,)) for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        for session in sessions:
            session.close()
        self.assertEqual(received, [messages] * 3)


if __name__ == "__main__":
    unittest.main(verbosity=0)
