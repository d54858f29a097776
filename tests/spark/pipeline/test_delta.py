"""The lake as Delta tables, as the pipeline keeps them and as `sealane pipeline export` does: the same rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from typer.testing import CliRunner

from sealane.cli.main import app
from sealane.pipeline.bulk.forgetting import forget
from sealane.pipeline.cycle import run_cycle
from sealane.pipeline.lake.compacting import compact
from sealane.pipeline.lake.tables import RAW_MESSAGES, Lake, Table, typed_table
from sealane.pipeline.secrets.keeping import keys_of, keys_path
from sealane.pipeline.settings import PipelineSettings
from sealane.testing.node_process import NodeProcess
from tests.spark.consuming import consume

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sealane.client.sync import SyncLane

NUMBER = "+49 170 1234567"
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}, "phone": {"type": "string"}}}


@pytest.fixture
def settings(node: NodeProcess, topic: str, tmp_path: Path) -> PipelineSettings:
    return PipelineSettings(
        lake=tmp_path / "lake",
        topics=topic,
        url=node.url,
        bodies="plain",
        keys=tmp_path / "lake.keys",
        delta=tmp_path / "delta",
    )


def in_lake(lake: Lake, table: Table) -> list[str]:
    """Every row, without the columns that its directories say."""
    return sorted(repr(row) for path in lake.files(table) for row in _sorted_columns(pq.ParquetFile(path).read()))


def in_delta(directory: Path, table: Table) -> list[str]:
    found = DeltaTable(directory / table.layer / table.name).to_pyarrow_table()
    return sorted(repr(row) for row in _sorted_columns(found.drop_columns(list(table.partitioned_by))))


def _sorted_columns(rows: Any) -> list[dict[str, Any]]:
    """Columns that a file does not have are null."""
    return [{name: row[name] for name in sorted(row) if row[name] is not None} for row in rows.to_pylist()]


def test_cycles_compaction_and_forgetting_arrive_once(
    spark: SparkSession, lane: SyncLane, topic: str, settings: PipelineSettings
) -> None:
    assert settings.delta is not None
    lake, directory = Lake(settings.lake), settings.delta
    lane.administer("schema.register", topic=topic, schema=json.dumps(SCHEMA))
    for first in (0, 10):
        lane.publish_many(
            topic,
            [json.dumps({"n": n, "phone": NUMBER if n == 3 else "none"}).encode() for n in range(first, first + 10)],
        )
        consume(lane, topic, 10)
        run_cycle(spark, settings)
        tables = [table for table in lake.tables() if lake.exists(table)]
        assert {"raw/messages", "raw/history", "clean/messages", "facts/deliveries", f"typed/default/{topic}/v1"} <= {
            table.full_name for table in tables
        }
        for table in tables:
            assert in_delta(directory, table) == in_lake(lake, table)
    assert len(in_delta(directory, RAW_MESSAGES)) == 20

    for table in tables:
        compact(lake, table, small_files=2)
    keys = keys_of(lake, keys_path(settings))
    assert forget(lake, keys, number=NUMBER).changed > 0
    hashed = keys.hash_number("default", NUMBER).encode()
    assert any(hashed in path.read_bytes() or NUMBER.encode() in path.read_bytes() for path in _data_files(directory))
    told = _export(lake, directory)
    assert {each["table"] for each in told if each["files_removed"]} >= {"raw/messages", f"typed/default/{topic}/v1"}
    for table in tables:
        assert in_delta(directory, table) == in_lake(lake, table)
    found = {
        row["n"]
        for row in DeltaTable(directory / "typed" / typed_table(f"default/{topic}", 1).name)
        .to_pyarrow_table()
        .to_pylist()
    }
    assert found == {None, *range(20)} - {3}
    versions = {each["table"]: each["version"] for each in told}
    again = _export(lake, directory)
    assert {each["table"]: each["version"] for each in again} == versions
    assert not any(each["files_added"] or each["files_removed"] for each in again)

    # Made again, the table is without the message of which nothing is left.
    made = _run(
        "backfill", "--typed", "--lake", str(lake.root), "--keys", str(settings.keys), "--url", str(settings.url)
    )
    assert made == {"table": "typed", "rows": 19}
    assert len(in_lake(lake, typed_table(f"default/{topic}", 1))) == 19


def _data_files(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*.parquet") if "_delta_log" not in path.parts]


def _export(lake: Lake, directory: Path) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = _run("export", "--delta", str(directory), "--lake", str(lake.root))
    return told


def _run(*asked: str) -> Any:
    done = CliRunner().invoke(app, ["pipeline", *asked, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)
