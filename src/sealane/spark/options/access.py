"""How a job reaches its node: found once, on the driver, and then carried to executors with all that it takes.

Executors run on other machines, where neither the driver's files nor its variables are: what is in them goes along, as
text. An `Access` is therefore as secret as the credentials in it, and shows nothing of them.
"""

from __future__ import annotations

import math
import os
import random
import threading
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec

import sealane
from sealane.client.profiles import Profile
from sealane.client.remote.access import Given, complete
from sealane.client.remote.pem import Pem, PemLike
from sealane.client.sync import SyncLane
from sealane.errors import Closed, DeadlineExceeded, InvalidArgument, SealaneError, Unavailable
from sealane.spark.errors import InvalidOption, NodeUnreachable

ACCESS_OPTIONS = frozenset(
    {"url", "profile", "data", "ca", "certificate", "certificateKey", "key", "token", "retrySeconds"}
)
"""The options that `find_access` reads, as users write them."""
RETRY_SECONDS_DEFAULT = 60.0
"""A node that restarts is back in a few seconds, a machine in a minute."""

CONNECT_SECONDS_MAX = 10.0
REQUEST_SECONDS_MAX = 30.0
ATTEMPT_SECONDS_MIN = 1.0
"""One attempt to connect, and one request, take as long as the job is patient, within these bounds."""
BACK_OFF_SECONDS_MIN = 0.1
BACK_OFF_SECONDS_MAX = 5.0
"""The pause between two attempts doubles from one to the other."""

_ARGUMENTS = {"certificate_key": "certificateKey", "urls": "url"}
"""Options whose names are others in Python."""
_WHERE_FILES_ARE = "files are read on the driver, and need not be on executors"
_NOWHERE = "is not given, and no node was found here; give it, as in sealanes://broker.example:7070, or a profile"

T = TypeVar("T")


class Access(msgspec.Struct, frozen=True):
    """Where the node is, whom to trust there and what to show it, with no file needed; and how patient to be."""

    profile: Profile
    retry_seconds: float = RETRY_SECONDS_DEFAULT
    """How long a node that does not answer is tried again."""


def find_access(options: Mapping[str, str]) -> Access:
    """What the options say, or, where they are silent, what `sealane.connect()` would find. Names in any case.

    Raises `InvalidOption`.
    """
    given = {name.lower(): value for name, value in options.items()}
    retry_seconds = _retry_seconds(given.get("retryseconds"))
    try:
        nodes, found = complete(
            Given(
                given.get("url"),
                profile=given.get("profile"),
                ca=given.get("ca"),
                certificate=given.get("certificate"),
                certificate_key=given.get("certificatekey"),
                key=given.get("key"),
                token=given.get("token"),
                data=given.get("data"),
            )
        )
        profile = Profile(
            nodes.url,
            ca=_text("ca", found.ca),
            certificate=_text("certificate", found.certificate),
            key=_text("certificate_key", found.certificate_key),
            api_key=found.key,
            token=found.token,
        )
    except InvalidArgument as error:
        raise InvalidOption(_ARGUMENTS.get(error.argument, error.argument), error.problem) from None
    except Unavailable:
        raise InvalidOption("url", _NOWHERE) from None
    except SealaneError as error:
        raise InvalidOption("profile", f"{error}; {_WHERE_FILES_ARE}") from None
    return Access(profile, retry_seconds)


def _text(argument: str, given: PemLike | None) -> str | None:
    """The PEM itself."""
    if given is None:
        return None
    try:
        return Pem(argument, given).read().decode()
    except UnicodeDecodeError:
        raise InvalidArgument(argument, "is no PEM text") from None
    except InvalidArgument as error:
        raise InvalidArgument(argument, f"{error.problem}; {_WHERE_FILES_ARE}") from None


def _retry_seconds(given: str | None) -> float:
    if given is None:
        return RETRY_SECONDS_DEFAULT
    try:
        seconds = float(given)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise InvalidOption("retrySeconds", f"{given!r} is not a number of seconds from 0")
    return seconds


# --- lanes ------------------------------------------------------------------------------------------------------------

_lanes: dict[Access, SyncLane] = {}
_opening = threading.Lock()


def lane_of(access: Access) -> SyncLane:
    """This process's lane to the node: one for all threads and for the tasks to come, connected. Nobody closes it but
    the end of the process.

    Raises what `sealane.connect_sync` raises.
    """
    lane = _lanes.get(access)
    if lane is not None and lane.portal.problem is None:
        return lane
    with _opening:
        lane = _lanes.get(access)
        if lane is None or lane.portal.problem is not None:
            lane = _lanes[access] = _connect(access).open()
        return lane


def _connect(access: Access) -> SyncLane:
    profile = access.profile
    return sealane.connect_sync(
        # All is said: nothing of this machine's may come in between.
        profile=Profile(profile.url),
        ca=profile.ca,
        certificate=profile.certificate,
        certificate_key=profile.key,
        key=profile.api_key,
        token=profile.token,
        timeout=max(ATTEMPT_SECONDS_MIN, min(access.retry_seconds, REQUEST_SECONDS_MAX)),
        connect_timeout=max(ATTEMPT_SECONDS_MIN, min(access.retry_seconds, CONNECT_SECONDS_MAX)),
        name="spark",
    )


def close_lanes() -> None:
    """Close what this process has open; who needs a lane then opens another one."""
    with _opening:
        while _lanes:
            _lanes.popitem()[1].close()


def _forget_lanes() -> None:
    """In a forked child: its parent has the connections, and perhaps a thread that held the lock."""
    global _opening
    _lanes.clear()
    _opening = threading.Lock()


os.register_at_fork(after_in_child=_forget_lanes)


def with_retries(
    access: Access, what: str, work: Callable[[SyncLane], T], *, abandoned: threading.Event | None = None
) -> T:
    """What `work` returns, which may be done several times: while the node does not answer, until the access's patience
    is over. Then it raises `NodeUnreachable`, with `what` was to be done. What the node refuses is raised at once.

    No attempt is made any more once `abandoned` is set.
    """
    give_up = time.monotonic() + access.retry_seconds
    abandoned = abandoned or threading.Event()
    pause = BACK_OFF_SECONDS_MIN
    while True:
        try:
            return work(lane_of(access))
        except (Unavailable, DeadlineExceeded, Closed) as error:
            left = give_up - time.monotonic()
            if left <= 0 or abandoned.wait(min(pause * random.uniform(0.5, 1.0), left)):  # noqa: S311 - no secret
                raise NodeUnreachable(access.profile.url, what, access.retry_seconds, str(error)) from error
        pause = min(2 * pause, BACK_OFF_SECONDS_MAX)
