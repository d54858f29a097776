"""`sealane log verify`: what of a data directory is damaged, and where."""

from __future__ import annotations

import json

from sealane.engine.local.segment import HEADER_BYTES
from tests.integration.log_cli.written import CARTS, ORDERS, flip, sealane


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
