"""`sealane publish` and `sealane consume`, through real pipes."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.integration.cli.shell import DEADLINE_SECONDS, Shell, close, write_all


def read_line(descriptor: int) -> bytes:
    """One line of what a process writes, waited for."""
    line = b""
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([descriptor], [], [], DEADLINE_SECONDS)
        assert ready, f"nothing came after {line!r}"
        part = os.read(descriptor, 1)
        assert part, f"it ended after {line!r}"
        line += part
    return line


def test_a_message_goes_in_and_comes_out(shell: Shell) -> None:
    said = shell.text("publish", "hello", "good morning")
    assert said.startswith("published ")
    assert said.endswith("to hello: partition 0, offset 0\n")

    assert shell.text("consume", "hello", "--subscription", "s") == "good morning\n"
    assert shell.text("consume", "hello", "--subscription", "s") == ""


def test_everything_about_a_message_can_be_said_and_is_shown(shell: Shell) -> None:
    options = ["--key", "k", "--header", "region=eu", "-H", "a=b=c", "--priority", "8", "--ttl", "1h"]
    identity = "01234567-89ab-7cde-8123-456789abcdef"
    (receipt,) = shell.objects("publish", "full", "-", *options, "--id", identity, "--json", input=b"\xff\x00")
    assert receipt == {"id": identity, "partition": 0, "offset": 0}
    again = shell.objects("publish", "full", "-", *options, "--id", identity, "--json", input=b"\xff\x00")
    assert again == [receipt], "a repeated id is stored once"

    (message,) = shell.objects("consume", "full", "-s", "s", "--json")
    assert message.pop("created").startswith("20")
    assert message == {
        "id": identity,
        "payload_base64": "/wA=",
        "key": "k",
        "headers": {"region": "eu", "a": "b=c"},
        "priority": 8,
        "attempt": 1,
        "partition": 0,
        "offset": 0,
    }


def test_lines_become_messages_in_order_and_are_acknowledged_before_the_end(shell: Shell, tmp_path: Path) -> None:
    lines = b"".join(b"line %d\n" % number for number in range(12_000))
    file = tmp_path / "lines.txt"
    file.write_bytes(lines)

    assert "published 12,000 messages to many" in shell.text("publish", "many", "--lines", "--file", str(file))
    assert shell.run("consume", "many", "-s", "s").stdout == lines
    assert shell.depth("many", "s") == 0


def test_lines_are_published_as_they_come(shell: Shell) -> None:
    shell.text("topic", "create", "live")
    publishing = shell.start("publish", "live", "--lines", stdin=subprocess.PIPE)
    following = shell.start("consume", "live", "-s", "s", "--follow")
    try:
        assert publishing.stdin is not None
        assert following.stdout is not None
        for word in (b"one\n", b"two\n"):
            write_all(publishing.stdin.fileno(), word)
            assert read_line(following.stdout.fileno()) == word
        publishing.stdin.close()
        assert publishing.wait(DEADLINE_SECONDS) == 0
        following.send_signal(signal.SIGINT)
        assert following.wait(DEADLINE_SECONDS) == 130
        assert following.stderr is not None
        assert following.stderr.read() == b""
        assert shell.depth("live", "s") == 0, "what was written is acknowledged, also after Ctrl-C"
    finally:
        close(publishing)
        close(following)


def test_what_one_node_gave_another_takes(shell: Shell) -> None:
    objects = [
        {"payload": "text", "key": "k", "headers": {"a": "b"}, "priority": 2},
        {"payload_base64": "/w=="},
        {"payload": "mine", "id": "01234567-89ab-7cde-8123-456789abcdef"},
    ]
    lines = "\n\n".join(json.dumps(each) for each in objects).encode()
    receipts = shell.objects("publish", "first", "--jsonl", "--json", input=lines)
    assert [receipt["offset"] for receipt in receipts] == [0, 1, 2]

    consumed = shell.text("consume", "first", "-s", "s", "--json").encode()
    shell.text("publish", "second", "--jsonl", input=consumed)
    copied = shell.objects("consume", "second", "-s", "s", "--json")
    originals = [json.loads(line) for line in consumed.splitlines()]
    told = ("id", "payload", "payload_base64", "key", "headers", "priority")
    assert sorted(str([each.get(name) for name in told]) for each in copied) == sorted(
        str([each.get(name) for name in told]) for each in originals
    )
    assert sorted(each.get("payload", "") for each in copied) == ["", "mine", "text"]


def test_a_line_that_is_refused_is_named_and_those_before_it_are_stored(shell: Shell) -> None:
    lines = b'{"payload": "one"}\n\n{"payload": "two"}\n{"payload": "three", "priority": 11}\n{"payload": "four"}\n'
    done = shell.run("publish", "strict", "--jsonl", input=lines)

    assert done.returncode == 1
    problem = done.stderr.decode()
    assert "line 4: priority is 11" in problem
    assert "the 2 messages before it are published" in problem
    assert shell.text("consume", "strict", "-s", "s") == "one\ntwo\n"


def test_a_payload_over_the_limit_is_refused_with_the_limit(shell: Shell) -> None:
    for arguments in (["-"], ["--lines"]):
        done = shell.run("publish", "small", *arguments, input=b"x" * (1024 * 1024 + 1))
        assert done.returncode == 1
        assert b"the limit is 1,048,576" in done.stderr


def test_a_payload_can_be_repeated(shell: Shell) -> None:
    assert "published 2,500 messages" in shell.text("publish", "again", "x", "--count", "2500")
    assert shell.run("consume", "again", "-s", "s", "--raw").stdout == b"x" * 2500


def test_reading_ends_at_the_count_and_the_rest_stays(shell: Shell) -> None:
    shell.text("publish", "counted", "--lines", input=b"1\n2\n3\n4\n5\n")

    assert shell.text("consume", "counted", "-s", "s", "--count", "2") == "1\n2\n"
    assert shell.depth("counted", "s") == 3
    assert [each["attempt"] for each in shell.objects("consume", "counted", "-s", "s", "--json")] == [1, 1, 1]


def test_a_reader_that_leaves_early_gets_no_more_than_it_was_written(shell: Shell) -> None:
    shell.text("publish", "headed", "--lines", input=b"".join(b"%d\n" % number for number in range(5_000)))
    consuming = shell.start("consume", "headed", "-s", "s")
    try:
        assert consuming.stdout is not None
        assert consuming.stderr is not None
        assert read_line(consuming.stdout.fileno()) == b"0\n"
        consuming.stdout.close()
        assert consuming.wait(DEADLINE_SECONDS) == 0
        assert consuming.stderr.read() == b""
    finally:
        close(consuming)
    rest = shell.objects("consume", "headed", "-s", "s", "--json")
    assert 0 < len(rest) < 5_000
    assert [int(each["payload"]) for each in rest] == list(range(5_000 - len(rest), 5_000))
    assert {each["attempt"] for each in rest} == {1}, "what went back unread is no failed attempt"


def test_a_pager_that_waits_loses_no_lease_and_ctrl_c_is_heard_meanwhile(shell: Shell) -> None:
    line = b"x" * 2_000 + b"\n"
    shell.text("publish", "paged", "--lines", input=line * 300)
    consuming = shell.start("consume", "paged", "-s", "s", "--lease", "4s")
    following = shell.start("consume", "paged", "-s", "t", "--follow")
    try:
        assert consuming.stdout is not None
        assert following.stdout is not None
        assert read_line(consuming.stdout.fileno()) == line
        assert read_line(following.stdout.fileno()) == line
        # The pipes are full now. The first reader takes longer than a lease lasts, so time itself is what is waited
        # for; the second one never comes back.
        time.sleep(6)
        following.send_signal(signal.SIGINT)
        assert following.wait(DEADLINE_SECONDS) == 130
        rest, complaint = consuming.communicate(timeout=DEADLINE_SECONDS)
        assert (rest, complaint) == (line * 299, b"")
    finally:
        close(consuming)
        close(following)
    assert shell.depth("paged", "s") == 0
    assert 0 < shell.depth("paged", "t") < 300


def test_ctrl_c_ends_a_publisher_that_waits_for_its_next_line(shell: Shell) -> None:
    publishing = shell.start("publish", "typed", "--lines", stdin=subprocess.PIPE)
    try:
        assert publishing.stdin is not None
        write_all(publishing.stdin.fileno(), b"one\n")
        assert shell.text("consume", "typed", "-s", "s", "--count", "1", "--follow") == "one\n"
        publishing.send_signal(signal.SIGINT)
        assert publishing.wait(DEADLINE_SECONDS) == 130
        assert publishing.stderr is not None
        assert publishing.stderr.read() == b""
    finally:
        close(publishing)


def test_a_filter_chooses_and_a_place_to_start_skips(shell: Shell) -> None:
    lines = b"".join(b'{"payload": "%d", "headers": {"n": "%d"}}\n' % (number, number % 2) for number in range(6))
    shell.text("publish", "chosen", "--jsonl", input=lines)

    assert shell.text("consume", "chosen", "-s", "odd", "--filter", "headers['n'] = '1'") == "1\n3\n5\n"
    assert shell.text("consume", "chosen", "-s", "late", "--start", "0:4") == "4\n5\n"
    assert shell.text("consume", "chosen", "-s", "now", "--start", "latest", "--wait", "0") == ""
    assert shell.text("consume", "chosen", "-s", "all", "--mode", "broadcast", "--count", "6") == "0\n1\n2\n3\n4\n5\n"


def test_peeking_leaves_everything_as_it_is(shell: Shell) -> None:
    shell.text("publish", "seen", "--lines", input=b"1\n2\n3\n")

    assert shell.text("consume", "seen", "--peek", "--count", "2") == "1\n2\n"
    assert shell.json("topic", "show", "seen", "--json")["subscriptions"] == []
    assert shell.text("consume", "seen", "-s", "s", "-n", "1") == "1\n"
    assert shell.text("consume", "seen", "-s", "s", "--peek") == "2\n3\n"
    assert shell.depth("seen", "s") == 2
    assert shell.text("consume", "seen", "--peek", "--start", "latest") == ""
    assert "attempt" not in shell.objects("consume", "seen", "--peek", "--json")[0]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["publish", "t"], "nothing to publish"),
        (["publish", "t", "x", "--lines"], "leave PAYLOAD out"),
        (["publish", "t", "--lines", "--jsonl"], "choose one"),
        (["publish", "t", "x", "--count", "2", "--id", "7"], "--id names one message"),
        (["publish", "t", "x", "--header", "novalue"], "not NAME=VALUE"),
        (["publish", "t", "x", "--ttl", "soon"], "no duration"),
        (["publish", "t", "x", "--priority", "11"], "less than or equal to 10"),
        (["publish", "a b", "x"], "topic name 'a b' refused"),
        (["consume", "t"], "give --subscription"),
        (["consume", "t", "-s", "s", "--json", "--raw"], "choose one"),
        (["consume", "t", "--peek", "--follow"], "--peek"),
        (["consume", "t", "-s", "s", "--filter", "key ~ 1"], "filter 'key ~ 1' refused"),
        (["consume", "t", "-s", "s", "--start", "someday"], "no place to start"),
    ],
)
def test_bad_usage_is_told_with_exit_code_2(shell: Shell, arguments: list[str], problem: str) -> None:
    done = shell.run(*arguments)
    said = " ".join(done.stderr.decode().replace("│", " ").split())
    assert (done.returncode, problem in said) == (2, True), said
    assert "Traceback" not in said
