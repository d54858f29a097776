"""What the cipher door can be told, and what it cannot."""

from __future__ import annotations

from typing import Any

import pytest

from sealane.delivery.config import ATTEMPTS_MAX, LEASE_SECONDS_MAX
from sealane.doors.cipher.settings import CipherDoorSettings
from sealane.errors import InvalidArgument, InvalidSettings
from sealane.server.checks import check
from sealane.server.loading import load


@pytest.fixture(autouse=True)
def in_an_empty_directory(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(str(tmp_path))


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("lease_seconds", LEASE_SECONDS_MAX, LEASE_SECONDS_MAX + 1),
        ("lease_seconds", 0.001, 0),
        ("attempts_max", 1, 0),
        ("attempts_max", ATTEMPTS_MAX, ATTEMPTS_MAX + 1),
        ("window_messages", 1, 0),
        ("line_bytes_max", 1, 0),
        ("subscription", "receivers", "_receivers"),
        ("subscription", "x", ""),
        ("connections_max", 1, 0),
        ("send_seconds_max", 0.1, 0),
    ],
)
def test_each_setting_has_its_edge(name: str, good: Any, bad: Any) -> None:
    CipherDoorSettings(**{name: good})
    with pytest.raises(InvalidArgument) as refused:
        CipherDoorSettings(**{name: bad})
    assert refused.value.argument == f"doors.cipher.{name}"


def problems(*pairs: str) -> tuple[str, ...]:
    with pytest.raises(InvalidSettings) as caught:
        check(load(environ={}, pairs=["doors.cipher.enabled=on", *pairs]).settings)
    return caught.value.problems


def test_a_door_in_plain_text_that_names_nobody_is_not_opened() -> None:
    (problem,) = problems()
    assert problem.startswith("doors.cipher.enabled is on, and nobody says who comes by it")


@pytest.mark.parametrize(
    "pairs",
    [
        ["insecure=on"],
        ["doors.cipher.principal=legacy"],
        ["doors.cipher.tls=on"],
        ["doors.cipher.tls=on", "doors.cipher.host=0.0.0.0"],
        ["doors.cipher.principal=legacy", "doors.cipher.host=::", "doors.cipher.plain_text_beyond_loopback=on"],
    ],
)
def test_it_is_opened_for_someone_who_is_known(pairs: list[str]) -> None:
    check(load(environ={}, pairs=["doors.cipher.enabled=on", *pairs]).settings)


def test_plain_text_is_for_this_machine_alone_unless_someone_says_otherwise_in_so_many_words() -> None:
    (problem,) = problems("doors.cipher.principal=legacy", "doors.cipher.host=0.0.0.0")
    assert "doors.cipher.plain_text_beyond_loopback" in problem


def test_it_is_off_until_somebody_wants_it() -> None:
    assert not load(environ={}, pairs=[]).settings.doors.cipher.enabled
