"""What an executor does for one task, whichever log it is of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from sealane.spark.options.options import ReadOptions
from sealane.spark.source.rows.fetching import Range, fetch
from sealane.spark.source.rows.history import fetch_history

if TYPE_CHECKING:
    from sealane.spark.values import Values


def rows_of(options: ReadOptions, range: Range, values: Values | None) -> Iterator[pa.RecordBatch]:
    """The rows of the range, as the options want them."""
    if options.log == "history":
        return fetch_history(options.access, range, fail_on_data_loss=options.fail_on_data_loss)
    return fetch(
        options.access,
        range,
        keys=options.keys,
        values=values,
        schema_id=options.schema_id,
        fail_on_data_loss=options.fail_on_data_loss,
    )
