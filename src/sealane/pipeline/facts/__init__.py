"""What the tables say, computed from what was taken in: DataFrames in, DataFrames out."""
