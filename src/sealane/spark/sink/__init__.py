"""The sink: DataFrames written to topics, exactly once."""
