"""Batches: messages arrive as an Arrow table, and leave for a Parquet file without a Python object for each.

`publish_many` takes Arrow too: columns that are missing are filled.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import sealane

MESSAGES = 20_000


async def main() -> None:
    table = pa.table(
        {
            "payload": [f"reading {number}" for number in range(MESSAGES)],
            "key": [f"sensor {number % 10}" for number in range(MESSAGES)],
        }
    )
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "readings.parquet"
        async with sealane.embedded() as lane:
            await lane.publish_many("readings", table)

            writer, written = None, 0
            async for batch in lane.consume_batches("readings", subscription="lake", messages_max=5_000):
                records = batch.to_arrow().select(["key", "payload", "created"])
                writer = writer or pq.ParquetWriter(path, records.schema)
                writer.write_batch(records)
                await batch.ack(confirm=True)
                written += len(batch)
                if written == MESSAGES:
                    break
            assert writer is not None
            writer.close()

        stored = pq.read_table(path)
        sensors = pc.count_distinct(stored.column("key")).as_py()
        print(f"{stored.num_rows:,} messages of {sensors} sensors in the file, columns {stored.column_names}")


asyncio.run(main())
