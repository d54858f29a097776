"""Staging: batches that the node keeps, durable and unseen, until they are published together, once."""

from __future__ import annotations

from collections.abc import Sequence

from sealane.client.asking import Asking
from sealane.message import Batch


class Staging(Asking):
    """A lane's commands; see `Lane`. `sealane.node.staging` tells what they do."""

    async def stage(self, topic: str, batch: Batch) -> None:
        """Have the node keep a batch for this topic; durable on return, and seen by nobody.

        Its metadata says which part it belongs to (`producer`, 16 bytes that its writer chose at random) and which of
        that part's batches it is (`sequence`, from 0, one after another): so it can be sent again without harm.
        """
        self._check_open()
        await self._asked(self._broker.stage(topic, batch), "stage")

    async def publish_staged(
        self,
        transaction: str,
        parts: Sequence[tuple[bytes, int]],
        *,
        epoch: int | None = None,
        timeout: float | None = None,
    ) -> bool:
        """Publish parts, each with the number of its batches, together and once under `transaction`.

        False: that had been done before; these parts are dropped then. With `epoch`, `transaction` names a writer
        whose epochs count up, and an epoch up to the last one that was published has been done before: that is
        remembered for as long as the writer goes on, however long it was away.
        """
        self._check_open()
        publishing = self._broker.publish_staged(transaction, parts, epoch)
        return await self._within(publishing, timeout, "publish_staged")

    async def drop_staged(self, parts: Sequence[bytes]) -> None:
        """Forget parts that will not be published; those that are not there are no error."""
        self._check_open()
        await self._asked(self._broker.drop_staged(parts), "drop_staged")
