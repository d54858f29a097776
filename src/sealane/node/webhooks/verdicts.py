"""What follows from how a receiver answered, or did not."""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Literal, NamedTuple

RETRY_AFTER_SECONDS_MAX = 3_600.0
"""What a receiver may ask for by `Retry-After`: more would let it put off its messages for ever."""

Outcome = Literal["2xx", "3xx", "4xx", "5xx", "timeout", "unreachable", "refused"]
"""How requests are counted: by the answer's class; no answer in time; none at all; not sent, since it must not be."""

_ASKS_TO_WAIT = (429, 503)
_GONE = 410


class Answer(NamedTuple):
    """What a receiver said."""

    status: int
    retry_after: str | None = None
    """Its `Retry-After`, as it came."""


class Verdict(NamedTuple):
    does: Literal["ack", "nack", "stop"]
    """`stop`: nothing is to be sent to this receiver any more."""
    outcome: Outcome
    reason: str = ""
    """Why not, for the dead letters and for whoever looks."""
    delay_seconds: float | None = None
    """How long the receiver wants to be left alone; None: it did not say."""


def judge(answer: Answer, now_seconds: float) -> Verdict:
    """`now_seconds` since 1970."""
    status = answer.status
    if 200 <= status < 300:
        return Verdict("ack", "2xx")
    if 300 <= status < 400:
        return Verdict("nack", "3xx", f"the receiver answered {status}, and redirects are not followed")
    outcome: Outcome = "4xx" if 400 <= status < 500 else "5xx"
    if status == _GONE:
        return Verdict("stop", outcome, "the receiver answered 410: it wants no more messages")
    delay = retry_after_seconds(answer.retry_after, now_seconds) if status in _ASKS_TO_WAIT else None
    return Verdict("nack", outcome, f"the receiver answered {status}", delay)


def failed(outcome: Outcome, reason: str) -> Verdict:
    """There was no answer."""
    return Verdict("nack", outcome, reason)


def retry_after_seconds(header: str | None, now_seconds: float) -> float | None:
    """What `Retry-After` says, in seconds or as a date, within bounds; None if it says nothing."""
    text = (header or "").strip()
    if text.isascii() and text.isdigit():
        # A number of any length is fine, and is not computed with.
        return RETRY_AFTER_SECONDS_MAX if len(text) > 9 else min(float(text), RETRY_AFTER_SECONDS_MAX)
    try:
        moment = parsedate_to_datetime(text)
        seconds = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - now_seconds
    except (ValueError, OverflowError, TypeError):
        return None
    return min(max(seconds, 0.0), RETRY_AFTER_SECONDS_MAX)
