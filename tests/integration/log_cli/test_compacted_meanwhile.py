"""`sealane log` at a directory whose node compacts while it is being looked at."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from sealane.cli.log_export import Request, export
from sealane.cli.log_verify import verify
from sealane.engine.local import DiskFiles
from sealane.message import Limits, Stamp, from_payloads
from sealane.node.surroundings import wall_clock_us
from tests.integration.log_cli.written import CARTS, ORDERS
from tests.unit.engine.small_store import SmallStore


@pytest.fixture
def busy(tmp_path, monkeypatch):
    """A directory whose node compacts while it is being looked at; files are reopened for every read."""
    monkeypatch.setattr("sealane.cli.data_directory._OPEN_FILES_MAX", 1)
    store = SmallStore(DiskFiles(tmp_path / "data"))
    for number in range(4):
        payloads = [b"%d" % number] * 3
        batch = from_payloads(payloads, Stamp(wall_clock_us(), os.urandom(16)), limits=Limits())
        store.segment([(ORDERS, [batch])], [(CARTS, [batch])])
    yield store
    store.close()


def compacting_once(store: SmallStore) -> Callable[[int, int], None]:
    def progress(done: int, total: int) -> None:
        if store.segments:
            store.compact()

    return progress


def test_an_export_goes_on_where_compaction_has_moved_the_messages(busy, tmp_path):
    request = Request(Path(busy.files.location), "default", "orders", tmp_path / "o.arrow", "arrow")
    assert export(request, compacting_once(busy)).messages == 12
    with pa.OSFile(str(tmp_path / "o.arrow")) as source, pa.ipc.open_file(source) as reader:
        assert reader.read_all().column("offset").to_pylist() == list(range(12))


def test_verify_checks_what_compaction_has_moved_where_it_went(busy):
    verdict = verify(Path(busy.files.location), compacting_once(busy))
    assert verdict.damage == []
    # One segment was checked before compaction took the rest away, then the two files that hold everything.
    assert verdict.files == 3
