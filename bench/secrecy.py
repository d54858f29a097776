"""What secrecy costs: the same batches in plain text, over TLS and sealed at rest, and with end-to-end envelopes."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import sealane
from bench.clients.order import Order
from bench.wire import rate_at
from sealane.testing.node_process import NodeProcess

PLAIN, TLS, END_TO_END = "plain", "tls", "end-to-end"
RECIPIENT = "bench"


def rates(directory: Path, *, count: int, batch: int, count_sealed: int) -> dict[str, float]:
    """Messages a second in each way, one after the other, each on a new node. `count_sealed` is for envelopes."""
    found = {}
    for way, order in (
        (PLAIN, Order("", count, batch)),
        (TLS, Order("", count, batch)),
        (END_TO_END, Order("", count_sealed, batch)),
    ):
        data = directory / way
        found[way] = _plain(data, order) if way == PLAIN else _secure(data, order, envelopes=way == END_TO_END)
        # What one leaves in the page cache is not to be in the way of the next.
        shutil.rmtree(data)
    return found


def _plain(data: Path, order: Order) -> float:
    """Neither on the wire nor on disk is anything encrypted."""
    with NodeProcess(data) as node:
        with sealane.connect_sync(node.url) as lane:
            lane.create_topic(order.topic, sealed=False)
        return rate_at("publish_many", "consume_batches", replace(order, url=node.url))


def _secure(data: Path, order: Order, *, envelopes: bool = False) -> float:
    """As `sealane up` is by default: mutual TLS, sealed at rest; with envelopes, the node sees no payload either."""
    with NodeProcess.secure(data) as node:
        order = replace(order, url=node.url, profile=str(node.profile))
        with sealane.connect_sync(node.url, profile=node.profile) as lane:
            lane.create_topic(order.topic)
            if envelopes:
                from sealane.security.envelopes import PrivateKey

                key_file = data.with_suffix(".key")
                key = PrivateKey.generate("x25519")
                key_file.write_text(key.pem())
                lane.register_key(key.public, name=RECIPIENT)
                order = replace(order, seal_for=RECIPIENT, open_with=str(key_file))
        return rate_at("publish_many", "consume_batches", order)
