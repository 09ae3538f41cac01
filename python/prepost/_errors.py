# SPDX-License-Identifier: Apache-2.0
"""The exceptions. Their texts are those of the C++ library: lower case, no final period. The module
in C++ raises them (module.cc), and they are made without code of Python."""
from typing import Optional, Tuple


class Error(Exception):
    """Whatever this package reports itself. Exceptions of Python,
    such as BufferError, come as well."""


class UsageError(Error, ValueError):
    """The call: arguments that are wrong, or that do not go together."""


class RejectedError(Error):
    """An input that is wrong, such as a plan file or a spec, or a check that failed."""


class EnvironmentError(Error):
    """Something that this machine lacks: a permission, a limit, a port that is free, a library."""


class TransferError(Error):
    """A group has failed: every call of it raises this from then on.
    All of its memory is the caller's again.

    `members` are the numbers of the session's members to leave out of a new group: the first is
    where it failed, and the others are all that are known to be gone as well; empty where that is
    not known. `member` is the first of them, or None. `messages` says what this member has, as
    Group.messages does. `unreached`: not all connections could be made in time; where the root
    reaches all, it can send to each itself: Session.group(algorithm="sequential",
    root_connects=True).
    """

    member: Optional[int] = None
    members: Tuple[int, ...] = ()
    messages: int = 0
    unreached: bool = False


class Timeout(Error, TimeoutError):
    """A call with a timeout did not end in time. What it waited for may still come;
    it can be called again."""
