"""What every engine promises of keys: whoever knows the version sets one, and a lease ends by itself."""

from __future__ import annotations

import asyncio

import pytest

from sealane.engine import Engine
from sealane.errors import VersionMismatch
from tests.contract.owners import Clock


class KeysSuite:
    async def test_a_key_is_set_only_by_who_knows_its_version(self, engine: Engine) -> None:
        first = await engine.put("a", b"1", expected=0)
        value = await engine.get("a")
        assert value is not None
        assert (value.data, value.version, value.expires_us) == (b"1", first, None)
        with pytest.raises(VersionMismatch) as lost:
            await engine.put("a", b"2", expected=0)
        assert (lost.value.key, lost.value.expected, lost.value.actual) == ("a", 0, first)
        second = await engine.put("a", b"2", expected=first)
        assert second > first
        with pytest.raises(VersionMismatch):
            await engine.delete("a", expected=first)
        await engine.delete("a", expected=second)
        assert await engine.get("a") is None

    async def test_versions_of_a_key_never_repeat(self, engine: Engine) -> None:
        first = await engine.put("a", b"1", expected=0)
        await engine.delete("a", expected=first)
        assert await engine.put("a", b"1", expected=0) > first

    async def test_of_many_at_once_one_wins(self, engine: Engine) -> None:
        answers = await asyncio.gather(
            *(engine.put("leader", b"%d" % number, expected=0) for number in range(10)), return_exceptions=True
        )
        assert sum(isinstance(answer, int) for answer in answers) == 1
        assert sum(isinstance(answer, VersionMismatch) for answer in answers) == 9

    async def test_a_leased_key_vanishes_unless_it_is_put_again(self, engine: Engine, clock: Clock) -> None:
        version = await engine.put("lease", b"me", expected=0, lease_seconds=10)
        clock.advance(9)
        version = await engine.put("lease", b"me", expected=version, lease_seconds=10)
        clock.advance(9)
        value = await engine.get("lease")
        assert value is not None
        assert value.expires_us == clock() + 1_000_000
        clock.advance(1)
        assert await engine.get("lease") is None
        assert await engine.scan("lease") == []
        with pytest.raises(VersionMismatch):
            await engine.put("lease", b"me", expected=version)
        assert await engine.put("lease", b"you", expected=0) > version

    async def test_a_scan_gives_the_keys_of_a_prefix_in_order(self, engine: Engine) -> None:
        for key in ("b/2", "a/1", "b/1", "b", "c/1", "b/\u00ff"):
            await engine.put(key, key.encode(), expected=0)
        found = await engine.scan("b/")
        assert [key for key, _ in found] == ["b/1", "b/2", "b/\u00ff"]
        assert [value.data for _, value in found] == [b"b/1", b"b/2", "b/\u00ff".encode()]
        assert len(await engine.scan("")) == 6
