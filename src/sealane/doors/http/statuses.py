"""Which status an error is answered with. The narrower class stands before the wider one."""

from __future__ import annotations

import math
from http import HTTPStatus

from sealane import errors
from sealane.errors import SealaneError

STATUSES: tuple[tuple[type[SealaneError], int], ...] = (
    (errors.Unauthenticated, 401),
    (errors.BadSignature, 401),
    (errors.Forbidden, 403),
    (errors.NotFound, 404),
    (errors.Unroutable, 404),
    (errors.AlreadyExists, 409),
    (errors.ModeConflict, 409),
    (errors.IncompatibleSchema, 409),
    (errors.LeaseLost, 409),
    (errors.TransactionAborted, 409),
    (errors.StagedPartLost, 409),
    (errors.StaleSequence, 409),
    (errors.LimitExceeded, 413),
    (errors.RateLimited, 429),
    (errors.QueueFull, 429),
    (errors.TooManyConnections, 429),
    (errors.MissingExtra, 501),
    (errors.StorageFull, 507),
    (errors.StorageError, 503),
    (errors.DeadlineExceeded, 503),
    (errors.Unavailable, 503),
    (errors.Closed, 503),
)
"""Whatever is not here is about what was sent: 422."""

RETRY_SECONDS = 1
"""After so long it is worth asking again, where nothing better is known."""


def status_of(error: SealaneError) -> int:
    return next((status for kind, status in STATUSES if isinstance(error, kind)), 422)


def retry_after(error: SealaneError) -> dict[str, str]:
    """When to come back, as a header, for what may go well another time."""
    if isinstance(error, errors.RateLimited):
        return {"retry-after": str(max(1, math.ceil(error.retry_after_seconds)))}
    if status_of(error) in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        return {"retry-after": str(RETRY_SECONDS)}
    return {}
