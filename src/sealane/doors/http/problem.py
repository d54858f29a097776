"""A problem document (RFC 9457): what is answered instead of a traceback or a page of HTML."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.responses import JSONResponse

from sealane.doors.http.statuses import retry_after, status_of
from sealane.errors import SealaneError
from sealane.wire.faults import CAUSE, fault_of

WAYS_IN = 'Bearer realm="sealane", Basic realm="sealane", charset="UTF-8"'
"""What a client may show, beside the certificate of its connection."""


class Problem(JSONResponse):
    """`{"type", "title", "status", "detail", …}`; members beyond those tell programs the same as the detail."""

    media_type = "application/problem+json"

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        type: str = "about:blank",
        headers: Mapping[str, str] | None = None,
        **members: Any,
    ) -> None:
        title = HTTPStatus(status).phrase
        document = {"type": type, "title": title, "status": status, "detail": detail}
        document |= {name: value for name, value in members.items() if name not in document}
        super().__init__(document, status_code=status, headers=dict(headers) if headers else None)


def problem_of(error: SealaneError, **members: Any) -> Problem:
    """The error as a document: its type is `urn:sealane:` and the error's code, its fields are members."""
    code, text, fields = fault_of(error)
    fields.pop(CAUSE, None)
    status = status_of(error)
    headers = retry_after(error)
    if status == HTTPStatus.UNAUTHORIZED:
        headers["www-authenticate"] = WAYS_IN
    return Problem(status, text, type=f"urn:sealane:{code}", headers=headers, **{**fields, **members})
