"""From topics to a report: the pipeline takes in what went through a node, proves it, and writes one page about it.

It needs Java, and `pip install 'sealane[spark,server]'`. A real node would be there already (`sealane up`), and two
commands do the same: `sealane pipeline reconcile`, `sealane pipeline report`. The page is kept if you say where:
`python 16_from_topics_to_a_report.py report.html`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import sealane
import sealane.spark
from sealane.pipeline.lake.tables import Lake
from sealane.pipeline.proving import prove
from sealane.pipeline.report.gathering import gather
from sealane.pipeline.report.page import render, write_report
from sealane.pipeline.report.verdict import verdict
from sealane.pipeline.settings import PipelineSettings
from sealane.testing.node_process import NodeProcess

ORDERS = 200
RETRY = sealane.Retry("fixed", delay_seconds=0.01, attempts_max=2)


def bill(lane: sealane.SyncLane, count: int) -> None:
    """Every fiftieth order fails twice, and is a dead letter then; the rest is billed."""
    ended = 0
    for order in lane.consume("orders", subscription="billing", retry=RETRY):
        if order.payload.endswith((b"49", b"99")):
            order.nack(reason="customer has no address")
            ended += order.attempt == RETRY.attempts_max
        else:
            order.ack(confirm=True)
            ended += 1
        if ended == count:
            return


def main(folder: Path, node: NodeProcess) -> None:
    page = Path(sys.argv[1]) if len(sys.argv) > 1 else folder / "report.html"
    with sealane.connect_sync(node.url) as lane:
        lane.publish_many("orders", [b"order %d" % number for number in range(ORDERS)])
        bill(lane, ORDERS)
        lane.publish_many("orders", [b"a late order %d" % number for number in range(10)])

    spark = sealane.spark.session("report", master="local[2]", spark_sql_shuffle_partitions=2)
    # The proof asks the node where its subscriptions stand, and takes in all that has happened.
    settings = PipelineSettings(lake=folder / "lake", topics="orders", url=node.url)
    figures = gather(spark, Lake(settings.lake), proof=prove(spark, settings))
    spark.stop()

    print(verdict(figures).sentence)
    assert figures.proven
    assert figures.dead_letters
    (row,) = figures.proven.balance
    print(f"published {row.published}: billed {row.acked}, dead {row.dead_lettered}, in flight {row.in_flight}")
    for dead in figures.dead_letters:
        print(f"{dead.messages} died of {dead.reason!r}; another chance: {dead.redrive}")
    write_report(page, render(figures))
    print(f"the report is one page of {'more' if page.stat().st_size > 20_000 else 'less'} than 20 kB")


with tempfile.TemporaryDirectory() as directory, NodeProcess(Path(directory) / "data") as node:
    main(Path(directory), node)
