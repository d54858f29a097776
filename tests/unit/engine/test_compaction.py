"""Compaction changes where messages are, never what is read."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sealane.engine.local.compaction import BATCH_BYTES, BATCH_MESSAGES, compact, remove_garbage
from sealane.engine.local.compaction_plan import FILE_BYTES_MAX, MERGE_RATIO, SMALL_FILE_BYTES, expired
from sealane.engine.local.files import DiskFiles
from sealane.engine.local.record import JOURNAL, MESSAGES
from sealane.engine.local.trims import Trim
from sealane.errors import KeyUnavailable
from sealane.message import Batch, BatchMeta, Limits, Row, Stamp, from_payloads, from_rows
from tests.unit.engine.small_store import CARTS, ORDERS, SmallStore

LIMITS = Limits()
STAMP = Stamp(1_700_000_000_000_000, bytes(16))


def batch(*payloads: bytes, only: str | None = None) -> Batch:
    made = from_payloads(payloads, STAMP, limits=LIMITS)
    return made if only is None else made.with_meta(BatchMeta(only=only))


@pytest.fixture
def store(tmp_path):
    store = SmallStore(DiskFiles(tmp_path))
    yield store
    store.close()


def on_disk(tmp_path) -> set[str]:
    return {
        str(path.relative_to(tmp_path))
        for folder in ("wal", "compacted")
        for path in (tmp_path / folder).rglob("*")
        if path.is_file()
    }


def test_messages_and_journal_read_the_same_after_compaction(store, tmp_path):
    store.segment([(ORDERS, [batch(b"a", b"b")]), (ORDERS, [b"granted"])], [(CARTS, [batch(b"c")])])
    store.segment([(ORDERS, [batch(b"d"), batch(b"e", b"f")]), (ORDERS, [b"acked", b"nacked"])])
    before = store.messages(ORDERS), store.messages(CARTS), store.journal(ORDERS)
    result = store.compact()
    assert (store.messages(ORDERS), store.messages(CARTS), store.journal(ORDERS)) == before
    assert sorted(before[0]) == [0, 1, 2, 3, 4]
    assert before[2] == {0: b"granted", 1: b"acked", 2: b"nacked"}
    assert on_disk(tmp_path) == {file.name for file in result.added}
    assert len(result.added) == 3
    assert result.skipped == ()


def test_a_file_is_named_after_what_it_holds(store):
    store.segment([(CARTS, [batch(b"a")])])
    (file,) = store.compact().added
    assert file.name == f"compacted/shop/carts#2/3.messages.{0:020d}.{file.generation}.log"


def test_small_batches_become_one(store):
    store.segment(*([(ORDERS, [batch(b"x")])] for _ in range(50)))
    store.compact()
    (stored,) = store.stored(ORDERS)
    assert (stored.base, len(stored.batch)) == (0, 50)


def test_batches_are_joined_up_to_exactly_the_message_limit(store):
    half = batch(*[b""] * (BATCH_MESSAGES // 2))
    store.segment([(ORDERS, [half])], [(ORDERS, [half])], [(ORDERS, [batch(b"")])])
    store.compact()
    assert [len(stored.batch) for stored in store.stored(ORDERS)] == [BATCH_MESSAGES, 1]


def test_batches_are_not_joined_beyond_the_byte_limit(store):
    large = batch(b"x" * (BATCH_BYTES // 2))
    store.segment(*([(ORDERS, [large])] for _ in range(3)))
    store.compact()
    assert [len(stored.batch) for stored in store.stored(ORDERS)] == [1, 1, 1]


def test_batches_for_different_subscriptions_stay_apart(store):
    store.segment([(ORDERS, [batch(b"a"), batch(b"b", only="etl"), batch(b"c", only="etl"), batch(b"d")])])
    store.compact()
    found = [(stored.base, len(stored.batch), stored.batch.meta.only) for stored in store.stored(ORDERS)]
    assert found == [(0, 1, None), (1, 2, "etl"), (3, 1, None)]


def test_a_joined_batch_keeps_the_producer_when_there_is_only_one(store):
    mine, yours = BatchMeta(producer=b"mine", sequence=1), BatchMeta(producer=b"yours", sequence=9)
    store.segment([(ORDERS, [batch(b"a").with_meta(mine), batch(b"b").with_meta(mine)])])
    store.segment([(CARTS, [batch(b"a").with_meta(mine), batch(b"b").with_meta(yours)])])
    store.compact()
    assert [stored.batch.meta for stored in store.stored(ORDERS)] == [BatchMeta(producer=b"mine")]
    assert [stored.batch.meta for stored in store.stored(CARTS)] == [BatchMeta()]


def test_trimmed_messages_and_journal_entries_are_left_out(store):
    store.segment([(ORDERS, [batch(b"a", b"b", b"c"), batch(b"d")]), (ORDERS, [b"0", b"1", b"2"])])
    store.metadata.save_trim(ORDERS, Trim(2, 1))
    store.compact()
    assert [(stored.base, stored.batch.payloads()) for stored in store.stored(ORDERS)] == [(2, [b"c", b"d"])]
    assert store.journal(ORDERS) == {1: b"1", 2: b"2"}


def test_a_log_that_was_trimmed_to_its_end_leaves_no_file(store, tmp_path):
    store.segment([(ORDERS, [batch(b"a")])])
    store.metadata.save_trim(ORDERS, Trim(1, 0))
    assert store.compact().added == ()
    assert on_disk(tmp_path) == set()


def test_a_dropped_partition_is_left_out_and_its_files_go(store, tmp_path):
    store.segment([(ORDERS, [batch(b"a")]), (CARTS, [batch(b"b")])])
    store.compact()
    store.segment([(ORDERS, [batch(b"c")])])
    store.metadata.save_drop(ORDERS)
    store.compact()
    assert store.messages(ORDERS) == {}
    assert len(store.messages(CARTS)) == 1
    assert all("carts" in name for name in on_disk(tmp_path))


def test_small_neighbours_are_merged_so_that_a_log_has_few_files(store):
    for _ in range(30):
        store.segment([(ORDERS, [batch(b"x" * 100)]), (ORDERS, [b"note"])])
        store.compact()
    assert len(store.messages(ORDERS)) == len(store.journal(ORDERS)) == 30
    assert len(store.metadata.manifest()) <= 8


def test_a_large_file_is_never_written_again(store, monkeypatch):
    monkeypatch.setattr("sealane.engine.local.compaction_plan.SMALL_FILE_BYTES", 4_000)
    store.segment([(ORDERS, [batch(store.entropy(5_000))])])
    (large,) = store.compact().added
    store.segment([(ORDERS, [batch(store.entropy(5_000))])])
    store.compact()
    assert store.metadata.manifest()[0].name == large.name
    assert len(store.metadata.manifest()) == 2


def test_a_small_file_is_left_alone_while_the_new_data_is_much_smaller(store):
    store.segment([(ORDERS, [batch(store.entropy(100_000))])])
    store.compact()
    store.segment([(ORDERS, [batch(b"tiny")])])
    store.compact()
    assert len(store.metadata.manifest()) == 2
    store.segment([(ORDERS, [batch(store.entropy(100_000 // MERGE_RATIO + 1_000))])])
    store.compact()
    assert len(store.metadata.manifest()) == 1
    assert len(store.messages(ORDERS)) == 3


def test_a_new_file_takes_no_more_than_its_limit(store, monkeypatch):
    monkeypatch.setattr("sealane.engine.local.compaction_plan.FILE_BYTES_MAX", 3_000)
    store.segment(*([(ORDERS, [batch(store.entropy(1_000))])] for _ in range(5)))
    before = store.messages(ORDERS)
    store.compact()
    spans = [(file.base, file.stop) for file in store.metadata.manifest()]
    assert spans == [(0, 2), (2, 4), (4, 5)]
    assert store.messages(ORDERS) == before


def test_the_limits_of_files_leave_room_between_small_and_largest():
    assert SMALL_FILE_BYTES < FILE_BYTES_MAX


def test_retention_removes_whole_files_only(store):
    store.segment([(ORDERS, [batch(b"a", b"b")]), (ORDERS, [b"note"])])
    store.compact()
    manifest = store.metadata.manifest()
    messages = next(file for file in manifest if file.kind == MESSAGES)
    assert expired(manifest, {ORDERS: Trim(1, 0)}, set()) == []
    assert expired(manifest, {ORDERS: Trim(2, 0)}, set()) == [messages.name]
    assert expired(manifest, {}, {ORDERS}) == [file.name for file in manifest]


def flip(tmp_path, name: str, position: int) -> None:
    path = tmp_path / name
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(bytes(data))


def test_a_damaged_entry_is_skipped_reported_and_its_offsets_stay_taken(store, tmp_path):
    name = store.segment([(ORDERS, [batch(b"a")])], [(ORDERS, [batch(b"b")])], [(ORDERS, [batch(b"c", b"d")])])
    victims = store.logs[ORDERS, MESSAGES][1:]
    for victim in victims:
        flip(tmp_path, name, victim.position + 30)
    result = store.compact()
    assert [(skip.partition, skip.base, skip.count, skip.file) for skip in result.skipped] == [
        (ORDERS, 1, 1, name),
        (ORDERS, 2, 2, name),
    ]
    assert [skip.position for skip in result.skipped] == [victim.position for victim in victims]
    assert sorted(store.messages(ORDERS)) == [0]
    again = SmallStore(store.files)
    assert again.end(ORDERS) == 4
    again.close()


def test_a_log_of_which_nothing_is_sound_keeps_its_place(store, tmp_path):
    for sealed in (True, False):
        partition = ORDERS if sealed else CARTS
        name = store.segment([(partition, [batch(b"a", b"b")])], sealed=sealed)
        flip(tmp_path, name, store.logs[partition, MESSAGES][0].position + 30)
    assert len(store.compact().skipped) == 2
    again = SmallStore(store.files)
    assert (again.end(ORDERS), again.end(CARTS)) == (2, 2)
    assert again.messages(ORDERS) == again.messages(CARTS) == {}
    again.close()


def test_what_was_shredded_is_left_out(store):
    store.segment([(ORDERS, [batch(b"a")]), (CARTS, [batch(b"b")])])
    store.sealer.keyring.destroy(ORDERS.domain)
    result = store.compact()
    assert [skip.problem for skip in result.skipped] == [
        "the keys of domain 'default' were destroyed; its data is gone for good"
    ]
    assert store.messages(ORDERS) == {}
    assert len(store.messages(CARTS)) == 1


def test_a_key_that_is_merely_missing_stops_a_compaction_rather_than_losing_data(store):
    store.segment([(ORDERS, [batch(b"a")])])
    store.sealer.keyring._by_id.clear()
    with pytest.raises(KeyUnavailable):
        store.compact()


def test_an_unsealed_topic_is_a_plain_arrow_file(store, tmp_path):
    row = Row(b"payload", key=b"k", headers={"h": "v"}, priority=7, expires_us=10**15, id=uuid.uuid4())
    store.segment([(ORDERS, [from_rows([row, row._replace(id=uuid.uuid4())], STAMP, limits=LIMITS)])], sealed=False)
    store.segment([(ORDERS, [batch(b"c", only="etl")])], sealed=False)
    before = store.messages(ORDERS)
    (file,) = store.compact().added
    assert file.name.endswith(".arrow")
    assert store.messages(ORDERS) == before
    with pa.OSFile(str(tmp_path / file.name)) as source, pa.ipc.open_file(source) as reader:
        table = reader.read_all()
        metadata = reader.schema.metadata
        (_, second) = reader.get_batch_with_custom_metadata(1)
    assert table.column("payload").to_pylist() == [b"payload", b"payload", b"c"]
    assert metadata[b"sealane.topic"] == b"orders"
    assert metadata[b"sealane.partition"] == b"0"
    assert (second[b"sealane.base"], second[b"sealane.count"]) == (b"2", b"1")


def test_a_topic_that_starts_to_seal_keeps_its_older_plain_file(store):
    store.segment([(ORDERS, [batch(b"a")])], sealed=False)
    store.compact()
    store.segment([(ORDERS, [batch(b"b")])])
    store.compact()
    assert [file.sealed for file in store.metadata.manifest()] == [False, True]
    assert len(store.messages(ORDERS)) == 2


def test_files_left_by_a_compaction_that_was_never_applied_are_removed(store, tmp_path):
    store.segment([(ORDERS, [batch(b"a")])])
    plan = store.plan()
    store.metadata.begin_compaction(plan.outputs)
    compact(store.files, plan, store.sealer, store.entropy)
    assert len(on_disk(tmp_path)) == 2
    assert set(remove_garbage(store.files, store.metadata)) == set(plan.outputs)
    assert on_disk(tmp_path) == set(store.segments)


payload_lists = st.lists(st.binary(max_size=40), min_size=1, max_size=6)
appends = st.tuples(
    st.sampled_from([ORDERS, CARTS]),
    st.one_of(
        st.lists(payload_lists, min_size=1, max_size=3).map(lambda lists: [batch(*each) for each in lists]),
        payload_lists.map(lambda payloads: [batch(*payloads, only="etl")]),
        st.lists(st.binary(max_size=30), min_size=1, max_size=4),
    ),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("segment"), st.lists(st.lists(appends, min_size=1, max_size=2), min_size=1, max_size=4)),
        st.tuples(st.just("trim"), st.tuples(st.integers(0, 30), st.integers(0, 10))),
        st.tuples(st.just("compact"), st.none()),
        st.tuples(st.just("reopen"), st.none()),
    ),
    max_size=12,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps, st.booleans())
def test_whatever_is_written_trimmed_compacted_and_reopened_reads_as_it_was_written(
    tmp_path_factory, script, orders_sealed
):
    files = DiskFiles(tmp_path_factory.mktemp("data"))
    store = SmallStore(files)
    for step, argument in script:
        if step == "segment":
            for group in argument:
                store.segment(group, sealed=orders_sealed)
        elif step == "trim":
            messages_before, journal_before = argument
            trim = Trim(min(messages_before, store.end(ORDERS)), min(journal_before, store.end(ORDERS, JOURNAL)))
            store.metadata.save_trim(ORDERS, trim)
        elif step == "reopen":
            store.close()
            store = SmallStore(files)
        else:
            expected = {p: (store.messages(p), store.journal(p)) for p in (ORDERS, CARTS)}
            ends = {p: (store.end(p), store.end(p, JOURNAL)) for p in (ORDERS, CARTS)}
            store.compact()
            assert {p: (store.messages(p), store.journal(p)) for p in (ORDERS, CARTS)} == expected
            assert {p: (store.end(p), store.end(p, JOURNAL)) for p in (ORDERS, CARTS)} == ends
    store.close()
