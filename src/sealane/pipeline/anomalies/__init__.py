"""Anomalies: what a series was expected to be, what it was, and whom to tell (docs/pipeline.md).

`measures`, `observed`, `robust`, `baseline`, `scoring`, `runs` and `detecting` are the core: numpy arrays in, findings
out, without Spark, a disk or a clock. `binning` and `kept_bins` make its input from the lake, `watching` hands it to
the core, a topic at a time, and `alerts` tells what was found.
"""
