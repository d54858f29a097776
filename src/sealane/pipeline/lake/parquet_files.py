"""How the lake writes Parquet."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

COMPRESSION = "zstd"
UNREPEATED = ("id", "offset")
"""Columns in which hardly any value comes again. A dictionary of them is as large as they are: it takes as long to make
as all the rest, and hides from the compression that they count up."""


def parquet_writer(where: Path | IO[bytes], schema: pa.Schema) -> pq.ParquetWriter:
    return pq.ParquetWriter(where, schema, compression=COMPRESSION, use_dictionary=_repeated(schema))


@lru_cache(maxsize=128)
def _repeated(schema: pa.Schema) -> list[str]:
    """The other columns, as Parquet calls them: it goes by what is innermost."""
    sink = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), sink)
    columns = pq.read_metadata(pa.BufferReader(sink.getvalue())).schema
    return [path for index in range(len(columns)) if (path := columns.column(index).path) not in UNREPEATED]
