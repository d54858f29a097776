"""How the lake writes Parquet: what is in a file is what was written, and ids are not put into a dictionary."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sealane.pipeline.lake.parquet_files import parquet_writer

ROWS = pa.table(
    {
        "id": pa.array([bytes([number]) * 16 for number in range(100)]),
        "offset": pa.array(range(100)),
        "topic": ["orders"] * 100,
        "headers": pa.array([[("trace", "one")]] * 100, pa.map_(pa.string(), pa.string())),
        "place": [{"id": 1, "names": ["a"]}] * 100,
    }
)


def test_columns_that_repeat_have_a_dictionary_and_ids_and_offsets_have_none(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    with parquet_writer(path, ROWS.schema) as writer:
        writer.write_table(ROWS)
    assert pq.read_table(path).equals(ROWS)
    group = pq.read_metadata(path).row_group(0)
    columns = [group.column(index) for index in range(group.num_columns)]
    with_dictionary = {column.path_in_schema for column in columns if column.has_dictionary_page}
    assert with_dictionary == {column.path_in_schema for column in columns} - {"id", "offset"}
    assert "place.id" in with_dictionary, "that is another one"
    assert all(column.statistics.has_min_max for column in columns), "tasks find messages by them"
