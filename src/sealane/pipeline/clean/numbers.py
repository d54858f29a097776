"""Taking phone numbers out of a message: each becomes its hash, the same wherever the number stands in a domain.

A message's key, a header and a text that are a number as a whole are hashed. In JSON a value is hashed if the name of
its field says that it is one (digits alone are enough there, be they text or a number), or if the whole text is one
with its country; so is a name that is one. Numbers within longer texts are not looked for.
"""

from __future__ import annotations

from typing import Any

from sealane.pipeline.clean.field_names import WITHIN_PHONE, says_phone
from sealane.pipeline.clean.phone_numbers import DIGITS, is_international, is_number, is_number_by_name
from sealane.pipeline.secrets.lake_keys import LakeKeys

Headers = list[tuple[str, str | None]]


class Numbers:
    """Of one domain, by the lake's keys."""

    def __init__(self, keys: LakeKeys, domain: str) -> None:
        self._keys = keys
        self._domain = domain

    def hashed(self, text: str) -> str:
        return self._keys.hash_number(self._domain, text)

    def in_bytes(self, data: bytes) -> bytes:
        """A message's key, or a payload that is text: its hash if it is a number as a whole, else as it is."""
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return data
        return self.hashed(text).encode() if is_number(text) else data

    def in_headers(self, headers: Headers) -> Headers:
        return [(name, self._in_header(name, value)) for name, value in headers]

    def _in_header(self, name: str, value: str | None) -> str | None:
        if value is None:
            return None
        is_one = is_number(value) or (says_phone(name) and is_number_by_name(value))
        return self.hashed(value) if is_one else value

    def in_document(self, document: Any) -> Any:
        """A JSON document without numbers; lists and objects in it are changed, not copied."""
        root = [document]
        # Not by recursion: a document may be deeper than Python's stack has room for.
        waiting: list[tuple[list[Any] | dict[str, Any], bool]] = [(root, False)]
        while waiting:
            some, by_name = waiting.pop()
            if isinstance(some, list):
                for place, value in enumerate(some):
                    if isinstance(value, list | dict):
                        waiting.append((value, by_name))
                    else:
                        some[place] = self._in_value(value, by_name)
                continue
            for name, value in list(some.items()):
                if is_international(name):
                    some[self.hashed(name)] = some.pop(name)
                    name = self.hashed(name)
                says_so = says_phone(name) or (by_name and name.lower() in WITHIN_PHONE)
                if isinstance(value, list | dict):
                    waiting.append((value, says_so))
                else:
                    some[name] = self._in_value(value, says_so)
        return root[0]

    def _in_value(self, value: Any, by_name: bool) -> Any:
        if isinstance(value, str):
            is_one = is_international(value) or (by_name and is_number_by_name(value))
            return self.hashed(value) if is_one else value
        if by_name and isinstance(value, int) and not isinstance(value, bool) and len(str(value)) in DIGITS:
            return self.hashed(str(value)) if value > 0 else value
        return value
