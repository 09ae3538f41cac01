# SPDX-License-Identifier: Apache-2.0
"""What groups for messages and groups for calls have in common."""
from types import TracebackType
from typing import Optional, Type, TypeVar

from . import _check, _native
from ._errors import TransferError, UsageError

_Own = TypeVar("_Own", bound="Membership")


class Membership:
    """A member's place in a group of a session."""

    def __init__(self, native: "_native.Group") -> None:
        self._native = native
        self._is_left = False

    def destroy(self, timeout: Optional[float] = None) -> None:
        """Waits until all members have called it,
        and every message and call is complete at every member.

        Messages that came and were not received yet stay, for Group.receive(). More than there is
        room for, in a pool or `backlog_bytes`, are to be received first. After a Timeout it may be
        called again.
        """
        seconds = _check.timeout(timeout)
        if not self._is_left:
            self._native.destroy()
        self._is_left = True
        self._native.wait_closed(seconds)

    def abort(self, why: str = "") -> None:
        """Ends the group at once, at all members: their calls raise a TransferError that names this
        member and says `why`.

        Returns when it is over at this member;
        does nothing where the group is closed or has failed.
        """
        why = _check.text("why", why)
        if self.failure is not None or self.closed:
            return
        try:
            self._native.abort(why)
        except TransferError:  # just now
            pass

    @property
    def number(self) -> int:
        """The number with which it was created."""
        return self._native.number

    @property
    def opened(self) -> bool:
        """Whether all members are there, and this one's connections, but those that calls open when
        they first use them."""
        return self._native.opened

    @property
    def closed(self) -> bool:
        """Whether destroy() is done, at all members."""
        return self._native.closed

    @property
    def failure(self) -> Optional[BaseException]:
        """What all calls raise; None: nothing has failed."""
        try:
            self._native.check()
        except (TransferError, UsageError) as error:
            return error
        return None

    def __enter__(self: _Own) -> _Own:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if kind is not None:
            self.abort(f"{kind.__name__}: {error}" if str(error) else kind.__name__)
        elif not (self._native.inherited or self.closed):
            self._leave()

    def _leave(self) -> None:
        self.destroy()
