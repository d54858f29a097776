"""What the pipeline can be told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sealane.errors import InvalidArgument

Bodies = Literal["left-out", "sealed", "plain"]


@dataclass(frozen=True, slots=True)
class PipelineSettings:
    """`sealane pipeline` fills it from its flags."""

    lake: Path
    """Where the tables are: on a cluster, a path that the driver and all executors share."""
    topics: str = "*/*"
    """What is taken in: names and patterns, with commas between them."""
    bodies: Bodies = "left-out"
    """Whether payloads are kept, and sealed by the lake's keys. What is sealed end to end stays so in any case."""
    url: str | None = None
    profile: str | None = None
    data: Path | None = None
    """The data directory of the node that is meant, where nothing else says which."""
    keys: Path | None = None
    """The file with the lake's keys, if it is not `lake.keys` in the data directory; never within the lake."""
    master: str = "local[*]"
    """Where Spark runs: `spark://…`, `yarn`, `k8s://…` for the same job on a cluster."""
    trigger_seconds: float = 5.0
    """How often what is new is taken in: facts are seen after this and the time that a step takes."""
    batch_messages_max: int = 1_000_000
    """Taken in at once: a long backlog does not become one long step, and a step's memory is bounded."""

    delta: Path | None = None
    """Where the tables are mirrored as Delta tables after each cycle, if anywhere; never within the lake."""
    kept_days: Mapping[str, int] | None = None
    """How many days are kept, by domain, and by `*` for those that are not named. Of what is not said, everything."""

    def __post_init__(self) -> None:
        if self.trigger_seconds <= 0:
            raise InvalidArgument("pipeline.trigger_seconds", f"is {self.trigger_seconds:g}, more than 0")
        if self.batch_messages_max < 1:
            raise InvalidArgument("pipeline.batch_messages_max", f"is {self.batch_messages_max:,}, at least 1")

    @property
    def source(self) -> dict[str, str]:
        """Options of the source."""
        found = {"topic": self.topics, "maxMessagesPerTrigger": str(self.batch_messages_max), "failOnDataLoss": "false"}
        access = (("url", self.url), ("profile", self.profile), ("data", str(self.data) if self.data else None))
        return found | {name: text for name, text in access if text}
