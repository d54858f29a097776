"""How long the lake keeps what it has."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sealane.errors import InvalidArgument
from sealane.pipeline.lake.retention import forget_older, parse_kept_days
from sealane.pipeline.lake.tables import ANOMALIES, RAW_MESSAGES, Lake, Table

TODAY = date(2026, 3, 10)


def lay(lake: Lake, table: Table, *places: str) -> None:
    for place in places:
        path = lake.path(table) / place / "a.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(pa.table({"offset": [1]}), path)


def left(lake: Lake, table: Table) -> list[str]:
    return [str(file.parent.relative_to(lake.path(table))) for file in lake.files(table)]


def test_each_domain_keeps_its_own_days(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lay(
        lake,
        RAW_MESSAGES,
        "domain=shop/topic=orders/date=2026-03-08",
        "domain=shop/topic=orders/date=2026-03-07",
        "domain=press/topic=news/date=2026-03-07",
        "domain=press/topic=news/date=2025-03-07",
        "domain=press/topic=news/date=__HIVE_DEFAULT_PARTITION__",
    )
    assert forget_older(lake, RAW_MESSAGES, {"shop": 2, "*": 100}, TODAY) == 2
    assert left(lake, RAW_MESSAGES) == [
        "domain=press/topic=news/date=2026-03-07",
        "domain=press/topic=news/date=__HIVE_DEFAULT_PARTITION__",
        "domain=shop/topic=orders/date=2026-03-08",
    ]
    assert forget_older(lake, RAW_MESSAGES, {"shop": 2, "*": 100}, TODAY) == 0


def test_a_domain_that_is_not_named_keeps_everything(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lay(lake, RAW_MESSAGES, "domain=press/topic=news/date=2001-01-01")
    assert forget_older(lake, RAW_MESSAGES, {"shop": 1}, TODAY) == 0


def test_a_table_without_domains_goes_by_what_every_domain_keeps(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lay(lake, ANOMALIES, "date=2026-03-01", "date=2026-03-09")
    assert forget_older(lake, ANOMALIES, {"shop": 1, "*": 5}, TODAY) == 1
    assert left(lake, ANOMALIES) == ["date=2026-03-09"]


def test_days_are_written_by_domain() -> None:
    assert parse_kept_days(" shop=30, *=365 ") == {"shop": 30, "*": 365}
    assert parse_kept_days("90") == {"*": 90}
    assert parse_kept_days("") == {}


@pytest.mark.parametrize("text", ["shop", "shop=0", "shop=-1", "shop=1.5", "shop=thirty"])
def test_what_is_no_number_of_days_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="DOMAIN=DAYS"):
        parse_kept_days(text)
