"""Which authenticator is asked, and those that others add."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from sealane.errors import BrokenPlugin, Unauthenticated
from sealane.security.authentication import PLUGINS, Authentication, load_plugins
from sealane.security.introductions import Introduction
from sealane.security.principals import Principal
from tests.unit.security.identities import Clock, an_identity, entered, refusal


class Badges:
    """Knows whoever shows a badge."""

    name = "badge"

    def __init__(self, identity: Any) -> None:
        self.identity = identity

    async def authenticate(self, shown: Introduction) -> Principal | None:
        badge = (shown.credentials or {}).get("badge")
        return None if badge is None else Principal(f"badge:{badge}", kind="token")


class Everyone:
    name = "certificate"

    async def authenticate(self, shown: Introduction) -> Principal | None:
        return Principal("by certificate") if shown.certificate is not None else None


def broken(identity: Any) -> Any:
    raise RuntimeError("no configuration")


def empty(identity: Any) -> Any:
    return object()


def point(name: str) -> EntryPoint:
    return EntryPoint(name.lower(), f"{__name__}:{name}", PLUGINS)


async def test_an_authenticator_that_is_added_is_asked_and_told_of() -> None:
    identity = await an_identity(Clock())
    plugins = load_plugins(identity, [point("Badges")])
    identity.authentication.add(plugins)
    assert (await entered(identity, {"badge": "7"})).name == "badge:7"
    assert "key, token, user, badge, certificate" in await refusal(identity, None)
    assert isinstance(plugins[0], Badges)
    assert plugins[0].identity is identity


@pytest.mark.parametrize(
    ("name", "problem"), [("broken", "no configuration"), ("empty", "authenticate"), ("gone", "no attribute 'gone'")]
)
def test_a_broken_plug_in_is_an_error_that_names_it(name: str, problem: str) -> None:
    with pytest.raises(BrokenPlugin, match=problem) as caught:
        load_plugins(None, [point(name)])
    assert caught.value.plugin == name


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution with a plug-in that cannot be used."""
    information = tmp_path / "acme_badges-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-badges\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[{PLUGINS}]\nbadge = acme_badges:missing\n")
    (tmp_path / "acme_badges.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))


async def test_a_node_with_a_broken_plug_in_does_not_begin_and_names_the_distribution(installed: None) -> None:
    with pytest.raises(BrokenPlugin, match="'badge' of the distribution 'acme-badges'"):
        await an_identity(Clock())


async def test_nothing_shown_is_refused_with_what_there_is() -> None:
    identity = await an_identity(Clock())
    for nothing in (None, dict[str, str]()):
        assert await refusal(identity, nothing) == "no credential was shown; there are: key, token, user, certificate"


async def test_an_unknown_credential_is_refused_with_what_there_is_and_not_repeated() -> None:
    identity = await an_identity(Clock())
    told = await refusal(identity, {"canary-name": "canary-value"})
    assert "there are: key, token, user, certificate" in told
    assert "canary" not in told


async def test_whoever_shows_an_unknown_credential_is_not_taken_by_their_certificate() -> None:
    authentication = Authentication([Badges(None)], Everyone())
    with pytest.raises(Unauthenticated):
        await authentication.authenticate(Introduction({"other": 1}, b"certificate"))
    assert (await authentication.authenticate(Introduction({"badge": 1}, b"certificate"))).name == "badge:1"
    assert (await authentication.authenticate(Introduction(None, b"certificate"))).name == "by certificate"


def test_what_is_shown_is_in_no_repr() -> None:
    assert "canary" not in repr(Introduction({"user": "canary", "password": "canary"}, b"canary"))
