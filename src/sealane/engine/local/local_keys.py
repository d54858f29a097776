"""The keys of a data directory while its engine serves: rotating, exchanging and destroying them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from sealane.engine.contract import PartitionKey
from sealane.engine.key_keeping import DomainKey, KeysStatus, Progress
from sealane.engine.local.files import Files
from sealane.engine.local.metadata import Metadata
from sealane.engine.local.partition import PartitionLogs
from sealane.engine.local.resealing import Resealing
from sealane.engine.local.runner import Runner
from sealane.errors import KeyUnavailable, StorageError
from sealane.log import get_log
from sealane.security.at_rest.keys import Keyring

_log = get_log("sealane.engine")


class LocalKeys:
    """Implements `DomainKeys`."""

    def __init__(
        self,
        files: Files,
        *,
        keyring: Keyring,
        metadata: Metadata,
        partitions: Mapping[PartitionKey, PartitionLogs],
        resealing: Resealing,
        runner: Runner,
        drop: Callable[[PartitionKey], Awaitable[None]],
        wake: Callable[[], None],
        is_backing_up: Callable[[], bool],
    ) -> None:
        self._files = files
        self._keyring = keyring
        self._metadata = metadata
        self._partitions = partitions
        self._resealing = resealing
        self._runner = runner
        self._drop = drop
        self._wake = wake
        self._is_backing_up = is_backing_up
        self._lock = asyncio.Lock()
        self._destroying: set[str] = set()

    def status(self) -> KeysStatus:
        made_us = self._metadata.keys_made_us()
        domains = tuple(
            DomainKey(domain, ids[-1], made_us.get(ids[-1]), len(ids) - 1)
            for domain, ids in sorted(self._keyring.by_domain().items())
        )
        return KeysStatus(domains, self._resealing.bytes_left, self._resealing.bytes_total)

    async def rotate(self, domain: str) -> int:
        async with self._lock:
            if not self._keyring.has(domain):
                known = ", ".join(sorted(self._keyring.by_domain())) or "none"
                raise KeyUnavailable(f"domain {domain!r} has no key, so there is none to rotate; there are: {known}")
            key_id = await self._runner.run(lambda: self._keyring.rotate(domain))
        _log.info("a domain has a new key; what older ones sealed is sealed anew", domain=domain, key=key_id)
        self._wake()
        return key_id

    async def resealed(self, progress: Progress | None = None) -> None:
        while self._resealing.due:
            if progress is not None and self._resealing.bytes_total:
                progress(self._resealing.bytes_total - self._resealing.bytes_left, self._resealing.bytes_total)
            await self._resealing.moved()

    async def rotate_master(self) -> None:
        async with self._lock:
            if self._is_backing_up():
                raise StorageError("a backup is under way, which ends with the key that it began with; wait for it")
            try:
                await self._runner.run(lambda: self._keyring.rotate_master(self._files))
            except OSError as error:
                raise StorageError(
                    f"the master key was not exchanged, or its file not yet put in its place ({error}); the next start "
                    "of the node sees to it, whichever it was"
                ) from error
        _log.info("another master key wraps all keys: backups of the old one do not open them any more")

    # --- destroying ---------------------------------------------------------------------------------------------------

    def check_open(self, domain: str) -> None:
        """Raise if the domain's keys are on their way out: what is sealed by them now would be lost."""
        if domain in self._destroying:
            raise StorageError(f"the keys of domain {domain!r} are being destroyed; try again when that is done")

    async def destroy(self, domain: str) -> None:
        async with self._lock:
            self._destroying.add(domain)
            try:
                # Dropped, a partition takes no commits, and none is on its way: nothing will be sealed after this.
                for partition in [each for each in self._partitions if each.domain == domain]:
                    await self._drop(partition)
                await self._runner.run(lambda: self._keyring.destroy(domain))
            finally:
                self._destroying.discard(domain)
        _log.info("the keys of a domain are destroyed, and with them its data", domain=domain)
        self._wake()
