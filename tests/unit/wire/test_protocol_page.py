"""`docs/protocol.md` says what the code does: every message with its tag and fields, every limit, the example."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from sealane.delivery.config import SubscriptionConfig
from sealane.doors.native.attached import CONSUMERS_MAX, IDENTITY_CHARS_MAX
from sealane.doors.native.commands import TRANSACTION_BATCHES_MAX
from sealane.message import SCHEMA, Limits, decode
from sealane.message.batch import BatchMeta
from sealane.message.schema import ALL_OPTIONAL
from sealane.node.session import PRODUCER_BYTES_MAX
from sealane.wire import messages as wire
from sealane.wire.connection import CALLS_OPEN_MAX, Connection, State
from sealane.wire.faults import CODES
from sealane.wire.frames import ANSWER_HEADER_BYTES_MAX, HEADER_BYTES_MAX, HELLO_BYTES_MAX, new_scratch
from sealane.wire.runs import RUN_OFFSETS_MAX

PAGE = (Path(__file__).parents[3] / "docs" / "protocol.md").read_text()
ROWS = {row[0]: row[1:] for row in re.findall(r"^\| (\d+) \| `([A-Z]\w+)` \|([^|]*)\|", PAGE, re.MULTILINE)}


@pytest.mark.parametrize("kind", get_args(wire.AnyMessage), ids=lambda kind: kind.__name__)
def test_every_message_is_there_with_its_fields_in_order(kind: type[msgspec.Struct]) -> None:
    name, fields = ROWS[str(kind.__struct_config__.tag)]
    assert name == kind.__name__
    assert re.findall(r"`(\w+)`", fields.replace("as in `Attach`", "")) == list(kind.__struct_fields__)


@pytest.mark.parametrize("kind", get_args(wire.AnyMessage), ids=lambda kind: kind.__name__)
def test_fields_that_may_be_left_out_are_told_with_their_default(kind: type[msgspec.Struct]) -> None:
    _, fields = ROWS[str(kind.__struct_config__.tag)]
    optional = len(re.findall(r" = ", fields))
    assert optional == len(kind.__struct_defaults__), fields


def test_there_is_no_message_that_does_not_exist() -> None:
    assert set(ROWS) == {str(kind.__struct_config__.tag) for kind in get_args(wire.AnyMessage)}


def test_the_example_is_a_publish_of_two_messages() -> None:
    listing = re.search(r"```hex\n(.*?)```", PAGE, re.DOTALL)
    assert listing
    data = bytes.fromhex("".join(line.split("#")[0] for line in listing[1].splitlines()))
    node = Connection("node", new_scratch(), 0.0)
    node.state = State.OPEN
    node.get_buffer()[: len(data)] = data
    ((message, body),) = node.received(len(data), 0.0)
    assert message == wire.Publish(1, "orders")
    assert decode(body, limits=Limits()).payloads() == [b"hello", b"world!"]


def test_every_column_is_there_with_its_bit() -> None:
    rows = re.findall(r"^\| (\d) \| `(\w+)` \| [^|]* \| (no|yes)[^|]* \|$", PAGE, re.MULTILINE)
    expected = [(str(bit), name, "yes" if ALL_OPTIONAL >> bit & 1 else "no") for bit, name in enumerate(SCHEMA.names)]
    assert rows == expected
    names = ", ".join(BatchMeta.__struct_fields__)
    said = re.search(r"nil: `\[(.*?)\]`", PAGE, re.DOTALL)
    assert said
    assert re.sub(r" (bool|bytes|int|str)\b|\n", lambda found: " " if found[0] == "\n" else "", said[1]) == names


@pytest.mark.parametrize(
    "limit",
    [
        HELLO_BYTES_MAX,
        HEADER_BYTES_MAX,
        ANSWER_HEADER_BYTES_MAX,
        RUN_OFFSETS_MAX,
        CALLS_OPEN_MAX,
        CONSUMERS_MAX,
        TRANSACTION_BATCHES_MAX,
        IDENTITY_CHARS_MAX,
        PRODUCER_BYTES_MAX,
    ],
)
def test_every_limit_is_told(limit: int) -> None:
    assert f"{limit:,}" in PAGE


def test_every_code_of_the_page_is_one_that_a_node_says() -> None:
    table = PAGE[PAGE.index("| codes | what to do |") :].split("\n\n")[0]
    codes = set(re.findall(r"`([a-z-]+)`", table))
    assert codes <= set(CODES) | {"internal"}
    assert {"topic-not-found", "queue-full", "lease-lost"} <= codes


def test_the_default_configuration_of_a_subscription_is_as_told() -> None:
    default = msgspec.to_builtins(SubscriptionConfig())
    told = re.search(r'by default `(\["queue".*?\]\])`', PAGE, re.DOTALL)
    assert told
    assert msgspec.json.decode(told[1].replace("nil", "null")) == default


def test_the_names_of_the_limits_are_in_their_order() -> None:
    told = re.search(r"`limits` is `\[(.*?)\]`", PAGE, re.DOTALL)
    assert told
    assert told[1].replace("\n", " ").split(", ") == list(wire.LimitsOffer.__struct_fields__)
