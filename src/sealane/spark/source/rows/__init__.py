"""On executors: ranges of logs become the rows of a DataFrame, as Arrow batches, without Spark."""
