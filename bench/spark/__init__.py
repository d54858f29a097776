"""Spark beside itself: topics read and written as DataFrames, next to what the same Spark does with Parquet."""
