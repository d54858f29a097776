"""Rows that become Parquet files where they are made, laid out as the tables are: `…/date=2026-01-31/….parquet`."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sealane.pipeline.lake.parquet_files import parquet_writer

ROWS_AT_ONCE = 100_000
BYTES_AT_ONCE = 32 << 20
"""What is gathered before it is written, as a row group: readers pay for each."""
FILES_OPEN_AT_ONCE = 32
"""Rows that come together are mostly of one day, but senders say of which."""

_DAY_US = 86_400_000_000
_FIRST_DAY = date(1970, 1, 1)
_NO_DAY = np.iinfo(np.int64).min
_NO_DAY_NAME = "__HIVE_DEFAULT_PARTITION__"
"""What Spark calls it, too."""


@dataclass
class DayFiles:
    """Files of one table in one of its directories, by the days of their rows."""

    root: Path
    directory: str
    task: str
    schema: pa.Schema
    dated_by: str
    """The column that tells the day."""
    written: dict[str, int] = field(default_factory=dict)
    """The rows of each file, by its path."""
    _waiting: list[pa.RecordBatch] = field(default_factory=list)
    _waiting_rows: int = 0
    _waiting_bytes: int = 0
    _open: dict[int, tuple[str, pq.ParquetWriter]] = field(default_factory=dict)

    def add(self, rows: pa.RecordBatch) -> None:
        self._waiting.append(rows)
        self._waiting_rows += len(rows)
        self._waiting_bytes += rows.nbytes
        if self._waiting_rows >= ROWS_AT_ONCE or self._waiting_bytes >= BYTES_AT_ONCE:
            self._write()

    def close(self) -> None:
        self._write()
        self._close_all()

    def _write(self) -> None:
        if not self._waiting_rows:
            return
        table = pa.Table.from_batches(self._waiting)
        self._waiting, self._waiting_rows, self._waiting_bytes = [], 0, 0
        moments = table[self.dated_by].cast(pa.int64())
        days = np.where(moments.is_valid(), moments.fill_null(0).to_numpy() // _DAY_US, _NO_DAY)
        table = table.select(self.schema.names)
        for day in np.unique(days).tolist():
            own = table if (days == day).all() else table.filter(pa.array(days == day))
            path, writer = self._writer(day)
            writer.write_table(own, row_group_size=len(own))
            self.written[path] += len(own)

    def _writer(self, day: int) -> tuple[str, pq.ParquetWriter]:
        if day not in self._open:
            if len(self._open) >= FILES_OPEN_AT_ONCE:
                self._close_all()
            path = f"{self.directory}/date={_day_name(day)}/{self.task}-{len(self.written)}.parquet"
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            self._open[day] = path, parquet_writer(self.root / path, self.schema)
            self.written[path] = 0
        return self._open[day]

    def _close_all(self) -> None:
        for _, writer in self._open.values():
            writer.close()
        self._open.clear()


def _day_name(day: int) -> str:
    return _NO_DAY_NAME if day == _NO_DAY else str(_FIRST_DAY + timedelta(days=day))
