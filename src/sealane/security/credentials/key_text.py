"""API keys as people see them: `slk_<id>_<secret>`, shown once."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, field

from sealane.errors import InvalidArgument

KEY_PREFIX = "slk_"
"""So that whoever scans for leaked secrets knows one."""
SECRET_BYTES = 32
ID_CHARS = 12

_KEY = re.compile(rf"{KEY_PREFIX}([a-z2-7]{{{ID_CHARS}}})_([A-Za-z0-9_-]{{43}})", re.ASCII)


@dataclass(frozen=True, slots=True)
class ApiKeyText:
    """A key in its parts. The secret is in no `repr`."""

    id: str
    secret: bytes = field(repr=False)

    def written(self) -> str:
        """The whole key, as its owner keeps it."""
        secret = base64.urlsafe_b64encode(self.secret).rstrip(b"=").decode()
        return f"{KEY_PREFIX}{self.id}_{secret}"


def read_api_key(text: str) -> ApiKeyText:
    """Raises `InvalidArgument`, in which the text is not repeated."""
    match = _KEY.fullmatch(text.strip())
    if match is None:
        problem = (
            f"this is no API key: one begins with {KEY_PREFIX!r} and has {len(KEY_PREFIX) + ID_CHARS + 44} characters"
        )
        raise InvalidArgument("key", problem)
    try:
        return ApiKeyText(match[1], base64.b64decode(match[2] + "=", altchars=b"-_", validate=True))
    except binascii.Error:
        raise InvalidArgument("key", "this is no API key: its secret cannot be read") from None
