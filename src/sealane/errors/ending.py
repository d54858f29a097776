"""What has ended, or took too long."""

from __future__ import annotations

from sealane.errors.base import SealaneError


class Closed(SealaneError):
    """The lane, consumer or producer was closed."""


class WouldBlock(SealaneError):
    """A blocking call was made where it would stop an event loop; the message says what to use there."""


class DeadlineExceeded(SealaneError, TimeoutError):
    """A wait ended at its deadline; whether the work happened is unknown unless the message says so."""
