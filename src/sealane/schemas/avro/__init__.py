"""Avro: payloads that are one value each, in Avro's binary encoding."""
