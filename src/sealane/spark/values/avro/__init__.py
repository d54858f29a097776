"""Payloads of Avro as typed columns: a decoder that reads one field of all rows at a time, with numpy."""

from __future__ import annotations

from sealane.spark.values.avro.avro_values import AvroValues

__all__ = ["AvroValues"]
