"""The program of a client of Spark Connect: `python connected.py REMOTE URL PREFIX FOLDER`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from sealane.spark import register

ROWS = 500


def main(remote: str, url: str, prefix: str, folder: Path) -> None:
    spark = register(SparkSession.builder.remote(remote).getOrCreate(), by_value=True)
    options = {"url": url, "topic": f"{prefix}batch"}
    rows = spark.range(ROWS).selectExpr("cast(cast(id as string) as binary) as payload")
    rows.write.format("sealane").options(**options).mode("append").save()
    (
        spark.readStream.format("sealane")
        .options(**options)
        .load()
        .select("payload")
        .writeStream.format("sealane")
        .options(url=url, topic=f"{prefix}stream", checkpointLocation=str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
        .awaitTermination()
    )
    found = {
        "session": type(spark).__module__,
        "batch": spark.read.format("sealane").options(**options).load().count(),
        "stream": spark.read.format("sealane").options(url=url, topic=f"{prefix}stream").load().count(),
    }
    spark.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]))
