"""Days that are over go, and small files become large ones: what is done with tables when nothing comes in."""

from __future__ import annotations

import math
import time
from datetime import date

from sealane.pipeline.lake.compacting import compact
from sealane.pipeline.lake.delta import mirror_tables
from sealane.pipeline.lake.retention import forget_older
from sealane.pipeline.lake.tables import TABLES, Lake
from sealane.pipeline.settings import PipelineSettings


class Tidying:
    """Tables take turns."""

    def __init__(self, lake: Lake, settings: PipelineSettings, seconds_max: float = math.inf) -> None:
        """A table that has not begun after so long is left to the next time, and comes first then."""
        self._lake = lake
        self._settings = settings
        self._seconds_max = seconds_max
        self._turn = 0

    def tidy(self, today: date) -> None:
        tables = (*TABLES, *self._lake.typed_tables())
        for table in tables:
            forget_older(self._lake, table, self._settings.kept_days or {}, today)
        began = time.monotonic()
        for _ in tables:
            compact(self._lake, tables[self._turn % len(tables)])
            self._turn += 1
            if time.monotonic() - began >= self._seconds_max:
                break
        if self._settings.delta is not None:
            mirror_tables(self._lake, self._settings.delta)
