"""Every work that can be measured, by name, with its amounts and what is asked of it."""

from __future__ import annotations

from bench.works.doors import DOORS
from bench.works.flood import FLOOD
from bench.works.growth import GROWTH
from bench.works.in_process import IN_PROCESS
from bench.works.latency import LATENCY
from bench.works.many import MANY
from bench.works.pipeline import PIPELINE
from bench.works.reconciliation import RECONCILIATION
from bench.works.secrecy import SECRECY
from bench.works.space import SPACE
from bench.works.spark import SPARK
from bench.works.wire import WIRE

WORKS = {
    work.name: work
    for work in (
        *WIRE,
        *LATENCY,
        *MANY,
        *SECRECY,
        *SPACE,
        *GROWTH,
        *SPARK,
        *PIPELINE,
        *RECONCILIATION,
        *IN_PROCESS,
        *DOORS,
        *FLOOD,
    )
}
GROUPS = tuple(dict.fromkeys(work.group for work in WORKS.values()))
BESIDE_PEERS = tuple(work for work in WORKS.values() if work.beside is not None)
