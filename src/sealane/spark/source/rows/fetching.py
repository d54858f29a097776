"""What an executor does for one task: a range of a partition as Arrow batches that Spark takes as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from sealane.spark.options.access import Access
from sealane.spark.source.rows.opening import opening_with
from sealane.spark.source.rows.reading import Range as Range
from sealane.spark.source.rows.reading import read
from sealane.spark.source.rows.shaping import Shaping

if TYPE_CHECKING:
    from sealane.spark.values import Values


def fetch(
    access: Access,
    range: Range,
    *,
    keys: Sequence[str] = (),
    values: Values | None = None,
    schema_id: int | None = None,
    fail_on_data_loss: bool = True,
) -> Iterator[pa.RecordBatch]:
    """The messages of the range in their order, each once, with the columns that `row_schema` tells.

    `keys` are private keys in PEM, which open what was sealed for them; `values` gives typed columns, where `schema_id`
    is given, of what was not written with another schema. Raises what `read` raises.
    """
    opening = opening_with(tuple(keys)) if keys else None
    shaping = Shaping(range.topic, range.partition, opening, values, schema_id)
    return shaping.shape(read(access, range, fail_on_data_loss=fail_on_data_loss))
