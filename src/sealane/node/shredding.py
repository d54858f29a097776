"""Crypto-shredding: a domain's topics are closed and its keys destroyed, so that no copy of its files can be opened."""

from __future__ import annotations

from sealane.engine import Engine
from sealane.engine.key_keeping import KeepsKeys
from sealane.errors import InvalidArgument, KeyUnavailable, StorageError, VersionMismatch
from sealane.log import get_log
from sealane.node.registry import TopicRegistry
from sealane.security.records import SYSTEM_DOMAIN

log = get_log("sealane.node")

_INTENT = "destroying/"
"""In front of a domain: what was begun is finished, if need be by the next start."""


class Shredding:
    """Destroys domains, one node's. What was asked for happens as a whole, over a crash too."""

    def __init__(self, registry: TopicRegistry, engine: Engine) -> None:
        self._registry = registry
        self._engine = engine

    async def resume(self) -> None:
        """Finish what a crash has cut short."""
        for key, value in await self._engine.scan(_INTENT):
            domain = key.removeprefix(_INTENT)
            log.warning("the destruction of a domain was cut short, and is finished now", domain=domain)
            await self._finish(domain, value.version)

    async def destroy(self, domain: str) -> int:
        """Make all that is stored of a domain unreadable, for good. Returns how many topics it had.

        Consumers are told that their topics are gone. Whoever uses the domain afterwards begins anew, with a new key.
        `KeyUnavailable` if there is neither a key nor a topic of it: the name may be a mistake.
        """
        if not isinstance(self._engine, KeepsKeys):
            raise StorageError(f"the keys of {domain!r} cannot be destroyed: this node keeps its messages in memory")
        if domain == SYSTEM_DOMAIN:
            raise InvalidArgument("domain", f"{domain!r} has the node's accounts, grants and authorities; it must stay")
        has_key = any(each.domain == domain for each in self._engine.keys.status().domains)
        if not has_key and not any(topic.domain == domain for topic in self._registry.running.values()):
            raise KeyUnavailable(f"domain {domain!r} has no key and no topics, so there is nothing to destroy")
        try:
            version = await self._engine.put(_INTENT + domain, b"", expected=0)
        except VersionMismatch as earlier:
            version = earlier.actual
        return await self._finish(domain, version)

    async def _finish(self, domain: str, version: int) -> int:
        assert isinstance(self._engine, KeepsKeys)
        async with self._registry.without(domain) as topics:
            await self._engine.keys.destroy(domain)
            await self._engine.delete(_INTENT + domain, expected=version)
        log.warning("the keys of a domain were destroyed: what it had stored is gone", domain=domain, topics=topics)
        return topics
