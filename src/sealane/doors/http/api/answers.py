"""What is answered: receipts and messages, as JSON or as Arrow, whichever the client accepts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from starlette.requests import Request
from starlette.responses import Response

from sealane.doors.arrow_streams import written
from sealane.doors.http.api.bodies import ARROW, JSON
from sealane.message.schema import ID_TYPE
from sealane.node.message_json import deliveries_json, uuid_text
from sealane.node.pulling.pull import Pulled
from sealane.node.receipts import Receipts

_encode = msgspec.json.Encoder().encode
_RECEIPTS = pa.schema([("id", ID_TYPE), ("partition", pa.int32()), ("offset", pa.int64())])


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(_encode(value), status, headers, media_type=JSON)


def wants_arrow(request: Request) -> bool:
    return ARROW in request.headers.get("accept", "")


def receipts_answer(request: Request, stored: Sequence[Receipts]) -> Response:
    """201, with where each message is, in the order in which they came."""
    if wants_arrow(request):
        return Response(_receipts_arrow(stored), 201, media_type=ARROW)
    return answer({"receipts": receipts_json(stored)}, 201)


def receipts_json(stored: Iterable[Receipts]) -> list[dict[str, Any]]:
    return [
        {"id": uuid_text(identity), "partition": partition, "offset": offset}
        for receipts in stored
        for identity, partition, offset in receipts.places()
    ]


def _receipts_arrow(stored: Iterable[Receipts]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _RECEIPTS) as stream:
        for receipts in stored:
            partitions, offsets = np.empty(len(receipts), np.int32), np.empty(len(receipts), np.int64)
            for share in receipts.shares:
                rows = slice(None) if share.rows is None else share.rows
                partitions[rows] = share.partition
                offsets[rows] = share.offsets
            columns = [receipts.ids, pa.array(partitions), pa.array(offsets)]
            stream.write_batch(pa.RecordBatch.from_arrays(columns, schema=_RECEIPTS))
    return sink.getvalue().to_pybytes()


def pulled_answer(request: Request, pulled: Pulled) -> Response:
    if wants_arrow(request):
        return Response(written(pulled).to_pybytes(), media_type=ARROW)
    deadline = moment(pulled.deadline_us) if pulled.lease is not None else None
    return answer({"lease": pulled.lease, "deadline": deadline, "messages": deliveries_json(pulled.deliveries)})


def moment(time_us: int) -> str:
    """RFC 3339 in UTC, to the microsecond."""
    return datetime.fromtimestamp(time_us / 1e6, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
