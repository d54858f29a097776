"""Spark: a topic is a streaming DataFrame, and what it says is a chart while messages still come in.

It needs Java, and `pip install 'sealane[spark,server]' matplotlib`. A real node would be there already (`sealane up`),
and no `url` would be needed. The chart is kept if you say where: `python 15_topics_as_dataframes.py chart.png`.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from matplotlib.figure import Figure
from pyspark.sql import Row
from pyspark.sql.functions import avg, window

import sealane
import sealane.spark
from sealane.testing.node_process import NodeProcess

MIDNIGHT = datetime(2026, 6, 1, tzinfo=UTC)
HOURS = 24
SENSORS = {"attic": 27, "kitchen": 21, "cellar": 14}


def publish(lane: sealane.SyncLane, hours: range) -> None:
    """A reading a minute of each sensor, for these hours of the day."""
    readings = [
        {
            "sensor": sensor,
            "at": (MIDNIGHT + timedelta(minutes=minute)).isoformat(),
            "celsius": mean + 5 * math.sin(math.tau * (minute / 60 - 9) / HOURS),
        }
        for minute in range(60 * hours.start, 60 * hours.stop)
        for sensor, mean in SENSORS.items()
    ]
    lane.publish_many("readings", [json.dumps(reading).encode() for reading in readings])


def draw(rows: list[Row], path: Path) -> None:
    figure = Figure(figsize=(8, 4.5))
    axes = figure.subplots()
    for sensor in SENSORS:
        points = sorted((row.hour, row.celsius) for row in rows if row.sensor == sensor)
        axes.plot(*zip(*points, strict=True), label=sensor)
    axes.set(xlabel="hour", ylabel="°C", title="readings, mean of each hour")
    axes.legend()
    figure.savefig(path, dpi=120)


def main(folder: Path, node: NodeProcess) -> None:
    chart = Path(sys.argv[1]) if len(sys.argv) > 1 else folder / "chart.png"
    spark = sealane.spark.session("readings", master="local[2]", spark_sql_shuffle_partitions=2)
    with sealane.connect_sync(node.url) as lane:
        publish(lane, range(12))

        readings = (
            spark.readStream.format("sealane")
            .options(url=node.url, topic="readings", valueFormat="json")
            .option("valueSchema", "sensor STRING, at TIMESTAMP, celsius DOUBLE")
            .load()
        )
        print("columns:", ", ".join(readings.columns))
        query = (
            readings.groupBy("value.sensor", window("value.at", "1 hour"))
            .agg(avg("value.celsius").alias("celsius"))
            .writeStream.outputMode("complete")
            .format("memory")
            .queryName("hourly")
            .option("checkpointLocation", str(folder / "checkpoint"))
            .start()
        )
        query.processAllAvailable()
        print(f"in the morning: {spark.table('hourly').count()} hourly means of {len(SENSORS)} sensors")

        publish(lane, range(12, HOURS))  # The query runs, and takes them in by itself.
        query.processAllAvailable()
        rows = spark.table("hourly").selectExpr("sensor", "hour(window.start) AS hour", "celsius").collect()
        query.stop()

    noon = next(row.celsius for row in rows if (row.sensor, row.hour) == ("kitchen", 12))
    print(f"in the evening: {len(rows)} of them; the kitchen at noon had {noon:.1f} °C")
    draw(rows, chart)
    print(f"the chart is a PNG of {'more' if chart.stat().st_size > 10_000 else 'less'} than 10 kB")
    spark.stop()


with tempfile.TemporaryDirectory() as directory, NodeProcess(Path(directory) / "data") as node:
    main(Path(directory), node)
