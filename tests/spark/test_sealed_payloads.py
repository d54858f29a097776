"""Payloads that were sealed end to end, in a DataFrame: ciphertext without a key, opened on executors with one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import sealane
from sealane.security.envelopes import PrivateKey
from sealane.testing.node_process import NodeProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_job_with_the_key_reads_what_was_sealed_for_it_and_knows_what_was_not(
    spark: SparkSession, node: NodeProcess, topic: str, tmp_path: Path
) -> None:
    ours, others = PrivateKey.generate(), PrivateKey.generate()
    with sealane.connect_sync(node.url) as lane:
        for number in range(3):
            lane.publish(topic, b'{"number": %d}' % number, seal_for=ours.public)
        lane.publish(topic, b'{"number": 3}', seal_for=others.public)
        lane.publish(topic, b'{"number": 4}')
    key_file = tmp_path / "job.key"
    key_file.touch(0o600)
    key_file.write_text(ours.pem())
    source = spark.read.format("sealane").options(url=node.url, topic=topic)

    sealed = [bytes(row.payload) for row in source.load().orderBy("offset").collect()]
    assert [b"number" in payload for payload in sealed] == [False] * 4 + [True]

    opened = source.options(decryptionKeys=str(key_file), valueFormat="json", valueSchema="number INT").load()
    assert opened.columns[-3:] == ["value", "_corrupt", "_unopened"]
    rows = opened.orderBy("offset").select("payload", "value.number", "_corrupt", "_unopened").collect()
    assert [row.number for row in rows] == [0, 1, 2, None, 4]
    assert [bytes(row.payload) for row in rows[:3]] == [b'{"number": %d}' % number for number in range(3)]
    assert bytes(rows[3].payload) == bytes(rows[3]._corrupt) == sealed[3]
    assert [row._unopened is None for row in rows] == [True, True, True, False, True]
