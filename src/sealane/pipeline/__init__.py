"""The data pipeline: what went through the broker as tables, by Spark (docs/pipeline.md)."""
