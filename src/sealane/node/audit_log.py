"""The audit log where it is kept: a sealed topic of the system's, with the ends of its chain in sealed records.

Only the node writes to it. The head says how far the log has come, so that a tail that was cut off is missed; it is
written after the entries, and so may lag behind the log, never be ahead of it. The anchor says where retention has let
it begin; it is written before anything is let go.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

from sealane.errors import CorruptData, SealaneError
from sealane.log import get_log
from sealane.message import Limits, from_payloads
from sealane.node.audit_folding import Happening
from sealane.node.owner import PartitionOwner
from sealane.node.publishing import start_publish
from sealane.node.registry import TopicRegistry
from sealane.node.surroundings import Surroundings
from sealane.node.topic_config import TopicConfig
from sealane.node.topics import Topic
from sealane.security.audit.chain import AUDIT_CUT, Anchor, Chain, Finding, Head
from sealane.security.audit.entries import AUDIT_TOPIC, NO_ENTRY, Entry, from_line
from sealane.security.records import SYSTEM_DOMAIN, Vault

log = get_log("sealane.node.audit")

AUDIT_LOG = f"{SYSTEM_DOMAIN}/{AUDIT_TOPIC}"
READ_BYTES = 1 << 20

_HEAD, _ANCHOR = "head", "anchor"
_BEGINNING = Anchor(0, NO_ENTRY)


class AuditLog:
    """Opened once, at the node's start; appended to by one writer."""

    def __init__(self, registry: TopicRegistry, vault: Vault, surroundings: Surroundings) -> None:
        self._registry = registry
        self._surroundings = surroundings
        self._heads = vault.records("audit-head", Head)
        self._anchors = vault.records("audit-anchor", Anchor)
        self._topic: Topic | None = None
        self._last = Head(-1, NO_ENTRY)
        """The last entry that is durable."""

    async def open(self, retention_seconds: float) -> Happening | None:
        """Make it if there is none, and find its end. Returns what is to be written down if that is not where it was
        once.
        """
        config = TopicConfig(retention_seconds=retention_seconds)
        topic = await self._registry.ensure(SYSTEM_DOMAIN, AUDIT_TOPIC, config)
        if topic.config.retention_seconds != retention_seconds:
            await self._registry.configure(AUDIT_LOG, {"retention_seconds": retention_seconds})
        self._topic = topic
        await self._heads.load()
        await self._anchors.load()
        head = self._heads.get(_HEAD)
        end = self._owner.core.end
        self._last = Head(end - 1, await self._hash_at(end - 1, head))
        if head is None or head.number < end:
            return None
        log.error("the end of the audit log is gone", first=end, last=head.number)
        return Happening(AUDIT_CUT, "refused", details=(("first", end), ("last", head.number), ("hash", head.hash)))

    @property
    def is_open(self) -> bool:
        return self._topic is not None

    @property
    def has_failed(self) -> bool:
        """Nothing more can be written by this process."""
        return self._owner.engine.failure is not None

    @property
    def _owner(self) -> PartitionOwner:
        assert self._topic is not None, "the audit log is not open"
        return self._topic.owners[0]

    async def _hash_at(self, number: int, head: Head | None) -> str:
        if number < 0:
            return NO_ENTRY
        async for entry in self.read(number):
            if isinstance(entry, Entry):
                return entry.hash
        # The last batch is damaged; `verify` will name its entries.
        return head.hash if head is not None and head.number == number else NO_ENTRY

    # --- writing ------------------------------------------------------------------------------------------------------

    def chain(self, happenings: Sequence[tuple[int, Happening]]) -> list[Entry]:
        """The entries that these will be, each with the time at which it happened."""
        entries = []
        number, previous = self._last.number, self._last.hash
        for time_us, happening in happenings:
            number += 1
            said = happening._asdict() | {"details": dict(happening.details)}
            entry = Entry(number=number, time_us=time_us, previous=previous, **said).sealed()
            entries.append(entry)
            previous = entry.hash
        return entries

    async def append(self, entries: Sequence[Entry]) -> None:
        """Returns when they are durable. If it raises they may be or not: it is to be called again with the same."""
        owner = self._owner
        owner.check()
        end = entries[-1].number + 1
        if owner.core.end <= entries[0].number:
            batch = from_payloads([entry.to_line() for entry in entries], self._surroundings.stamp(), limits=Limits())
            assert self._topic is not None
            await start_publish([(self._topic, batch)]).durable()
        else:
            await owner.durable(end)  # An earlier call has written them after all: a commit is whole, or nothing.
        self._last = Head(end - 1, entries[-1].hash)

    async def save_head(self) -> None:
        """Keep in mind how far the log has come. That it fails is no harm: the next time makes up for it."""
        try:
            await self._heads.put(_HEAD, self._last)
        except (SealaneError, OSError) as error:
            log.warning("the head of the audit log was not saved", reason=str(error))

    async def let_go_before(self, number: int) -> None:
        """Retention is about to let go of the entries before this one."""
        async for entry in self.read(number):
            if isinstance(entry, Entry):
                await self._anchors.put(_ANCHOR, Anchor(entry.number, entry.previous))
            return

    # --- reading ------------------------------------------------------------------------------------------------------

    @property
    def start(self) -> int:
        return self._owner.core.start

    @property
    def end(self) -> int:
        return self._owner.core.visible

    async def number_at(self, time_us: int) -> int:
        """A number at or before that of the first entry since then."""
        return await self._owner.engine.offset_at(self._owner.key, time_us)

    async def read(self, start: int) -> AsyncIterator[Entry | int]:
        """The entries from a number on, up to the end of this moment; of one that cannot be read its number."""
        owner, end = self._owner, self.end
        at = max(start, owner.core.start)
        while at < end:
            stored = await owner.engine.read(owner.key, at, bytes_max=READ_BYTES)
            if not stored:
                return
            for each in stored:
                for number, payload in enumerate(each.batch.payloads(), each.base):
                    if at <= number < end:
                        try:
                            yield from_line(payload)
                        except CorruptData:
                            yield number
            at = max(at, stored[-1].stop)

    async def verify(self, progress: Callable[[int, int], None]) -> tuple[Chain, list[Finding]]:
        """Look through the whole log. Whoever changed an entry, or took one out, is found out here."""
        # Taken before anything is read: meanwhile the log grows, and the head with it.
        head = self._heads.get(_HEAD)
        chain, total = Chain(), self.end - self.start
        async for entry in self.read(0):
            if isinstance(entry, Entry):
                chain.add(entry)
            else:
                chain.add_unreadable(entry, f"entry {entry} was changed: it cannot be read")
            if len(chain.links) % 1_000 == 0:
                progress(len(chain.links), total)
        return chain, chain.findings(self._anchors.get(_ANCHOR) or _BEGINNING, head)
