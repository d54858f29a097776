"""The values of options, which Spark hands over as texts: what each may be, and what is said of one that cannot be."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime

from sealane.client.remote.pem import PEM_BEGIN, Pem
from sealane.errors import InvalidArgument, InvalidName
from sealane.message.limits import Limits
from sealane.message.names import check_name, split_topic
from sealane.security.envelopes import PrivateKey
from sealane.security.grants.patterns import OWN_DOMAIN, check_pattern
from sealane.spark.errors import InvalidOption

OffsetsByTopic = dict[str, dict[int, int]]
"""As a user gives them: a topic as it was called, a partition, an offset."""

_TRUTHS = {"true": True, "false": False}
_DIGITS = re.compile(r"[0-9]+", re.ASCII)
_PEM_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----.+?-----END \1-----", re.DOTALL)
_ANY_LENGTH = Limits(name_chars_max=1 << 30)
"""How long a name may be is the node's to say."""


def truth(option: str, text: str) -> bool:
    found = _TRUTHS.get(text.strip().lower())
    if found is None:
        raise InvalidOption(option, f"{text!r} is neither 'true' nor 'false'")
    return found


def positive(option: str, text: str) -> int:
    """A whole number from 1 on."""
    digits = text.strip()
    if _DIGITS.fullmatch(digits) is None or int(digits) == 0:
        raise InvalidOption(option, f"{text!r} is not a whole number of at least 1")
    return int(digits)


def moment(option: str, text: str) -> datetime:
    """ISO 8601 with a time zone, or milliseconds since 1970."""
    given = text.strip()
    try:
        if _DIGITS.fullmatch(given):
            return datetime.fromtimestamp(int(given) / 1000, UTC)
        found = datetime.fromisoformat(given)
    except (ValueError, OverflowError, OSError):
        problem = f"{text!r} is no moment; write 2026-01-31T12:00:00Z, or milliseconds since 1970"
        raise InvalidOption(option, problem) from None
    if found.tzinfo is None:
        raise InvalidOption(option, f"{text!r} has no time zone; write {given}Z for UTC, or {given}+02:00")
    return found


def listed(option: str, text: str) -> tuple[str, ...]:
    """Names with commas between them, each once, in their order."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise InvalidOption(option, f"{text!r} has an empty name; it is one name, or several with commas between them")
    return tuple(dict.fromkeys(names))


def topic_name(option: str, name: str) -> str:
    """One topic, by `name` or `domain/name`."""
    if "*" in name:
        raise InvalidOption(option, f"{name!r} is a pattern, and one topic is asked for: a name, or `domain/name`")
    _check_topic(option, name)
    return name


def topics(option: str, text: str) -> tuple[str, ...]:
    """Topics and patterns of topics."""
    names = listed(option, text)
    for name in names:
        _check_topic(option, name)
    return names


def _check_topic(option: str, name: str) -> None:
    try:
        if "*" in name:
            check_pattern("/".join(split_topic(name, OWN_DOMAIN)))
            return
        for kind, part in zip(("domain", "topic"), split_topic(name), strict=True):
            check_name(kind, part, _ANY_LENGTH, system=True)
    except (InvalidName, InvalidArgument) as error:
        allowed = "a topic is `name` or `domain/name`, and `*` in it stands for any characters"
        raise InvalidOption(option, f"{name!r} is no topic: {error.problem}; {allowed}") from None


def offsets(option: str, text: str, topics: tuple[str, ...], words: tuple[str, ...]) -> OffsetsByTopic | str:
    """One of the `words`, or JSON: `{"0": 12}` for the only topic, `{"orders": {"0": 12}}` for any number of them."""
    word = text.strip().lower()
    if word in words:
        return word
    allowed = " or ".join([*map(repr, words), 'JSON such as {"0": 12} (one topic) or {"orders": {"0": 12}}'])
    try:
        given = json.loads(text)
    except ValueError:
        raise InvalidOption(option, f"{text!r} cannot be read; it is {allowed}") from None
    if not isinstance(given, dict) or not given:
        raise InvalidOption(option, f"{text!r} names no partition; it is {allowed}")
    if not all(isinstance(value, dict) for value in given.values()):
        if len(topics) != 1 or "*" in topics[0]:
            problem = f"{text!r} does not say of which topic; with several it is "
            raise InvalidOption(option, problem + f'{{"{topics[0]}": {{"0": 12}}}}')
        given = {topics[0]: given}
    return {topic: _partitions(option, text, partitions, allowed) for topic, partitions in given.items()}


def _partitions(option: str, text: str, given: Mapping[str, object], allowed: str) -> dict[int, int]:
    found = {}
    for partition, offset in given.items():
        # JSON's true is Python's True, which is an int.
        is_offset = isinstance(offset, int) and not isinstance(offset, bool) and offset >= 0
        if _DIGITS.fullmatch(partition) is None or not is_offset:
            wrong = f"{partition!r}: {offset!r} is no partition and offset"
            raise InvalidOption(option, f"{text!r}: {wrong}; it is {allowed}")
        assert isinstance(offset, int)
        found[int(partition)] = offset
    return found


def private_keys(option: str, text: str) -> tuple[str, ...]:
    """PEM texts of keys that open envelopes, from files or as they are. Nothing of a key is in an error."""
    if PEM_BEGIN in text:
        pems = {f"key {number}": found.group() for number, found in enumerate(_PEM_BLOCK.finditer(text), 1)}
        if not pems:
            raise InvalidOption(option, "has a PEM text that does not end; it is whole, or the path of a file")
    else:
        pems = {path: _content(option, path) for path in listed(option, text)}
    for name, pem in pems.items():
        try:
            PrivateKey.from_pem(pem)
        except InvalidArgument as error:
            allowed = "a private key as `sealane recipient keygen` makes it, without a passphrase"
            raise InvalidOption(option, f"{name}: {error.problem}; it is {allowed}") from None
    return tuple(pems.values())


def _content(option: str, path: str) -> str:
    try:
        return Pem(option, path).read().decode("ascii", errors="replace")
    except InvalidArgument as error:
        raise InvalidOption(option, f"{error.problem}; it is the path of a private key file on the driver") from None


def renamed(option: str, text: str) -> dict[str, str]:
    """`payload=body, key=customer`: by message column, the DataFrame's column that it comes from."""
    found: dict[str, str] = {}
    for pair in listed(option, text):
        column, equals, source = (part.strip() for part in pair.partition("="))
        if not equals or not source:
            raise InvalidOption(option, f"{pair!r} is not 'message column=DataFrame column', as payload=body is")
        if column in found:
            raise InvalidOption(option, f"{column!r} is given twice: {found[column]!r} and {source!r}")
        found[column] = source
    return found
