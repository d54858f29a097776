"""What a node must not start with."""

from __future__ import annotations

import pytest

from sealane.errors import InvalidSettings
from sealane.server.checks import check, is_loopback
from sealane.server.loading import load

CIPHER_WITH_TLS = ("doors.cipher.enabled=on", "doors.cipher.tls=on")


def problems(*pairs: str) -> tuple[str, ...]:
    with pytest.raises(InvalidSettings) as caught:
        check(load(environ={}, pairs=pairs).settings)
    return caught.value.problems


@pytest.fixture(autouse=True)
def in_an_empty_directory(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(str(tmp_path))


def test_a_node_with_tls_may_be_reached_by_everyone() -> None:
    check(load(environ={}, pairs=["doors.native.host=0.0.0.0", "doors.http.host=::"]).settings)


def test_a_name_that_no_certificate_can_be_for_is_refused() -> None:
    (problem,) = problems("security.certificates.names=broker.example.com, not a name")
    assert problem.startswith("security.certificates.names 'not a name'")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_is_this_machine_alone(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "8.8.8.8", "localhost.example.com", "node", ""])
def test_everything_else_is_not(host: str) -> None:
    assert not is_loopback(host)


def test_a_door_that_is_closed_may_have_any_address() -> None:
    pairs = ["insecure=on", "doors.http.enabled=off", "doors.http.host=0.0.0.0", "doors.grpc.host=0.0.0.0"]
    check(load(environ={}, pairs=pairs).settings)


def test_every_reason_is_told() -> None:
    told = problems("insecure=on", "doors.native.host=0.0.0.0", "doors.http.host=::", *CIPHER_WITH_TLS)

    assert [problem.split()[0] for problem in told] == ["doors.native.host", "doors.http.host", "doors.cipher.tls"]


def test_a_door_whose_packages_are_missing_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sealane.server.checks.find_spec", lambda name: None if name == "grpc_health" else name)
    (problem,) = problems("insecure=on", "doors.grpc.enabled=on")

    assert problem.startswith("doors.grpc.enabled is on, and grpc_health is not installed")
    assert "pip install 'sealane[grpc]'" in problem


def test_a_node_that_nobody_can_reach_is_a_mistake() -> None:
    (problem,) = problems("insecure=on", "doors.native.enabled=off", "doors.http.enabled=off")

    assert "no door is enabled" in problem
