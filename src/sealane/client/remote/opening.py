"""Opening a link: plain, or by TLS to a node that is certainly the one that was meant."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

from sealane.client.remote.addresses import Endpoint
from sealane.client.remote.distrust import is_alert, refused_by_node, untrusted, wrong_name
from sealane.client.remote.link import Link, LinkLost
from sealane.client.remote.tls import HANDSHAKE_SECONDS, SHUTDOWN_SECONDS, ClientTls
from sealane.errors import SealaneError, Unauthenticated


async def open_link(link: Link, endpoint: Endpoint, tls: ClientTls | None = None) -> Link:
    """The link, when its handshake is done. Raises `OSError`, what the node said instead of `Welcome`, and, before
    anything was said to it, `UntrustedNode`.
    """
    try:
        await _connect(link, endpoint, tls)
        await link.welcomed
    except LinkLost as error:
        raise _why_lost(link, endpoint, tls, error) from None
    except BaseException:
        link.abort()
        raise
    return link


async def _connect(link: Link, endpoint: Endpoint, tls: ClientTls | None) -> None:
    options: dict[str, Any] = {}
    if tls is not None:
        options = {
            "ssl": tls.context(),
            "server_hostname": endpoint.name,
            "ssl_handshake_timeout": HANDSHAKE_SECONDS,
            "ssl_shutdown_timeout": SHUTDOWN_SECONDS,
        }
    host, port = endpoint.address
    try:
        await asyncio.get_running_loop().create_connection(lambda: link, host, port, **options)
    except ssl.SSLCertVerificationError as error:
        assert tls is not None
        if wrong_name(error):
            raise untrusted(endpoint, error, tls.has_own_trust, await _names_at(endpoint, tls)) from None
        raise untrusted(endpoint, error, tls.has_own_trust) from None
    except ssl.SSLError as error:
        raise refused_by_node(endpoint, error) from None


async def _names_at(endpoint: Endpoint, tls: ClientTls) -> list[str]:
    """What names the node's certificate is for, if it is one to trust: asked on a connection that says nothing else."""
    host, port = endpoint.address
    try:
        _, writer = await asyncio.open_connection(host, port, ssl=tls.for_looking(), server_hostname=endpoint.name)
    except OSError:
        return []
    try:
        certificate = writer.get_extra_info("peercert") or {}
        return [str(name) for _, name in certificate.get("subjectAltName", ())]
    finally:
        writer.transport.abort()


def _why_lost(link: Link, endpoint: Endpoint, tls: ClientTls | None, error: LinkLost) -> SealaneError:
    """The connection was made, and ended before `Welcome`."""
    if tls is None:
        return LinkLost(f"{error}, without a word from the node (if it wants TLS, write sealanes://)")
    # In TLS 1.3 a node looks at the client's certificate after the client takes the handshake for done.
    if isinstance(link.cause, ssl.SSLError) and is_alert(link.cause):
        return refused_by_node(endpoint, link.cause, tls.own_problem())
    problem = tls.own_problem()
    if problem is not None:
        return Unauthenticated(f"the node at {endpoint} does not take this client's certificate: {problem}")
    return error
