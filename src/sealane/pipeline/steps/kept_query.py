"""A query that is kept from one cycle to the next, unless it would be another one by now."""

from __future__ import annotations

from collections.abc import Callable

from sealane.pipeline.settings import PipelineSettings
from sealane.pipeline.steps.query import StandingQuery


class KeptQuery:
    """One at a time."""

    def __init__(self) -> None:
        self._query: StandingQuery | None = None
        self._made_of: object = None

    def query(self, made_of: object, start: Callable[[], StandingQuery]) -> StandingQuery:
        """The one that runs, or one that is started in its place if that was made of something else: a schema may have
        been registered since, or a certificate renewed.
        """
        if self._query is None or made_of != self._made_of:
            self.close()
            self._query, self._made_of = start(), made_of
        return self._query

    def close(self) -> None:
        query, self._query = self._query, None
        if query is not None:
            query.close()


def access_of(settings: PipelineSettings) -> object:
    """How the node is reached, by what the files say now."""
    from sealane.spark.options.access import ACCESS_OPTIONS, find_access

    return find_access({name: text for name, text in settings.source.items() if name in ACCESS_OPTIONS})
