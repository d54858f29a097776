"""The environment variables of the service whose protocol the frames door speaks, for those who come from there.

Their names are so common that other programs may mean something else by them: they count only where that door is open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sealane.server.sources import Given, Origin

ENABLED = "doors.frames.enabled"
VARIABLES = {
    "DELIVERY_MODE": "doors.frames.mode",
    "TCP_PORT": "doors.frames.port",
    "HTTP_PORT": "doors.http.port",
    "MAX_CONSUMERS": "doors.frames.consumers_max",
    "CONSUMER_CHANNEL_BUFFER_SIZE": "doors.frames.consumer_buffer_messages",
}
"""By their names there: the settings that they are here."""


def from_frames_variables(environ: Mapping[str, str]) -> Iterator[Given]:
    """What they say. An empty one is as good as none, as everywhere."""
    for variable, name in VARIABLES.items():
        if environ.get(variable):
            yield Given(name, environ[variable], Origin("environment", variable))
