"""`sealane log`: a data directory seen from outside, as its user sees it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from sealane.cli.log_export import Request, export
from sealane.cli.log_verify import verify
from sealane.cli.main import app
from sealane.engine.contract import Append, PartitionKey
from sealane.engine.local import DiskFiles, LocalEngine, StorageSettings
from sealane.engine.local.compactor_process import InlineCompactor
from sealane.engine.local.segment import HEADER_BYTES
from sealane.message import Batch, Limits, Row, Stamp, from_payloads, from_rows
from tests.unit.engine.small_store import SmallStore

ORDERS = PartitionKey("default", "orders", 1, 0)
ORDERS_1 = PartitionKey("default", "orders", 1, 1)
CARTS = PartitionKey("shop", "carts", 1, 0)
SETTINGS = StorageSettings(segment_bytes=16_384, segment_bytes_first=16_384, compaction_segments_min=1_000)
run = CliRunner()


def now_us() -> int:
    return time.time_ns() // 1000


class Node:
    """An engine and what has been written to it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ends: dict[PartitionKey, int] = {}

    async def start(self) -> None:
        self.engine = await LocalEngine.start(
            DiskFiles(self.directory),
            settings=SETTINGS,
            clock=now_us,
            entropy=os.urandom,
            compactor=lambda files, sealer: InlineCompactor(files, sealer, os.urandom),
        )

    async def publish(self, partition: PartitionKey, *payloads: bytes, sealed: bool = True) -> None:
        await self.append(partition, from_payloads(payloads, Stamp(now_us(), os.urandom(16)), limits=Limits()), sealed)

    async def append(self, partition: PartitionKey, batch: Batch, sealed: bool = True) -> None:
        opened = await self.engine.open(partition, sealed=sealed)
        await self.engine.commit([Append(partition, opened.epoch, batch, opened.end, b"note", opened.journal_end)])

    async def compact(self) -> None:
        """Fill the active segment, so that it is closed, and compact."""
        housekeeping = self.engine.housekeeping
        filler = PartitionKey("default", "filler", 1, 0)
        while not any(segment.indexed for segment in housekeeping._closed):
            await self.publish(filler, os.urandom(4_000))
        assert await housekeeping.compact() is not None


@pytest.fixture
async def node(tmp_path):
    node = Node(tmp_path / "data")
    await node.start()
    yield node
    await node.engine.close()


def sealane(*arguments: object, code: int = 0):
    result = run.invoke(app, [str(argument) for argument in ("log", *arguments)])
    assert result.exit_code == code, (result.output, result.stderr, result.exception)
    return result


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(bytes(data))


# --- inspect --------------------------------------------------------------------------------------------------------


async def test_inspect_lists_topics_and_partitions_of_a_running_node(node):
    await node.publish(ORDERS, b"a", b"b")
    await node.publish(ORDERS_1, b"c")
    await node.publish(CARTS, b"d", sealed=False)
    await node.engine.trim(ORDERS, messages_before=1)
    output = sealane("inspect", node.directory).output
    assert "default/orders" in output
    assert "shop/carts" in output
    found = json.loads(sealane("inspect", node.directory, "--json").output)
    topics = {topic["topic"]: topic["partitions"] for topic in found["topics"]}
    assert [(p["partition"], p["start"], p["end"], p["messages"]) for p in topics["orders"]] == [
        (0, 1, 2, 1),
        (1, 0, 1, 1),
    ]
    assert topics["orders"][0]["sealed"] == "yes"
    assert topics["carts"][0]["sealed"] == "no"
    assert topics["carts"][0]["journal_entries"] == 1
    assert topics["carts"][0]["formats"] == ["wal"]


async def test_inspect_shows_the_same_offsets_after_compaction(node):
    await node.publish(ORDERS, b"a", b"b")
    await node.publish(CARTS, b"c", sealed=False)
    before = json.loads(sealane("inspect", node.directory, "--json").output)
    await node.compact()
    after = json.loads(sealane("inspect", node.directory, "--json").output)
    for old, new in zip(before["topics"], [t for t in after["topics"] if t["topic"] != "filler"], strict=True):
        for was, partition in zip(old["partitions"], new["partitions"], strict=True):
            assert {k: was[k] for k in ("start", "end", "messages", "lost")} == {
                k: partition[k] for k in ("start", "end", "messages", "lost")
            }
    formats = {topic["topic"]: topic["partitions"][0]["formats"] for topic in after["topics"]}
    assert (formats["orders"], formats["carts"]) == (["log"], ["arrow"])


async def test_inspect_lists_records_and_what_they_hold(node):
    await node.publish(ORDERS, b"a", b"b")
    output = sealane("inspect", node.directory, "--records").output
    assert "messages default/orders#1:0 0–1" in output
    assert "journal default/orders#1:0 0–0" in output
    listed = json.loads(sealane("inspect", node.directory, "--records", "--json").output)["records"]
    assert [e["base"] for r in listed for e in r["entries"] if e["kind"] == "messages"] == [0]


async def test_a_dropped_topic_is_not_shown(node):
    await node.publish(ORDERS, b"a")
    await node.engine.drop(ORDERS)
    assert "orders" not in sealane("inspect", node.directory).output


async def test_an_empty_directory_has_no_topics_yet(node):
    assert "no topics yet" in sealane("inspect", node.directory).output


async def test_the_directory_comes_from_the_option_or_the_environment(node, monkeypatch):
    await node.publish(ORDERS, b"a")
    assert "orders" in sealane("inspect", "--data", node.directory).output
    monkeypatch.setenv("SEALANE_DATA", str(node.directory))
    assert "orders" in sealane("inspect").output


@pytest.mark.parametrize("command", [["inspect"], ["verify"], ["export", "orders", "--out", "x.jsonl"]])
def test_what_is_no_data_directory_is_one_clear_line(tmp_path, command):
    for directory, problem in ((tmp_path, "is not a Sealane data directory"), (tmp_path / "none", "does not exist")):
        result = sealane(*command, "--data", directory, code=1)
        assert problem in result.stderr
        assert len(result.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


# --- verify ---------------------------------------------------------------------------------------------------------


async def test_verify_finds_a_running_node_sound(node):
    await node.publish(ORDERS, b"a", b"b")
    await node.compact()
    await node.publish(ORDERS, b"c")
    assert "all sound" in sealane("verify", node.directory).output
    verdict = json.loads(sealane("verify", node.directory, "--json").output)
    assert (verdict["sound"], verdict["tags_checked"], verdict["damage"]) == (True, True, [])


async def test_verify_names_file_position_partition_and_offsets_of_damage_in_the_log(node):
    await node.publish(ORDERS, b"a")
    await node.publish(ORDERS, b"b", b"c")
    await node.publish(ORDERS, b"d")
    await node.engine.close()
    records = json.loads(sealane("inspect", node.directory, "--records", "--json").output)["records"]
    (victim,) = [r for r in records if any(e["base"] == 1 and e["kind"] == "messages" for e in r["entries"])]
    path = node.directory / victim["file"]
    flip(path, victim["position"] + 500)
    result = sealane("verify", node.directory, code=1)
    assert f"damaged: {victim['file']} at byte" in result.output
    assert "default/orders#1:0 messages 1–2" in result.output or "default/orders#1:0 journal 1–1" in result.output
    assert "1 damaged" in result.output


async def test_verify_names_damage_in_compacted_files(node):
    await node.publish(ORDERS, b"a", b"b")
    await node.publish(CARTS, b"c", sealed=False)
    await node.compact()
    files = sorted((node.directory / "compacted").rglob("*.messages.*"))
    for path in files:
        if "filler" not in str(path):
            flip(path, path.stat().st_size // 2)
    damage = json.loads(sealane("verify", node.directory, "--json", code=1).output)["damage"]
    assert {(each["partition"], each["base"], each["stop"]) for each in damage} == {
        ("default/orders#1:0", 0, 2),
        ("shop/carts#1:0", 0, 1),
    }
    assert all(each["position"] > HEADER_BYTES for each in damage)


async def test_verify_tells_a_missing_compacted_file(node):
    await node.publish(ORDERS, b"a")
    await node.compact()
    (path,) = (node.directory / "compacted").rglob("*orders*/*.messages.*")
    path.unlink()
    result = sealane("verify", node.directory, code=1)
    assert "the file is missing" in result.output
    assert path.name in result.output


async def test_without_the_key_verify_checks_what_it_can_and_says_so(node):
    await node.publish(ORDERS, b"a")
    await node.engine.close()
    (node.directory / "master.key").unlink()
    result = sealane("verify", node.directory)
    assert "seals were not" in result.stderr


async def test_a_write_that_a_crash_cut_short_is_not_damage(node):
    await node.publish(ORDERS, b"a")
    await node.publish(ORDERS, b"b" * 2_000)
    records = json.loads(sealane("inspect", node.directory, "--records", "--json").output)["records"]
    path = node.directory / records[-1]["file"]
    data = bytearray(path.read_bytes())
    cut = records[-1]["position"] + 700
    data[cut:] = bytes(len(data) - cut)
    copy = node.directory.parent / "copy"
    await node.engine.close()
    node.directory.rename(copy)
    (copy / path.relative_to(node.directory)).write_bytes(bytes(data))
    verdict = json.loads(sealane("verify", copy, "--json").output)
    assert verdict["sound"]
    assert verdict["unfinished_bytes"] == 700
    copy.rename(node.directory)


# --- export ---------------------------------------------------------------------------------------------------------


async def written(node: Node) -> None:
    row = Row(b"text", key=b"\xff\x00", headers={"h": "v"}, priority=7, expires_us=2_000_000_000_000_000)
    await node.append(ORDERS, from_rows([row, Row(b"\xff\xfe")], Stamp(now_us(), os.urandom(16)), limits=Limits()))
    await node.publish(ORDERS, b"2", b"3", b"4")
    await node.publish(ORDERS_1, b"other")
    await node.publish(CARTS, b"plain", sealed=False)


@pytest.mark.parametrize("compacted", [False, True])
async def test_export_writes_arrow_and_parquet_with_partition_and_offset(node, tmp_path, compacted):
    await written(node)
    if compacted:
        await node.compact()
    sealane("export", node.directory, "orders", "--out", tmp_path / "o.arrow")
    sealane("export", node.directory, "orders", "--out", tmp_path / "o.parquet")
    with pa.OSFile(str(tmp_path / "o.arrow")) as source, pa.ipc.open_file(source) as reader:
        arrow = reader.read_all()
    parquet = pa.parquet.read_table(tmp_path / "o.parquet")
    for table in (arrow, parquet):
        assert table.column("partition").to_pylist() == [0] * 5 + [1]
        assert table.column("offset").to_pylist() == [0, 1, 2, 3, 4, 0]
        assert table.column("payload").to_pylist() == [b"text", b"\xff\xfe", b"2", b"3", b"4", b"other"]
        assert table.column("headers").to_pylist()[0] == [("h", "v")]
        assert table.column("priority").to_pylist() == [7, 5, 5, 5, 5, 5]
    assert {path.name for path in tmp_path.iterdir()} == {"data", "o.arrow", "o.parquet"}


async def test_export_writes_json_lines_that_keep_bytes_that_are_not_text(node, tmp_path):
    await written(node)
    sealane("export", node.directory, "default/orders", "--out", tmp_path / "o.jsonl", "--partition", 0)
    lines = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert lines[0]["payload"] == "text"
    assert lines[0]["key_base64"] == "/wA="
    assert lines[0]["headers"] == {"h": "v"}
    assert lines[1]["payload_base64"] == "//4="
    assert [line["offset"] for line in lines] == [0, 1, 2, 3, 4]
    assert len(lines[0]["id"]) == 36


async def test_export_takes_a_range_of_offsets_and_standard_output(node):
    await written(node)
    await node.compact()
    result = sealane("export", node.directory, "orders", "--partition", 0, "--from", 1, "--to", 4, "--out", "-")
    assert [json.loads(line)["offset"] for line in result.stdout.splitlines()] == [1, 2, 3]
    assert "3 messages" in result.stderr


async def test_export_reads_unsealed_topics_without_a_key(node, tmp_path):
    await written(node)
    await node.compact()
    await node.engine.close()
    (node.directory / "master.key").unlink()
    sealane("export", node.directory, "shop/carts", "--out", tmp_path / "c.jsonl")
    assert json.loads((tmp_path / "c.jsonl").read_text())["payload"] == "plain"
    result = sealane("export", node.directory, "orders", "--out", tmp_path / "o.jsonl", code=1)
    assert "is sealed" in result.stderr
    assert "master.key is missing" in result.stderr
    assert not (tmp_path / "o.jsonl").exists()


async def test_export_with_the_wrong_key_says_so(node, tmp_path):
    await written(node)
    await node.engine.close()
    (node.directory / "master.key").unlink()
    other = Node(tmp_path / "other")
    await other.start()
    await other.engine.close()
    (other.directory / "master.key").rename(node.directory / "master.key")
    result = sealane("export", node.directory, "orders", "--out", tmp_path / "o.jsonl", code=1)
    assert "is not the key that sealed the data here" in result.stderr


async def test_export_leaves_damaged_messages_out_and_ends_with_1(node, tmp_path):
    await written(node)
    await node.compact()
    (path,) = (node.directory / "compacted").rglob("*orders*/0.messages.*")
    flip(path, path.stat().st_size // 2)
    result = sealane("export", node.directory, "orders", "--out", tmp_path / "o.jsonl", code=1)
    assert "5 messages are damaged and were left out" in result.stderr
    assert [json.loads(line)["payload"] for line in (tmp_path / "o.jsonl").read_text().splitlines()] == ["other"]


async def test_export_tells_a_missing_compacted_file(node, tmp_path):
    await written(node)
    await node.compact()
    (path,) = (node.directory / "compacted").rglob("*orders*/0.messages.*")
    path.unlink()
    result = sealane("export", node.directory, "orders", "--out", tmp_path / "o.jsonl", code=1)
    assert f"{path} is missing" in result.stderr
    assert not (tmp_path / "o.jsonl").exists()


async def test_export_of_an_unknown_topic_names_those_there_are(node, tmp_path):
    await written(node)
    result = sealane("export", node.directory, "nothing", "--out", tmp_path / "x.arrow", code=1)
    assert "default/orders, shop/carts" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["orders"],
        ["orders", "--out", "x.csv"],
        ["orders", "--out", "x", "--format", "csv"],
        ["orders", "--out", "-", "--format", "arrow"],
        ["orders", "--out", "x.arrow", "--from", "5", "--to", "4"],
        ["orders", "--out", "x.arrow", "--from", "-1"],
        ["a", "b", "c", "--out", "x.arrow"],
    ],
)
def test_bad_usage_ends_with_2(arguments):
    sealane("export", *arguments, code=2)


async def test_a_partition_that_is_not_there_is_bad_usage(node, tmp_path):
    await written(node)
    sealane("export", node.directory, "orders", "--out", tmp_path / "x.arrow", "--partition", 9, code=2)


@pytest.mark.parametrize("command", [[], ["log"], ["log", "inspect"], ["log", "verify"], ["log", "export"]])
def test_help_teaches(command):
    result = run.invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    if len(command) == 2:
        assert f"sealane log {command[1]}" in result.output
        assert "Examples" in result.output


async def test_the_directory_is_only_read(node):
    await written(node)
    await node.compact()
    await node.engine.close()
    before = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in node.directory.rglob("*")}
    sealane("inspect", node.directory, "--records")
    sealane("verify", node.directory)
    sealane("export", node.directory, "orders", "--out", "-")
    after = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in node.directory.rglob("*")}
    assert {path for path in before if path.is_file()} == {path for path in after if path.is_file()}
    assert {p: s for p, s in before.items() if p.is_file()} == {p: s for p, s in after.items() if p.is_file()}


@pytest.fixture
def busy(tmp_path, monkeypatch):
    """A directory whose node compacts while it is being looked at; files are reopened for every read."""
    monkeypatch.setattr("sealane.cli.data_directory._OPEN_FILES_MAX", 1)
    store = SmallStore(DiskFiles(tmp_path / "data"))
    for number in range(4):
        payloads = [b"%d" % number] * 3
        batch = from_payloads(payloads, Stamp(now_us(), os.urandom(16)), limits=Limits())
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


def test_the_command_runs_as_a_program(tmp_path):
    program = "from sealane.cli.main import app; app()"
    arguments = ["log", "inspect", str(tmp_path / "none")]
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
