"""The report: what the tables say, as one page that opens anywhere.

`gathering` asks Spark and `figures` is what comes of it: plain values, few enough to be drawn. `page` makes HTML of
them, without Spark.
"""
