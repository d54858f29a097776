"""Which status an error is answered with. The narrower class stands before the wider one."""

from __future__ import annotations

from grpc import StatusCode

from sealane import errors
from sealane.errors import SealaneError

STATUSES: tuple[tuple[type[SealaneError], StatusCode], ...] = (
    (errors.Unauthenticated, StatusCode.UNAUTHENTICATED),
    (errors.BadSignature, StatusCode.UNAUTHENTICATED),
    (errors.Forbidden, StatusCode.PERMISSION_DENIED),
    (errors.NotFound, StatusCode.NOT_FOUND),
    (errors.Unroutable, StatusCode.NOT_FOUND),
    (errors.AlreadyExists, StatusCode.ALREADY_EXISTS),
    (errors.RateLimited, StatusCode.RESOURCE_EXHAUSTED),
    (errors.QueueFull, StatusCode.RESOURCE_EXHAUSTED),
    (errors.StorageFull, StatusCode.RESOURCE_EXHAUSTED),
    (errors.TooManyConnections, StatusCode.RESOURCE_EXHAUSTED),
    (errors.ModeConflict, StatusCode.FAILED_PRECONDITION),
    (errors.LeaseLost, StatusCode.FAILED_PRECONDITION),
    (errors.StaleSequence, StatusCode.FAILED_PRECONDITION),
    (errors.TransactionAborted, StatusCode.FAILED_PRECONDITION),
    (errors.StagedPartLost, StatusCode.FAILED_PRECONDITION),
    (errors.CorruptData, StatusCode.DATA_LOSS),
    (errors.StorageError, StatusCode.UNAVAILABLE),
    (errors.DeadlineExceeded, StatusCode.DEADLINE_EXCEEDED),
    (errors.Unavailable, StatusCode.UNAVAILABLE),
    (errors.Closed, StatusCode.UNAVAILABLE),
)
"""Whatever is not here is about what was sent, and is wrong however often it is sent: INVALID_ARGUMENT."""

DETAIL_CHARS_MAX = 1_024
"""Of an error's text: it goes into the metadata of an answer, which clients take only so much of."""
RETRY_SECONDS = 1.0
"""After so long it is worth asking again, where nothing better is known."""
ERROR_KEY = "sealane-error"
RETRY_KEY = "retry-after"
UNEXPECTED = "the node failed unexpectedly at this call; its log tells more"

Told = tuple[StatusCode, str, tuple[tuple[str, str], ...]]
"""Status, text and trailing metadata."""


def status_of(error: SealaneError) -> StatusCode:
    return next((status for kind, status in STATUSES if isinstance(error, kind)), StatusCode.INVALID_ARGUMENT)


def told(error: BaseException) -> Told:
    """What a client hears of it. Of what nobody expected it learns no more than that it happened."""
    if not isinstance(error, SealaneError):
        return StatusCode.INTERNAL, UNEXPECTED, ()
    status = status_of(error)
    metadata = [(ERROR_KEY, type(error).__name__)]
    if status is StatusCode.RESOURCE_EXHAUSTED:
        seconds = error.retry_after_seconds if isinstance(error, errors.RateLimited) else RETRY_SECONDS
        metadata.append((RETRY_KEY, f"{seconds:.3f}"))
    text = str(error)
    if len(text) > DETAIL_CHARS_MAX:
        text = text[: DETAIL_CHARS_MAX - 1] + "…"
    return status, text, tuple(metadata)
