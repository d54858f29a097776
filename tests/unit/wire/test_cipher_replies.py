"""What the node says is one line each, whatever is in it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sealane.wire.cipher import replies
from sealane.wire.cipher.replies import ERROR_CHARS_MAX
from sealane.wire.cipher.strangers import foreign_start, is_http


@given(st.text())
def test_an_error_is_one_line(text: str) -> None:
    line = replies.error(text)

    assert line.startswith(b"Error: ")
    assert len(line.decode().splitlines()) == 1
    assert line.endswith(b"\n")


def test_a_long_error_is_cut() -> None:
    assert len(replies.error("x" * 100_000).decode()) == len("Error: \n") + ERROR_CHARS_MAX


def test_each_message_of_a_batch_has_a_line() -> None:
    assert replies.acknowledged(["a", "b"]) == b"ACK a\nACK b\n"


def test_those_who_speak_another_protocol_are_known() -> None:
    assert foreign_start(b"AMQP\x00\x00\x09\x01") == "AMQP"
    assert foreign_start(b"\x16\x03\x01\x02") == "TLS"
    assert foreign_start(b"declare_queue q\n") is None
    assert is_http(b"POST / HTTP/1.1\r")
    assert is_http(b"GET /")
    assert not is_http(b"GETTING")
    assert not is_http(b"publish ex k {}")
