"""How the place of a field is written, in every format: `$.items[3].price`, and `$` for the payload as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterable

PATH_CHARS_MAX = 200
"""Of a path in an error or a log: names of fields may come from strangers too."""

Step = str | int
ANY = "[*]"
"""Any item of a list, or any value of a map, in the path of something that is not one payload."""


def path_of(steps: Iterable[Step]) -> str:
    """`$`, then `.name` for a field, `[3]` for a place in a list; a name with other characters is quoted."""
    found = "$" + "".join(map(_written, steps))
    return found if len(found) <= PATH_CHARS_MAX else found[: PATH_CHARS_MAX - 1] + "…"


def _written(step: Step) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if step == ANY:
        return ANY
    if step.isascii() and step.replace("-", "_").isidentifier():
        return f".{step}"
    return f"[{json.dumps(step[:PATH_CHARS_MAX])}]"
