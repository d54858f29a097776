"""`sealane log export`: the messages of a data directory, in a file."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.integration.log_cli.written import Node, flip, sealane, written


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
