"""What a node says to a client over the native protocol: whoever a client dials may be hostile too."""

from __future__ import annotations

from typing import Any, get_args

import msgspec

from sealane.client.remote.deliveries import delivery_of, receipts_of, stored_of
from sealane.delivery.history import HISTORY_SCHEMA
from sealane.errors import SealaneError
from sealane.message import Limits, Stamp, from_payloads
from sealane.node.history import History
from sealane.wire import messages as wire
from sealane.wire.errors import ProtocolError
from sealane.wire.faults import error_of, fault_of
from tests.fuzz.conversation import ANSWERS, spoiled_frames
from tests.fuzz.hearing import heard, in_conversation
from tests.fuzz.target import Target

_ASKED_BYTES = 64 << 10
_EVERYTHING = frozenset(get_args(wire.ToClient))
_PUBLISHED = from_payloads([b"x"] * 5, Stamp(1, bytes(16)), limits=Limits())


def check(data: bytes) -> bool:
    client = in_conversation("client")
    client.calls = set(range(1, 64))
    count = 0
    try:
        for message, body in heard(client, data):
            count += 1
            assert type(message) in _EVERYTHING
            _take(message, body)
    except ProtocolError as error:
        client.farewell(error, 0.0)
        return False
    except SealaneError:
        return False
    return count > 0


def _take(message: Any, body: memoryview) -> None:
    """As a lane would: raises `SealaneError` for what no node should say."""
    match message:
        case wire.Deliver():
            delivery = delivery_of(message, body, "workers", 1)
            assert all(len(part.offsets) == len(part.batch) for part in delivery.parts)
        case wire.Browsed():
            stored_of(message.parts, body, Limits(), _ASKED_BYTES)
        case wire.HistoryRead():
            rows = History.of_stream(message.next_entry, body).rows
            assert rows.schema == HISTORY_SCHEMA
            # Moments may be beyond what Python has; all else can be looked at.
            assert len(rows.drop_columns(["time", "until"]).to_pylist()) == len(rows)
        case wire.Published():
            receipts = receipts_of(message.shares, _PUBLISHED)
            assert sum(len(share.offsets) for share in receipts.shares) == len(_PUBLISHED)
        case wire.Refused() | wire.Ended() | wire.Goodbye():
            _check_fault(message)


def _check_fault(told: wire.Refused | wire.Ended | wire.Goodbye) -> None:
    """Whatever a node says went wrong becomes an error that a user can be shown, and that can be told again."""
    error = error_of(told.code, told.text, told.fields)
    assert str(error) == told.text
    msgspec.msgpack.encode(fault_of(error))


TARGET = Target("native_answers", ANSWERS, check, spoiled_frames)
