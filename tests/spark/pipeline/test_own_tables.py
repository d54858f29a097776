"""Tables that other packages bring, found as pip installs them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sealane.pipeline.asking import ask_tables
from sealane.pipeline.lake.appending import append_rows
from sealane.pipeline.lake.tables import RAW_MESSAGES, Lake
from sealane.pipeline.own_tables import own_tables, refresh_own_tables
from sealane.pipeline.watching import look
from tests.spark.pipeline.told import messages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGE = """
from sealane.pipeline.lake.tables import Table

class Sizes:
    table = Table("facts", "sizes", ("domain",))

    def compute(self, tables):
        return tables("messages").groupBy("domain", "topic").sum("bytes").withColumnRenamed("sum(bytes)", "total")

class Waiting:
    table = Table("facts", "waiting", ())

    def compute(self, tables):
        return tables("deliveries")

class Broken:
    table = Table("facts", "broken", ())

    def compute(self, tables):
        raise RuntimeError("a bug")

class Taken:
    table = Table("facts", "messages", ())
"""
ENTRIES = """[sealane.pipeline.tables]
sizes = shop_tables:Sizes
waiting = shop_tables:Waiting
broken = shop_tables:Broken
taken = shop_tables:Taken
gone = shop_tables:NotThere
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package, as an installer lays it out."""
    site = tmp_path / "site"
    (site / "shop_tables-1.0.dist-info").mkdir(parents=True)
    (site / "shop_tables.py").write_text(PACKAGE)
    (site / "shop_tables-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: shop-tables\nVersion: 1.0\n"
    )
    (site / "shop_tables-1.0.dist-info" / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.delitem(sys.modules, "shop_tables", raising=False)


@pytest.mark.usefixtures("installed")
def test_they_are_computed_anew_asked_and_shown_and_a_bug_in_one_is_its_own(
    spark: SparkSession, tmp_path: Path
) -> None:
    assert sorted(own.table.name for own in own_tables()) == ["broken", "sizes", "waiting"]
    lake = Lake(tmp_path / "lake")
    for number in range(2):
        append_rows(lake, RAW_MESSAGES, messages(spark, 5), writer="test", number=number)
        refresh_own_tables(spark, lake)
    assert ask_tables(spark, lake.root, "SELECT topic, total FROM sizes") == (["topic", "total"], [["orders", 20]])
    assert [each.table for each in look(lake.root) if each.rows] == ["raw/messages", "facts/sizes"]
