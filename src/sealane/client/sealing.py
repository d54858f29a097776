"""Sealing what is published, end to end: whose keys `seal_for` means, and batches that are built for them.

Names are looked up in the node's key directory, and what it says is believed for a few minutes. Who does not want to
believe the node pins fingerprints: then a key that the node puts in place of the recipient's is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from sealane.client.broker import Landed
from sealane.client.coalescing import BATCH_MESSAGES, Coalescer
from sealane.client.topic_schemas import TopicSchema, TopicSchemas
from sealane.errors import InvalidArgument, KeyPinMismatch, Unavailable
from sealane.message import Batch, Row
from sealane.node.outgoing import Outgoing
from sealane.security.envelopes import PublicKey, Recipients, same_fingerprint, seal_batch, sealed_bytes

SealFor = str | PublicKey | Iterable[str | PublicKey] | Mapping[str, str]
"""Names of recipients, public keys, or names with the fingerprints that are expected of them."""

DIRECTORY_SECONDS = 120.0
"""How long a key that was looked up is used: by then a new key is taken up, and one that was removed given up."""
_CHOICES_KEPT = 1_000
"""Different values of `seal_for` that a lane remembers the keys of; beyond it, all are looked up again."""

_Choice = tuple[str | PublicKey | tuple[str, str], ...]
"""`seal_for` in a form that can be looked up by: names, keys, or (name, fingerprint)."""


class SealedOutgoing(Outgoing):
    """Builds batches that only the recipients can read, one session key each.

    Nobody can check them any more then, so they are checked before, where their topic has a schema.
    """

    def __init__(self, plain: Outgoing, recipients: Recipients, schema: TopicSchema | None = None) -> None:
        super().__init__(plain.limits, plain.surroundings)
        self.recipients = recipients
        self._schema = schema

    def build(self, rows: list[Row]) -> Batch:
        return self._sealed(super().build(rows))

    def build_plain(self, payloads: list[bytes]) -> Batch:
        return self._sealed(super().build_plain(payloads))

    def batches(self, messages: Sequence[bytes] | pa.RecordBatch | pa.Table) -> list[Batch]:
        return [self._sealed(part) for batch in super().batches(messages) for part in self._fitting(batch)]

    def messages_max(self, wanted: int) -> int:
        """Of these recipients' envelopes at most half a batch: the rest is for the messages themselves."""
        return max(1, min(wanted, self.limits.batch_bytes_max // 2 // self.recipients.bytes_added))

    def _sealed(self, batch: Batch) -> Batch:
        if self._schema is not None:
            batch = self._schema.checked(batch)
        return seal_batch(batch, self.recipients, limits=self.limits, entropy=self.surroundings.entropy)

    def _fitting(self, batch: Batch) -> list[Batch]:
        """The batch in as many pieces as it takes for each to be within the limits once it is sealed."""
        if len(batch) == 1 or sealed_bytes(batch, self.recipients) <= self.limits.batch_bytes_max:
            return [batch]
        middle = len(batch) // 2
        return self._fitting(batch.slice(0, middle)) + self._fitting(batch.slice(middle, len(batch)))


class Sealing:
    """The keys that a lane seals for."""

    def __init__(
        self,
        plain: Outgoing,
        administer: Callable[..., Awaitable[Any]],
        hand_over: Callable[[str, Batch, Landed], None],
        timeout_seconds: float,
    ) -> None:
        self._plain = plain
        self._administer = administer
        self._hand_over = hand_over
        self._timeout_seconds = timeout_seconds
        self._coalescers: dict[tuple[str, bool, SealedOutgoing], Coalescer] = {}
        self._chosen: dict[_Choice, tuple[SealedOutgoing, float]] = {}
        self._fetching: dict[_Choice, asyncio.Task[SealedOutgoing]] = {}
        self._checking: dict[tuple[SealedOutgoing, TopicSchema], SealedOutgoing] = {}
        self.schemas = TopicSchemas(administer)
        """By which payloads are checked before they are sealed."""

    async def outgoing(self, seal_for: SealFor, topic: str | None = None) -> SealedOutgoing:
        """What builds batches for these recipients, which fit the topic's schema. The same object comes back while
        their keys and the schema are the same.

        Raises `RecipientNotFound`, and `KeyPinMismatch` if a key is not the one that was expected.
        """
        outgoing = await self._outgoing(seal_for)
        schema = None if topic is None else await self.schemas.of(topic)
        if schema is None:
            return outgoing
        checking = self._checking.get((outgoing, schema))
        if checking is None:
            if len(self._checking) >= _CHOICES_KEPT:
                self._checking.clear()
            checking = SealedOutgoing(self._plain, outgoing.recipients, schema)
            self._checking[outgoing, schema] = checking
        return checking

    async def _outgoing(self, seal_for: SealFor) -> SealedOutgoing:
        choice = _choice(seal_for)
        found = self._chosen.get(choice)
        if found is not None and asyncio.get_running_loop().time() < found[1]:
            return found[0]
        fetching = self._fetching.get(choice)
        if fetching is None:
            fetching = self._fetching[choice] = asyncio.create_task(self._choose(choice), name="look up keys")
            fetching.add_done_callback(lambda done: self._fetched(choice, done))
        # Others may wait for it too: who gives up does so alone.
        return await asyncio.shield(fetching)

    async def coalescer(self, topic: str, seal_for: SealFor, *, given_id: bool) -> Coalescer:
        """What gathers single messages for these recipients: those for others have another envelope."""
        outgoing = await self.outgoing(seal_for, topic)
        place = (topic, given_id, outgoing)
        coalescer = self._coalescers.get(place)
        if coalescer is None:
            if len(self._coalescers) >= _CHOICES_KEPT:
                self._coalescers.clear()  # Those with messages under way live on until these have landed.
            most = outgoing.messages_max(BATCH_MESSAGES)
            hand_over = partial(self._hand_over, topic)
            coalescer = self._coalescers[place] = Coalescer(outgoing, hand_over, self._timeout_seconds, most)
        return coalescer

    async def public_keys(self, name: str) -> list[PublicKey]:
        """The keys that the node's directory has under this name. Raises `RecipientNotFound`."""
        return (await self._looked_up([name]))[name]

    async def _choose(self, choice: _Choice) -> SealedOutgoing:
        names = [part if isinstance(part, str) else part[0] for part in choice if not isinstance(part, PublicKey)]
        known = await self._looked_up(names) if names else {}
        keys: list[PublicKey] = []
        for part in choice:
            if isinstance(part, PublicKey):
                keys.append(part)
            elif isinstance(part, str):
                keys += known[part]
            else:
                keys.append(_pinned(*part, known[part[0]]))
        recipients = Recipients(keys)
        before = self._chosen.get(choice)
        if before is not None and before[0].recipients == recipients:
            outgoing = before[0]
        else:
            outgoing = SealedOutgoing(self._plain, recipients)
        if len(self._chosen) >= _CHOICES_KEPT:
            self._chosen.clear()
        self._chosen[choice] = outgoing, asyncio.get_running_loop().time() + DIRECTORY_SECONDS
        return outgoing

    def _fetched(self, choice: _Choice, done: asyncio.Task[SealedOutgoing]) -> None:
        del self._fetching[choice]
        if not done.cancelled():
            done.exception()  # Whoever still waits is told; if nobody does, nobody needs to be.

    async def _looked_up(self, names: list[str]) -> dict[str, list[PublicKey]]:
        found = await self._administer("directory.get", names=names)
        try:
            return {name: [PublicKey.from_pem(key["pem"]) for key in found[name]] for name in names}
        except (AttributeError, LookupError, TypeError):
            raise Unavailable("the node answered a question for public keys with something else") from None


def _choice(seal_for: SealFor) -> _Choice:
    if isinstance(seal_for, str | PublicKey):
        return (seal_for,)
    if isinstance(seal_for, Mapping):
        pins = tuple(seal_for.items())
        if all(isinstance(name, str) and isinstance(pin, str) for name, pin in pins):
            return pins
    else:
        parts = tuple(seal_for)
        if parts and all(isinstance(part, str | PublicKey) for part in parts):
            return parts
    raise InvalidArgument("seal_for", "give names, public keys, or a mapping from names to pinned fingerprints")


def _pinned(name: str, fingerprint: str, keys: list[PublicKey]) -> PublicKey:
    """The key with this fingerprint, and no other that the directory has under the name."""
    for key in keys:
        if same_fingerprint(key.fingerprint, fingerprint):
            return key
    raise KeyPinMismatch(name, fingerprint, " and ".join(key.fingerprint for key in keys))
