"""The source: topics read as DataFrames. Spark plans on the driver and reads on executors."""
