"""Of an HTTP API that nobody uses any more nothing is left: programs may open and close many nodes."""

from __future__ import annotations

import gc
import weakref

from starlette.datastructures import State

from sealane.doors.http.app import make_direct_api
from sealane.doors.http.watched import Watched, Watching


class Behind:
    """What the API is for: a whole node."""

    def live(self) -> bool:
        return True

    def problems(self) -> list[str]:
        return []

    def metrics(self) -> tuple[bytes, str]:
        return b"", "text/plain"


def made() -> weakref.ref[Behind]:
    """An API that was made, and let go."""
    node = Behind()
    watching = Watching(Watched(node.live, node.problems, node.metrics), metrics_public=True)
    make_direct_api(watching, State({"gate": node, "draining": None}))
    return weakref.ref(node)


def test_what_stands_behind_an_api_is_gone_with_it() -> None:
    node = made()
    gc.collect()
    assert node() is None
