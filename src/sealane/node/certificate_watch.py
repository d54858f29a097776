"""A look at the certificates each day: who needs another one soon is told in time, and what is over is forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import NamedTuple

from sealane.errors import SealaneError
from sealane.log import get_log
from sealane.node.supervision import Supervisor
from sealane.security.ca.authorities import Authorities
from sealane.security.ca.moments import DAY_US, SECOND_US, said
from sealane.security.ca.records import CertificateRecord

log = get_log("sealane.node.certificates")

LOOK_SECONDS = 3_600.0
"""How often it is looked whether a day has passed: the clock may jump, and the machine may sleep."""
WARNED_MAX = 20
"""Certificates that one day's warnings name."""


class Ending(NamedTuple):
    """What is measured: of many certificates the ones whose end matters most."""

    of: str
    """`authority`, `server` or `client`."""
    seconds: float


class CertificateWatch:
    def __init__(
        self, authorities: Authorities, renew_days: int, clock: Callable[[], int], supervisor: Supervisor
    ) -> None:
        self._authorities = authorities
        self._renew_days = renew_days
        self._clock = clock
        self._supervisor = supervisor
        self._task: asyncio.Task[None] | None = None
        self._looked_on: int | None = None
        """The day, counted from 1970."""

    def start(self) -> None:
        self._task = self._supervisor.keep("certificates", self._run)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Once a day: warn, forget, and have what depends on the day (the revocation lists) made anew."""
        today = self._clock() // DAY_US
        if today == self._looked_on:
            return
        self._looked_on = today
        self._warn()
        try:
            await self._authorities.ledger.forget_old(self._clock())
        except SealaneError as error:
            log.warning("old certificates are forgotten tomorrow", reason=str(error))
        self._authorities.tell_changed()

    def _warn(self) -> None:
        soon_us = self._clock() + self._renew_days * DAY_US
        for info in self._authorities.all():
            if info.not_after_us <= soon_us:
                log.warning("a certificate authority ends soon", authority=info.name, ends=said(info.not_after_us))
        soon = [record for record in self._authorities.expiring(self._renew_days) if self._is_urgent(record)]
        for record in soon[:WARNED_MAX]:
            log.warning(
                "a certificate ends soon", name=record.name, serial=record.serial, ends=said(record.not_after_us)
            )
        if len(soon) > WARNED_MAX:
            log.warning("more certificates end soon: see `sealane ca expiring`", count=len(soon) - WARNED_MAX)

    def _is_urgent(self, record: CertificateRecord) -> bool:
        """One that is for a few days only is no news until most of its time is over."""
        lasts_us = record.not_after_us - record.issued_us
        return lasts_us > self._renew_days * DAY_US or 3 * (record.not_after_us - self._clock()) <= lasts_us

    def endings(self) -> Iterator[Ending]:
        """How long it is until the first authority ends, and the first server's and client's certificate that nobody
        has renewed. What there is none of is left out.
        """
        now_us = self._clock()
        authorities = [info.not_after_us for info in self._authorities.all()]
        if authorities:
            yield Ending("authority", (min(authorities) - now_us) / SECOND_US)
        first: dict[str, int] = {}
        for record in self._authorities.unrenewed():
            first[record.usage] = min(record.not_after_us, first.get(record.usage, record.not_after_us))
        for usage, not_after_us in sorted(first.items()):
            yield Ending(usage, (not_after_us - now_us) / SECOND_US)
