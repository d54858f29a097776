"""Batches of plain messages, made, checked and joined without Arrow.

A plain message has a payload and nothing else that its sender chose: its batch has the columns id, payload and created.
Most batches are such, and for a small one Arrow takes longer to build it, or to open it, than anything that is done
with it. It can be known without: two numbers, how many messages and how many bytes of payload, fix its metadata to the
last bit and the place of everything else. Whatever looks otherwise is left to the general way, which reads all that the
format allows and knows how to say what is wrong.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from sealane.message.arrays import OFFSET_MAX
from sealane.message.blocks import BLOCKS
from sealane.message.ids import Stamp, first_id
from sealane.message.limits import Limits
from sealane.message.payloads import compiled, ends, lay_out
from sealane.message.schema import TIME_US_MAX

HEAD_BYTES = 256
"""Prefix and metadata of the Arrow message."""
_LARGE_BYTES = 64 << 10
"""From this length on, memory that is new to the process takes longer to get than to fill."""
_ID_BYTES = 16

# The metadata as Arrow's C++ library, and so pyarrow, writes it: a message of version 5 with a record batch, then its
# length, its list of buffers and its list of field nodes. A test compares it with what pyarrow writes today.
_HEAD = struct.Struct("<40sq24sqq14qq6q")
_MESSAGE = bytes.fromhex("fffffffff800000014000000000000000c0016000600050008000c000c0000000003040018000000")
_RECORD_BATCH = bytes.fromhex("00000a0018000c00040008000a0000008c00000010000000")
_SEVEN_BUFFERS = 7 << 32
_THREE_NODES = 3 << 32
_CLAIMS_AT = 72
_CLAIMS = struct.Struct("<q80xq")
"""The number of rows and, among the buffers, the length of the payloads."""
_TWO_OFFSETS = struct.Struct("<ii")
_TIME = struct.Struct("<Q")


class Plain(NamedTuple):
    """The layout of an Arrow message with plain messages; shared by all that have as many rows and bytes of payload."""

    head: bytes
    rows: int
    nbytes: int
    """What the messages occupy, as of any batch: columns without metadata and padding."""
    payload_bytes: int
    offsets_at: int
    payloads_at: int
    times_at: int
    stop: int


@lru_cache(maxsize=1024)
def plain_layout(rows: int, payload_bytes: int) -> Plain:
    """Where everything is, and prefix and metadata to the last bit as Arrow writes them."""
    ids, offsets, times = _ID_BYTES * rows, 4 * (rows + 1), 8 * rows
    payloads_at = ids + (offsets + 7 & ~7)
    times_at = payloads_at + (payload_bytes + 7 & ~7)
    # Each column begins with its buffer of nulls, which is empty.
    # fmt: off
    head = _HEAD.pack(
        _MESSAGE, times_at + times,
        _RECORD_BATCH, rows,
        _SEVEN_BUFFERS,
        0, 0, 0, ids,
        ids, 0, ids, offsets, payloads_at, payload_bytes,
        times_at, 0, times_at, times,
        _THREE_NODES,
        rows, 0, rows, 0, rows, 0,
    )
    # fmt: on
    begin = HEAD_BYTES
    nbytes = ids + offsets + payload_bytes + times
    return Plain(
        head, rows, nbytes, payload_bytes, begin + ids, begin + payloads_at, begin + times_at, begin + times_at + times
    )


def make_plain(
    stamp: Stamp, payloads: list[bytes] | tuple[bytes, ...], *, payload_bytes_max: int
) -> tuple[memoryview, Plain] | None:
    """The Arrow message of plain messages, at least one and all made at one time, to the last bit as Arrow writes it.

    None if one of their payloads is not `bytes`, or is longer than `payload_bytes_max`, or if all together are more
    than an offset reaches.
    """
    high, start = first_id(stamp)
    made = ends(payloads, payload_bytes_max)
    if made is None:
        return None
    offsets, payload_bytes = made
    plain = plain_layout(len(payloads), payload_bytes)
    whole = BLOCKS.take(plain.stop) if plain.stop >= _LARGE_BYTES else memoryview(bytearray(plain.stop))
    whole[:HEAD_BYTES] = plain.head
    lay_out(whole[HEAD_BYTES:], high, start, offsets, payloads, payload_bytes, stamp.created_us)
    return whole, plain


def check_plain(data: memoryview, limits: Limits) -> Plain | None:
    """What is known of the plain messages in this Arrow message; None: look at it in the general way.

    `data` has the columns id, payload and created. What comes back keeps every rule that the general way checks.
    """
    if len(data) < HEAD_BYTES:
        return None
    rows, payload_bytes = _CLAIMS.unpack_from(data, _CLAIMS_AT)
    if not 1 <= rows <= limits.batch_messages_max or not 0 <= payload_bytes <= OFFSET_MAX:
        return None
    plain = plain_layout(rows, payload_bytes)
    if len(data) != plain.stop or plain.nbytes > limits.batch_bytes_max or bytes(data[:HEAD_BYTES]) != plain.head:
        return None
    return plain if is_sound(data, plain, limits.payload_bytes_max) else None


def join_plain(parts: Sequence[tuple[memoryview, Plain]]) -> tuple[bytes, Plain]:
    """One Arrow message with the messages of several, in their order; together they are as many as one may have."""
    rows = [plain.rows for _, plain in parts]
    starts = list(accumulate([plain.payload_bytes for _, plain in parts], initial=0))
    joined = plain_layout(sum(rows), starts.pop())
    # Offsets begin with a zero, which is there once; each part's go on from where those before it end.
    ends = b"".join([data[plain.offsets_at + 4 : plain.offsets_at + 4 + 4 * plain.rows] for data, plain in parts])
    offsets = np.frombuffer(ends, dtype="<i4") + np.repeat(np.array(starts, dtype="<i4"), rows)
    pieces = [
        joined.head,
        *[data[HEAD_BYTES : plain.offsets_at] for data, plain in parts],
        *(bytes(4), offsets.data, _padding(4 + offsets.nbytes)),
        *[data[plain.payloads_at : plain.payloads_at + plain.payload_bytes] for data, plain in parts],
        _padding(joined.payload_bytes),
        *[data[plain.times_at : plain.stop] for data, plain in parts],
    ]
    return b"".join(pieces), joined


def cut_plain(data: memoryview, plain: Plain, start: int, stop: int) -> tuple[bytes, Plain]:
    """One Arrow message with the messages from `start` to before `stop`, at least one, copied."""
    offsets = np.frombuffer(data, dtype="<i4", count=stop - start + 1, offset=plain.offsets_at + 4 * start)
    first, end = int(offsets[0]), int(offsets[-1])
    part = plain_layout(stop - start, end - first)
    if first:
        offsets = offsets - np.int32(first)
    pieces = (
        *(part.head, data[HEAD_BYTES + _ID_BYTES * start : HEAD_BYTES + _ID_BYTES * stop]),
        *(offsets.data, _padding(offsets.nbytes)),
        *(data[plain.payloads_at + first : plain.payloads_at + end], _padding(end - first)),
        data[plain.times_at + 8 * start : plain.times_at + 8 * stop],
    )
    return b"".join(pieces), part


def plain_payloads(data: memoryview, plain: Plain) -> list[bytes]:
    """The payloads, for a few messages faster than Arrow has them."""
    if plain.rows == 1:
        return [bytes(data[plain.payloads_at : plain.payloads_at + plain.payload_bytes])]
    offsets = struct.unpack_from(f"<{plain.rows + 1}i", data, plain.offsets_at)
    joined = bytes(data[plain.payloads_at : plain.payloads_at + plain.payload_bytes])
    return [joined[start:stop] for start, stop in pairwise(offsets)]


def _padding(length: int) -> bytes:
    return bytes(-length % 8)


def is_sound_in_python(data: memoryview, plain: Plain, payload_bytes_max: int) -> bool:
    """Whether every payload is where it may be and no longer than that, and every time one that there is.

    `data` is as long as its layout says.
    """
    return _offsets_are_sound(data, plain, payload_bytes_max) and _times_are_sound(data, plain)


def is_sound_compiled(data: memoryview, plain: Plain, payload_bytes_max: int) -> bool:
    """The same. Unlike numpy it does not let go of the interpreter, which another thread would give back late."""
    return compiled.is_sound(
        data,
        plain.rows,
        plain.offsets_at,
        plain.times_at,
        plain.payload_bytes,
        payload_bytes_max,
        TIME_US_MAX,
    )


is_sound = is_sound_in_python if compiled is None else is_sound_compiled


def _offsets_are_sound(data: memoryview, plain: Plain, payload_bytes_max: int) -> bool:
    """Whether they go from the first byte of the payloads to the last, never back, in steps within the limit."""
    if plain.rows == 1:
        start, stop = _TWO_OFFSETS.unpack_from(data, plain.offsets_at)
        return start == 0 and stop == plain.payload_bytes and stop <= payload_bytes_max
    offsets = np.frombuffer(data, dtype="<i4", count=plain.rows + 1, offset=plain.offsets_at)
    starts, stops = offsets[:-1], offsets[1:]
    # Compared and not subtracted: a difference may wrap round.
    if offsets[0] != 0 or offsets[-1] != plain.payload_bytes or not (starts <= stops).all():
        return False
    return plain.payload_bytes <= payload_bytes_max or int((stops - starts).max()) <= payload_bytes_max


def _times_are_sound(data: memoryview, plain: Plain) -> bool:
    # Read without a sign, a time before 1970 is larger than any other.
    if _TIME.unpack_from(data, plain.times_at)[0] > TIME_US_MAX:
        return False
    if plain.rows == 1:
        return True
    # A batch is usually made at one time: then what holds for the first holds for all.
    times = bytes(data[plain.times_at :])
    return times == times[:8] * plain.rows or int(np.frombuffer(times, dtype="<u8").max()) <= TIME_US_MAX
