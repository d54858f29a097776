"""From a `sealane cipher` command to the door that it means: where it is, and how it is reached."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sealane.cipher.connection import PORT_DEFAULT, Connection, connect
from sealane.cipher.errors import ConnectionLost
from sealane.errors import InvalidArgument, Unauthenticated, UntrustedNode

if TYPE_CHECKING:
    from sealane.client.remote.tls import ClientTls

DOOR = "cipher"
_CONNECTION = "Connection"
_LOOPBACK = "127.0.0.1"

Host = Annotated[
    str | None,
    typer.Option(
        "--host",
        show_default="the node of the data directory",
        rich_help_panel=_CONNECTION,
        help="Where the broker is.",
    ),
]
Port = Annotated[
    int | None,
    typer.Option(
        "--port", min=1, max=65_535, show_default="5672", rich_help_panel=_CONNECTION, help="And its cipher door."
    ),
]
Tls = Annotated[
    bool,
    typer.Option(
        "--tls", rich_help_panel=_CONNECTION, help="Speak TLS, as a door does that is set to (doors.cipher.tls)."
    ),
]
Ca = Annotated[
    Path | None,
    typer.Option(
        "--ca", metavar="FILE", rich_help_panel=_CONNECTION, help="Who may have issued the broker's certificate."
    ),
]
Certificate = Annotated[
    Path | None,
    typer.Option("--certificate", metavar="FILE", rich_help_panel=_CONNECTION, help="Show who is asking, by TLS."),
]
CertificateKey = Annotated[
    Path | None,
    typer.Option(
        "--certificate-key", metavar="FILE", rich_help_panel=_CONNECTION, help="Its key, if that is in another file."
    ),
]


@dataclass(frozen=True)
class CipherDoor:
    """A door to connect to, as often as it takes."""

    address: Callable[[], tuple[str, int]]
    """Asked each time: a node that is started again may be elsewhere. Raises `ConnectionLost` while it is nowhere."""
    tls: ClientTls | None

    async def dial(self) -> Connection:
        """Raises `ConnectionLost`, and what trying again does not mend: `UntrustedNode`, `Unauthenticated`."""
        host, port = self.address()
        try:
            return await connect(host, port, tls=None if self.tls is None else self.tls.context())
        except ssl.SSLError as error:
            raise _why_not_tls(f"{host}:{port}", error) from None


def find_door(
    host: str | None,
    port: int | None,
    data: Path,
    *,
    tls: bool,
    ca: Path | None = None,
    certificate: Path | None = None,
    certificate_key: Path | None = None,
) -> CipherDoor:
    """The door at `host` and `port`, else that of the node which runs on the data directory.

    Raises `Unavailable` if there is none, and `InvalidArgument` for what TLS cannot use.
    """
    if not tls and any((ca, certificate, certificate_key)):
        raise InvalidArgument("--ca, --certificate and --certificate-key", "are of no use without --tls")
    is_given = host is not None or port is not None

    def address() -> tuple[str, int]:
        return (host or _LOOPBACK, port or PORT_DEFAULT) if is_given else _running_on(data)

    address()  # That nobody is there is told at once, and not after the tries of a broker that is away for a moment.
    if not tls:
        return CipherDoor(address, None)
    return CipherDoor(address, _client_tls(None if is_given else data, ca, certificate, certificate_key))


def _running_on(data: Path) -> tuple[str, int]:
    from sealane.client.finding import running_node

    notice = running_node(data)
    if notice is None:
        raise ConnectionLost(f"no node runs on {str(data)!r}: start one with `sealane up`, or give --host and --port")
    address = notice.doors.get(DOOR)
    if address is None:
        hint = "start it with --set doors.cipher.enabled=on, or give --host and --port of another broker"
        raise ConnectionLost(f"the node of {str(data)!r} has no cipher door: {hint}")
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _client_tls(data: Path | None, ca: Path | None, certificate: Path | None, key: Path | None) -> ClientTls:
    """With what is given; else, for the node of a data directory, with what its administrator's profile says."""
    from sealane.client.profiles import ADMIN_PROFILE, read_profile
    from sealane.client.remote.tls import ClientTls

    trusted = ca or os.environ.get("SEALANE_CA")
    if data is not None and certificate is None and os.access(data / ADMIN_PROFILE, os.R_OK):
        profile = read_profile(data / ADMIN_PROFILE)
        return ClientTls(ca=trusted or profile.ca, certificate=profile.certificate, key=profile.key)
    return ClientTls(ca=trusted, certificate=certificate, key=key)


def _why_not_tls(address: str, error: ssl.SSLError) -> Exception:
    from sealane.client.remote.distrust import NOT_TLS

    if isinstance(error, ssl.SSLCertVerificationError):
        hint = "give the node's ca.crt by --ca, and a name or address that its certificate is for by --host"
        return UntrustedNode(address, error.verify_message, hint)
    reason = error.reason or ""
    if reason in NOT_TLS:
        return InvalidArgument("--tls", f"what answers at {address} does not speak TLS; leave it out")
    said = reason.replace("_", " ").lower()
    if "CERTIFICATE" in reason:
        return Unauthenticated(f"{address} does not take this client's certificate: {said}")
    return ConnectionLost(f"TLS with {address} failed: {said or 'for no stated reason'}")
