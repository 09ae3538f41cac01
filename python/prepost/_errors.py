# SPDX-License-Identifier: Apache-2.0
"""The exceptions. Their texts are those of the C++ library: lower case, no final period."""
from typing import Optional


class Error(Exception):
    """Whatever this package reports itself. Exceptions of Python, such as BufferError, come as well."""


class UsageError(Error, ValueError):
    """The call: arguments that are wrong, or that do not go together."""


class RejectedError(Error):
    """An input that is wrong, such as a plan file or a spec, or a check that failed."""


class EnvironmentError(Error):
    """Something that this machine lacks: a permission, a limit, a port that is free, a library."""


class TransferError(Error):
    """A group has failed: every call of it raises this from then on. All of its memory is the caller's again.

    `member` is the number of the session's member that failed, the one to leave out of a new group, or None where that is not known.
    """

    member: Optional[int]

    def __init__(self, text: str, member: Optional[int] = None) -> None:
        super().__init__(text)
        self.member = member


class Timeout(Error, TimeoutError):
    """A call with a timeout did not end in time. What it waited for may still come; it can be called again."""


def exception_of(kind: str, code: int, text: str, member: Optional[int]) -> BaseException:
    """What _native raises. `code` is a StatusCode."""
    if kind == "timeout":
        return Timeout(text)
    if kind == "group":
        return TransferError(text, member)
    if code == 130:
        return KeyboardInterrupt(text)
    return {2: UsageError, 1: RejectedError, 3: EnvironmentError}[code](text)
