"""The lake: tables of Parquet files that any tool reads, and a log by which each micro-batch comes in once.

A table is a directory of Parquet files. What Spark has computed is first staged beside it, where readers do not look; a
record in the table's log says which files become part of it, in one step; then they are moved. Whoever was killed in
between finds the record, and finishes what it says.
"""
