"""What a node must not start with, where a door's protocol has no word for who comes."""

from __future__ import annotations

import pytest

from sealane.errors import InvalidSettings
from sealane.server.checks import check
from sealane.server.loading import load


@pytest.fixture(autouse=True)
def in_an_empty_directory(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(str(tmp_path))


def problems(*pairs: str) -> tuple[str, ...]:
    with pytest.raises(InvalidSettings) as caught:
        check(load(environ={}, pairs=pairs).settings)
    return caught.value.problems


def fine(*pairs: str) -> None:
    check(load(environ={}, pairs=pairs).settings)


nameless = pytest.mark.parametrize("door", ["frames", "cipher"])


@nameless
def test_somebody_must_say_who_comes(door: str) -> None:
    (problem,) = problems(f"doors.{door}.enabled=on")
    assert f"doors.{door}.principal" in problem
    assert "sealane account create" in problem
    fine(f"doors.{door}.enabled=on", f"doors.{door}.principal=legacy")
    fine(f"doors.{door}.enabled=on", f"doors.{door}.tls=on")
    fine(f"doors.{door}.enabled=on", "insecure=on")


@nameless
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1"])
def test_plain_text_is_for_this_machine_alone_unless_someone_says_otherwise(door: str, host: str) -> None:
    opened = [f"doors.{door}.enabled=on", f"doors.{door}.principal=legacy", f"doors.{door}.host={host}"]
    (problem,) = problems(*opened)
    assert problem.startswith(f"doors.{door}.host is {host!r}")
    assert f"doors.{door}.plain_text_beyond_loopback" in problem
    fine(*opened, f"doors.{door}.tls=on")
    fine(*opened, f"doors.{door}.plain_text_beyond_loopback=on")


@nameless
def test_without_authentication_no_word_opens_it_to_others(door: str) -> None:
    pairs = [f"doors.{door}.enabled=on", f"doors.{door}.host=0.0.0.0", f"doors.{door}.plain_text_beyond_loopback=on"]
    (problem,) = problems("insecure=on", *pairs)
    assert "with --insecure doors listen on loopback addresses only" in problem


@nameless
def test_a_node_without_a_certificate_has_none_to_show(door: str) -> None:
    (problem,) = problems("insecure=on", f"doors.{door}.enabled=on", f"doors.{door}.tls=on")
    assert problem.startswith(f"doors.{door}.tls is on")


@nameless
def test_an_account_that_cannot_be_is_refused(door: str) -> None:
    (problem,) = problems(f"doors.{door}.enabled=on", f"doors.{door}.principal=no account")
    assert problem.startswith(f"doors.{door}.principal")
