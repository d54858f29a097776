"""Auditing: who came in, was refused, and changed what, written down in the order in which it happened.

Entries are written a batch at a time, so that many cost little more than one. Nothing of this is on the way of a
message that is published or consumed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from sealane.errors import SealaneError, StorageFull, Unavailable
from sealane.log import get_log
from sealane.node.audit_folding import READ_SECONDS, REPEATED_SECONDS, Folds, Happening, Origin
from sealane.node.audit_log import AuditLog
from sealane.node.note_rates import NoteRates
from sealane.node.supervision import Backoff, Supervisor
from sealane.prompt import Prompt
from sealane.security.audit.entries import Outcome
from sealane.security.principals import Principal

log = get_log("sealane.node.audit")

BATCH_SECONDS = 0.005
"""The pause after a batch: what happens in it goes with the next one, however much it is."""
BATCH_ENTRIES_MAX = 200
"""Entries of one commit; with the longest texts it is still smaller than the largest batch of messages."""
WAITING_MAX = 10_000
"""Entries that wait in memory while storage takes none. Beyond it they are counted, and refused to whoever waits."""
CLOSE_SECONDS_MAX = 5.0
"""At the node's end, what waits may take so long to be written."""

AUTHENTICATION = "authentication"
LOST = "audit.lost"
"""The event that tells how many entries could not be kept."""


@dataclass(slots=True)
class _Waiting:
    time_us: int
    happening: Happening
    durable: Prompt[None]


class Audit:
    """On `Node.audit`. Off until it is opened: then everything works without it."""

    def __init__(self, written: AuditLog, clock: Callable[[], int], supervisor: Supervisor) -> None:
        self.log = written
        self.notes = NoteRates()
        """How often clients may add to it; see `sealane.node.administration.notes`."""
        self._clock = clock
        self._supervisor = supervisor
        self._waiting: list[_Waiting] = []
        self._lost = 0
        self._folds = Folds()
        self._sweeper: asyncio.TimerHandle | None = None
        self._wake = asyncio.Event()
        self._written = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_on(self) -> bool:
        return self._task is not None

    async def open(self, retention_seconds: float) -> None:
        """From now on everything is written down."""
        missing = await self.log.open(retention_seconds)
        self._task = self._supervisor.keep("audit", self._run)
        if missing is not None:
            _ = self._add(missing)

    async def close(self) -> None:
        """Write what waits, and end."""
        task, self._task = self._task, None
        if task is None:
            return
        if self._sweeper is not None:
            self._sweeper.cancel()
        for happening in self._folds.over():
            _ = self._add(happening)
        try:
            async with asyncio.timeout(CLOSE_SECONDS_MAX):
                while self._waiting and not self.log.has_failed:
                    self._written.clear()
                    self._wake.set()
                    await self._written.wait()
        except TimeoutError:
            pass
        if self._waiting:
            log.error("entries of the audit log were not written", count=len(self._waiting))
        task.cancel()
        await asyncio.wait([task])

    # --- noting -------------------------------------------------------------------------------------------------------

    def note(
        self,
        event: str,
        *,
        principal: Principal | None,
        outcome: Outcome = "ok",
        resource: str = "",
        address: str = "",
        door: str = "",
        **details: str | int,
    ) -> Prompt[None]:
        """Write it down; done when that is durable. See `record`."""
        return self.record(Happening.of(event, principal, outcome, resource, Origin(address, door), details))

    def record(self, happening: Happening) -> Prompt[None]:
        """The same. Of logins and refusals, identical ones within a second are one entry more, with a count."""
        folded = happening.outcome == "refused" or happening.event == AUTHENTICATION
        return self._note(happening, REPEATED_SECONDS if folded else None)

    def looked(self, happening: Happening) -> None:
        """Someone read what is for administrators: the first time in a while is written down, and how often then."""
        _ = self._note(happening, READ_SECONDS)

    def _note(self, happening: Happening, fold_seconds: float | None) -> Prompt[None]:
        if self.is_on and fold_seconds is not None:
            loop = asyncio.get_running_loop()
            if self._sweeper is None:
                self._sweeper = loop.call_later(REPEATED_SECONDS, self._sweep)
            if not self._folds.is_new(happening, loop.time(), fold_seconds):
                return _done()
        return self._add(happening) if self.is_on else _done()

    def _sweep(self) -> None:
        """What was counted and whose while is over becomes an entry."""
        loop = asyncio.get_running_loop()
        for happening in self._folds.over(loop.time()):
            _ = self._add(happening)
        self._sweeper = loop.call_later(REPEATED_SECONDS, self._sweep) if self._folds else None

    def _add(self, happening: Happening) -> Prompt[None]:
        durable: Prompt[None] = Prompt(loop=asyncio.get_running_loop())
        if len(self._waiting) >= WAITING_MAX:
            self._lost += 1
            error = Unavailable("it was done, but the audit log takes no entries: see the node's log for the reason")
            _fail(durable, error)
            return durable
        self._waiting.append(_Waiting(self._clock(), happening, durable))
        self._wake.set()
        return durable

    # --- writing ------------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                await self._write(self._waiting[:BATCH_ENTRIES_MAX])
                await asyncio.sleep(BATCH_SECONDS)

    async def _write(self, batch: list[_Waiting]) -> None:
        """Until it is durable: an entry may be late, it does not get lost."""
        pauses = Backoff()
        while True:
            entries = self.log.chain([(each.time_us, each.happening) for each in batch])
            try:
                await self.log.append(entries)
                break
            except (SealaneError, OSError) as error:
                self._troubled(batch, error)
            await asyncio.sleep(pauses.next_seconds(asyncio.get_running_loop().time()))
        del self._waiting[: len(batch)]
        for each in batch:
            if not each.durable.done():
                each.durable.set_result(None)
        self._written.set()
        await self.log.save_head()
        if self._lost:
            lost, self._lost = self._lost, 0
            _ = self._add(Happening(LOST, "refused", details=(("count", lost),)))

    def _troubled(self, batch: list[_Waiting], error: Exception) -> None:
        """Tell those who wait. What they did is done: a full disk must not keep anyone from making room."""
        log.error("the audit log takes no entries; they wait", count=len(self._waiting), reason=str(error))
        for each in self._waiting:
            if each.durable.done():
                continue
            if isinstance(error, StorageFull):
                each.durable.set_result(None)
            else:
                _fail(each.durable, error)


def _done() -> Prompt[None]:
    done: Prompt[None] = Prompt(loop=asyncio.get_running_loop())
    done.set_result(None)
    return done


def _fail(durable: Prompt[None], error: Exception) -> None:
    durable.set_exception(error)
    durable.exception()  # Those who do not wait for it are not to be told that nobody has looked.
