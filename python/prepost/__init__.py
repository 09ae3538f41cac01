# SPDX-License-Identifier: Apache-2.0
"""Multicast of memory to groups of processes, collectives among them,
and the plans that these follow.

    members = ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
    with prepost.Session(self=1, members=members, secret=secret) as session:
        group = session.group(7)          # the same at all members; member 0 is the root
        data = group.broadcast(buffer)    # sends at the root, receives elsewhere
        group.destroy()

        with session.collectives(8) as group:
            # Of NumPy arrays, tensors on the CPU, anything with memory.
            total = group.allreduce(array)

docs/library.md explains groups, docs/plan.md plans.
"""
from ._errors import EnvironmentError, Error, RejectedError, Timeout, TransferError, UsageError
from ._collectives import Call, Collectives
from ._native import version as __version__
from ._plan import Finding, Plan, RolledPlan, choose, compile, profile, roll
from ._session import PORT, Group, MemoryPool, Paths, Session
from ._sweep import sweep

__all__ = [
    "Call",
    "Collectives",
    "EnvironmentError",
    "Error",
    "Finding",
    "Group",
    "MemoryPool",
    "PORT",
    "Paths",
    "Plan",
    "RejectedError",
    "RolledPlan",
    "Session",
    "Timeout",
    "TransferError",
    "UsageError",
    "__version__",
    "choose",
    "compile",
    "profile",
    "roll",
    "sweep",
]
