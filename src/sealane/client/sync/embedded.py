"""The broker inside this process, for threads and scripts."""

from __future__ import annotations

from sealane.client.embedded import embedded
from sealane.client.sync.lane import blocking_opener

embedded_sync = blocking_opener(
    embedded,
    """A broker inside this process, for threads and scripts: `with sealane.embedded_sync("data") as lane:`.

    As `sealane.embedded`, without `await`.
    """,
)
