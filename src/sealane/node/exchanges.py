"""Exchanges of a node: declared and bound under compare-and-set, kept in memory for routing."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

from sealane.engine import Engine
from sealane.errors import AlreadyExists, ExchangeNotFound, InvalidArgument, Unroutable, VersionMismatch
from sealane.message import Limits, check_name, split_topic
from sealane.routing.exchanges import Exchange, ExchangeKind


class Exchanges:
    def __init__(self, engine: Engine, limits: Limits) -> None:
        self._engine = engine
        self._limits = limits
        self._known: dict[str, tuple[Exchange, int]] = {}

    async def load(self) -> None:
        for key, value in await self._engine.scan("exchange/"):
            self._known[key.removeprefix("exchange/")] = (Exchange.from_bytes(value.data), value.version)

    async def declare(self, name: str, kind: ExchangeKind) -> Exchange:
        """Make sure that the exchange exists and is of this kind."""
        full_name = self._full_name(name)
        if kind not in get_args(ExchangeKind):
            raise InvalidArgument("kind", f"{kind!r} is not one of {', '.join(get_args(ExchangeKind))}")
        existing = self._known.get(full_name)
        if existing is None:
            try:
                return await self._save(full_name, Exchange(kind), expected=0)
            except VersionMismatch:
                # Someone else has declared it in the meantime.
                await self.load()
                return await self.declare(name, kind)
        if existing[0].kind != kind:
            raise AlreadyExists("exchange", full_name, f"its kind is {existing[0].kind}, not {kind}")
        return existing[0]

    async def bind(self, name: str, topic: str, pattern: str) -> Exchange:
        """Send what matches the pattern to this topic too. A repeated binding changes nothing."""
        domain, bare = split_topic(topic)
        check_name("domain", domain, self._limits)
        check_name("topic", bare, self._limits)
        return await self._change(name, lambda exchange: exchange.bind(pattern, f"{domain}/{bare}"))

    async def unbind(self, name: str, topic: str, pattern: str) -> Exchange:
        return await self._change(name, lambda exchange: exchange.unbind(pattern, "/".join(split_topic(topic))))

    def route(self, name: str, routing_key: str) -> tuple[str, ...]:
        """The topics that a message with this key goes to; raises `Unroutable` when there is none."""
        full_name = self._full_name(name)
        if full_name not in self._known:
            raise ExchangeNotFound(full_name, "declare it first")
        topics = self._known[full_name][0].route(routing_key)
        if not topics:
            raise Unroutable(full_name, routing_key)
        return topics

    def list(self) -> dict[str, Exchange]:
        return {name: exchange for name, (exchange, _) in sorted(self._known.items())}

    async def _change(self, name: str, change: Callable[[Exchange], Exchange]) -> Exchange:
        full_name = self._full_name(name)
        while True:
            if full_name not in self._known:
                raise ExchangeNotFound(full_name, "declare it first")
            exchange, version = self._known[full_name]
            changed = change(exchange)
            if changed == exchange:
                return exchange
            try:
                return await self._save(full_name, changed, expected=version)
            except VersionMismatch:
                await self.load()

    async def _save(self, full_name: str, exchange: Exchange, *, expected: int) -> Exchange:
        version = await self._engine.put(f"exchange/{full_name}", exchange.to_bytes(), expected=expected)
        self._known[full_name] = (exchange, version)
        return exchange

    def _full_name(self, name: str) -> str:
        domain, exchange = split_topic(name)
        check_name("domain", domain, self._limits)
        check_name("exchange", exchange, self._limits)
        return f"{domain}/{exchange}"
