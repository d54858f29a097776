"""The http door: health, readiness and metrics for those who watch a node."""

from sealane.doors.http.door import HttpDoor
from sealane.doors.http.settings import HttpDoorSettings

__all__ = ["HttpDoor", "HttpDoorSettings"]
