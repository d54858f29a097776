"""Ways to spoil PEM: mostly the bytes that are inside, which stay soundly wrapped."""

from __future__ import annotations

import base64
import random
import re

from tests.fuzz.mutation import mutate

_BLOCK = re.compile(rb"(-----BEGIN [A-Z ]+-----\n)([A-Za-z0-9+/=\s]*)(-----END [A-Z ]+-----)")


def spoil_pem(data: bytes, choose: random.Random) -> bytes:
    found = _BLOCK.search(data)
    if found is None or choose.random() < 0.2:
        return mutate(data, choose)
    try:
        der = base64.b64decode(found[2])
    except ValueError:
        return mutate(data, choose)
    inside = base64.encodebytes(mutate(der, choose))
    return data[: found.start()] + found[1] + inside + found[3] + data[found.end() :]
