"""Payloads of JSON that are nested without end, found before they are decoded.

A decoder goes as deep as the program's stack allows, which differs from process to process; what is corrupt must not.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa

from sealane.message.arrow_compute import pc

JSON_DEPTH_MAX = 500
"""Lists and objects within each other in one payload: half of what Python's stack has room for."""

_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|$)', re.DOTALL)
_STEPS = np.zeros(256, dtype=np.int64)
_STEPS[list(b"[{")] = 1
_STEPS[list(b"]}")] = -1


def too_deep(payloads: pa.Array) -> list[int]:
    """The rows whose payload has more than `JSON_DEPTH_MAX` lists and objects within each other."""
    longest = pc.max(pc.binary_length(payloads)).as_py()
    if longest is None or longest <= JSON_DEPTH_MAX:
        return []
    opened = pc.add(pc.count_substring(payloads, "["), pc.count_substring(payloads, "{"))
    many = np.flatnonzero(opened.fill_null(0).to_numpy() > JSON_DEPTH_MAX).tolist()
    return [row for row in many if depth(payloads[row].as_py()) > JSON_DEPTH_MAX]


def depth(payload: bytes) -> int:
    """How many lists and objects are open at once, at most; brackets within texts are none."""
    steps = _STEPS[np.frombuffer(_TEXT.sub(b"", payload), dtype=np.uint8)]
    return int(np.cumsum(steps).max(initial=0))
