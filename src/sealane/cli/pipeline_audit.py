"""Jobs over the lake and the audit log: by which lane they are written down there, and how one does without."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from sealane.cli.connecting import CONNECT_SECONDS
from sealane.errors import SealaneError

if TYPE_CHECKING:
    from sealane.client.sync import SyncLane
    from sealane.pipeline.settings import PipelineSettings

NoAudit = Annotated[
    bool, typer.Option("--no-audit", help="Leave no word of it in the node's audit log, such as where no node runs.")
]


@contextmanager
def node_lane(settings: PipelineSettings) -> Iterator[SyncLane]:
    """A lane to the node that is meant, for as long as the block runs."""
    import sealane

    with sealane.connect_sync(
        settings.url, profile=settings.profile, data=settings.data, connect_timeout=CONNECT_SECONDS
    ) as lane:
        yield lane


@contextmanager
def audit_lane(settings: PipelineSettings, *, no_audit: bool) -> Iterator[SyncLane | None]:
    """A lane for a job that needs a node only to be written down there; None if it is not to be."""
    if no_audit:
        yield None
        return
    with ExitStack() as stack:
        try:
            lane = stack.enter_context(node_lane(settings))
        except SealaneError as error:
            error.add_note(
                "nothing was done: a job over the lake has to be in the audit log of its node; start that, or name it "
                "by --url, or say --no-audit to do it without"
            )
            raise
        yield lane
