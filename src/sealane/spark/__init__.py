"""Topics as DataFrames: `format("sealane")` for Spark's readers and writers, batch and streaming.

import sealane.spark

sealane.spark.register(spark)
orders = spark.readStream.format("sealane").option("topic", "orders").load()
"""
