"""The word to systemd, which waits for it where a unit has `Type=notify`: the node serves."""

from __future__ import annotations

import os
import socket

from sealane.log import get_log

log = get_log("sealane.server")

READY = "READY=1"
VARIABLE = "NOTIFY_SOCKET"
"""Where it listens: a path, or with an @ in front a name without a file."""


def tell_systemd(state: str) -> None:
    """Send it, if there is someone to hear it. A node serves all the same if nobody does."""
    address = os.environ.get(VARIABLE)
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(state.encode(), address)
    except OSError as error:
        log.warning("systemd could not be told", state=state, problem=str(error))
