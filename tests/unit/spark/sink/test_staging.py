"""What tasks write and drivers publish, on a real node, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import sealane
from sealane.errors import InvalidName, SealaneError
from sealane.message import Batch
from sealane.spark.errors import InvalidOption, NodeUnreachable
from sealane.spark.options.access import Access, find_access
from sealane.spark.sink import publishing, staging
from sealane.spark.sink.publishing import Part, drop, publish
from sealane.spark.sink.staging import StagedPart, stage
from sealane.testing.node_process import NodeProcess


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    with NodeProcess(tmp_path_factory.mktemp("staging") / "node") as node:
        yield node


@pytest.fixture
def access(node: NodeProcess) -> Access:
    return find_access({"url": node.url})


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    name: str = request.node.name
    return name[:100]


def rows(topic: str, count: int, *, of: int = 100) -> Iterator[tuple[str, pa.RecordBatch]]:
    """So many batches for the topic, their payloads counting up."""
    for number in range(count):
        payloads = [b"%d" % value for value in range(number * of, (number + 1) * of)]
        yield topic, pa.RecordBatch.from_pydict({"payload": payloads})


def counted(count: int) -> list[bytes]:
    return [b"%d" % value for value in range(count)]


def told(part: StagedPart) -> Part:
    return Part(part.name, part.batches, part.rows, part.bytes)


def seen(node: NodeProcess, topic: str) -> list[bytes]:
    with sealane.connect_sync(node.url) as lane:
        lane.create_topic(topic)
        found: list[bytes] = []
        while stored := lane.browse(topic, 0, len(found)):
            found += [payload for part in stored for payload in part.batch.payloads()]
        return found


def test_what_is_staged_is_seen_when_it_is_published_and_then_once(
    node: NodeProcess, access: Access, topic: str
) -> None:
    part = stage(access, rows(topic, 5))
    assert (part.batches, part.rows) == (5, 500)
    assert seen(node, topic) == []
    for _ in range(2):
        publish(access, topic, [told(part)])
    assert seen(node, topic) == counted(500)


def test_an_epoch_is_published_once_whatever_its_parts_are(node: NodeProcess, access: Access, topic: str) -> None:
    first, again, other = (stage(access, rows(topic, count)) for count in (2, 2, 1))
    publish(access, topic, [told(first)], epoch=0)
    publish(access, topic, [told(again), told(other)], epoch=0)
    assert seen(node, topic) == counted(200)


def test_a_write_without_rows_asks_the_node_for_nothing(topic: str) -> None:
    nowhere = find_access({"url": "sealane://127.0.0.1:1", "retrySeconds": "1"})
    part = stage(nowhere, iter([(topic, pa.RecordBatch.from_pydict({"payload": pa.array([], pa.binary())}))]))
    publish(nowhere, topic, [told(part)])
    drop(nowhere, [told(part)])
    assert part.batches == 0


@pytest.mark.parametrize(("limit", "most"), [("IN_FLIGHT_BYTES", 10_000), ("IN_FLIGHT_BATCHES", 2)])
def test_no_more_is_on_its_way_than_may_be(
    node: NodeProcess, access: Access, limit: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = f"limited-{limit}"
    on_their_way: list[int] = []

    class Watched(StagedPart):
        def add(self, topic: str, batch: Batch) -> None:
            super().add(topic, batch)
            on_their_way.append(self._unsure_bytes if limit == "IN_FLIGHT_BYTES" else len(self._unsure))

    monkeypatch.setattr(staging, "StagedPart", Watched)
    monkeypatch.setattr(staging, limit, most)
    part = stage(access, rows(topic, 30))
    assert len(on_their_way) == 30
    assert 0 < max(on_their_way) <= most
    publish(access, topic, [told(part)])
    assert seen(node, topic) == counted(3_000)


def test_rows_that_cannot_be_made_leave_nothing_behind(
    access: Access, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts: list[StagedPart] = []

    class Remembered(StagedPart):
        def __init__(self, access: Access) -> None:
            super().__init__(access)
            parts.append(self)

    def failing() -> Iterator[tuple[str, pa.RecordBatch]]:
        yield from rows(topic, 3)
        raise ValueError("no more rows")

    monkeypatch.setattr(staging, "StagedPart", Remembered)
    with pytest.raises(ValueError, match="no more rows"):
        stage(access, failing())
    (part,) = parts
    assert part.batches == 3
    with pytest.raises(SealaneError, match=part.name.hex()):
        publish(access, topic, [told(part)])


def test_what_the_node_refuses_is_said_by_the_write(access: Access) -> None:
    with pytest.raises(InvalidName, match="_system"):
        stage(access, rows("_system", 1))


def test_what_is_dropped_can_no_longer_be_published(access: Access, topic: str) -> None:
    part = told(stage(access, rows(topic, 1)))
    drop(access, [part])
    with pytest.raises(SealaneError, match=part.name.hex()):
        publish(access, topic, [part])


def test_more_parts_than_one_request_can_name_are_refused_and_dropped(
    access: Access, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "PARTS_MAX", 1)
    parts = [told(stage(access, rows(topic, 1))) for _ in range(2)]
    with pytest.raises(InvalidOption, match="coalesce"):
        publish(access, topic, parts)
    with pytest.raises(SealaneError, match=parts[0].name.hex()):
        publish(access, topic, parts[:1])


# --- a node that goes away --------------------------------------------------------------------------------------------


@pytest.fixture
def own_node(tmp_path: Path) -> Iterator[NodeProcess]:
    with NodeProcess(tmp_path / "node") as node:
        yield node


def with_deed(
    batches: Iterator[tuple[str, pa.RecordBatch]], at: int, deed: Callable[[], object]
) -> Iterator[tuple[str, pa.RecordBatch]]:
    for number, batch in enumerate(batches):
        if number == at:
            deed()
        yield batch


def test_a_node_that_is_killed_while_rows_come_in_has_them_all_once_when_it_is_back(
    own_node: NodeProcess, topic: str
) -> None:
    access = find_access({"url": own_node.url})

    def crash() -> None:
        own_node.kill()
        own_node.start(wait=False)

    part = stage(access, with_deed(rows(topic, 20), 10, crash))
    own_node.kill()
    own_node.start()
    publish(access, topic, [told(part)], epoch=3)
    own_node.kill()
    own_node.start()
    publish(access, topic, [told(part)], epoch=3)
    assert seen(own_node, topic) == counted(2_000)


def test_a_node_that_does_not_come_back_is_named_with_what_was_to_be_done(own_node: NodeProcess, topic: str) -> None:
    access = find_access({"url": own_node.url, "retrySeconds": "1"})
    with pytest.raises(NodeUnreachable, match=f"writing to topic '{topic}'"):
        stage(access, with_deed(rows(topic, 4), 2, own_node.kill))
