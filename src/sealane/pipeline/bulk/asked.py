"""What a job is asked for, checked before anything is done."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from sealane.errors import InvalidArgument
from sealane.pipeline.lake.tables import Lake, Table


def check_rate(rate: float | None) -> None:
    if rate is not None and not 0 < rate < math.inf:
        raise InvalidArgument("rate", f"is {rate:g}, a number of messages a second above 0")


def check_period(since: datetime | None, until: datetime | None) -> None:
    if since is not None and until is not None and since >= until:
        raise InvalidArgument("until", f"{until.isoformat()} is not after {since.isoformat()}, where it begins")


def check_lake(lake: Lake) -> None:
    if not lake.tables():
        raise InvalidArgument("lake", f"{lake.root} has no tables yet: `sealane pipeline run --once` makes them")


def check_topic(lake: Lake, table: Table, topic: str) -> None:
    """Whether the table has anything of `domain/name`."""
    domain, _, name = topic.partition("/")
    place = lake.path(table) / f"domain={domain}" / f"topic={name}"
    if not any(place.rglob("*.parquet")):
        raise InvalidArgument("topic", f"{table.full_name} of the lake {lake.root} has nothing of {topic}")


@contextmanager
def understood(where: str | None) -> Iterator[None]:
    """A condition that Spark cannot make sense of is the caller's error."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        if where is None:
            raise
        problem = next((line.strip() for line in str(error).splitlines() if line.strip()), "Spark refuses it")
        raise InvalidArgument("where", f"{where!r} cannot be asked: {problem}") from None
