"""Messages in the JSON body of a request to publish."""

from __future__ import annotations

from sealane.doors.http.message_shape import batch_of, read_messages
from sealane.errors import SealaneError
from sealane.message import Limits
from sealane.node.outgoing import Outgoing
from sealane.node.surroundings import Surroundings
from tests.fuzz.target import Target
from tests.fuzz.trees import spoil_json

LIMITS = Limits(payload_bytes_max=2_000, batch_messages_max=50)
OUTGOING = Outgoing(LIMITS, Surroundings(lambda: 1_760_000_000_123_456, bytes))

SEEDS = (
    b'{"payload": "hello"}',
    b'{"payload": "h\xc3\xa9", "key": "42", "headers": {"region": "eu"}, "priority": 7, "ttl": 60, "delay": 0.5}',
    b'{"messages": [{"payload": "one"}, {"payload_base64": "AAEC/w==", "key_base64": "QQ=="}]}',
    b'{"messages": [{"payload": "x", "id": "019a8f5e-7c7a-7d43-a1b2-c3d4e5f60718"}]}',
)


def check(data: bytes) -> bool:
    try:
        messages = read_messages(data)
        batch = batch_of(messages, OUTGOING)
    except SealaneError:
        return False
    assert len(batch) == len(messages) <= LIMITS.batch_messages_max
    assert max(map(len, batch.payloads())) <= LIMITS.payload_bytes_max
    batch.records.validate(full=True)
    return True


TARGET = Target("http_messages", SEEDS, check, spoil_json())
