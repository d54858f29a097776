"""What went wrong, as the same document that a request would be answered with (RFC 9457)."""

from __future__ import annotations

from typing import Any

import msgspec

from sealane.doors.http.problem import Problem, problem_of
from sealane.errors import SealaneError


def problem_with(error: BaseException) -> Problem:
    """Of an error that nobody expected, the client learns no more than that there was one."""
    if isinstance(error, SealaneError):
        return problem_of(error)
    return Problem(500, "the node failed at this; its log has the reason")


def problem_document(error: BaseException) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.json.decode(bytes(problem_with(error).body))
    return document
