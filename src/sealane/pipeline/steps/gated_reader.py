"""How the queries of the pipeline plan: as every query of `format("sealane")` does, and no further than they may."""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.datasource import ReadLimit

from sealane.pipeline.steps.gate import AtTheGate
from sealane.spark.options.options import ReadOptions
from sealane.spark.source.planning.offsets import OffsetJson, ends_of, from_json
from sealane.spark.source.stream_reader import StreamReader


class GatedReader(StreamReader):
    """Goes from one word of the pipeline to the next."""

    def __init__(self, options: ReadOptions, gate: str) -> None:
        """`gate` is its path."""
        super().__init__(options)
        self._gate = AtTheGate(gate)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> OffsetJson:  # noqa: N802 - as Spark calls it
        """How far the next micro-batch goes. If there is none up to the last word, the next one is waited for here:
        Spark would only ask again.
        """
        while True:
            if self._target is None:
                word = self._gate.wait()
                if word is None:
                    return start
                self._target = ends_of(self._look()) if word.until is None else from_json(word.until)
            end = super().latestOffset(start, limit)
            if end != start:
                return end
            self._target = None

    def stop(self) -> None:
        self._gate.leave()
