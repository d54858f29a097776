"""What a Spark process of a measurement is asked to do, as it is handed over on its command line."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

import sealane
from bench.processes import module

MODULE = "bench.spark.client"


@dataclass(frozen=True, slots=True)
class Topic:
    """Where a topic is, and how a job comes in."""

    url: str
    name: str
    profile: str = ""
    """The file by which it comes in; empty where nobody is asked."""

    @property
    def options(self) -> dict[str, str]:
        """The options of `format("sealane")`."""
        profile = {"profile": self.profile} if self.profile else {}
        return {"url": self.url, "topic": self.name, **profile}

    def lane(self) -> sealane.SyncLane:
        """To its node, not yet open."""
        if self.profile:
            return sealane.connect_sync(self.url, profile=self.profile)
        return sealane.connect_sync(self.url)


@dataclass(frozen=True, slots=True)
class SparkOrder:
    topics: dict[str, Topic]
    """By the name under which the results speak of it."""
    directory: str
    """An empty one: for files, checkpoints, and whatever Spark keeps on disk."""
    count: int
    """Messages that a topic has, or is given each time."""
    rounds: int = 1
    warm_rounds: int = 2
    """Rounds, or micro-batches, before the first that counts, in which the JVM compiles what it runs."""
    size: int = 100
    """Bytes of a payload."""
    less_count: int = 0
    """Rows for what is too slow to be given all of them."""
    settings: dict[str, str] | None = None
    """Settings of the session beside those that every one has."""

    def command(self, work: str) -> list[str]:
        return module(MODULE, work, json.dumps(asdict(self)))

    @classmethod
    def read(cls, text: str) -> SparkOrder:
        fields = json.loads(text)
        return cls(**{**fields, "topics": {name: Topic(**each) for name, each in fields["topics"].items()}})
