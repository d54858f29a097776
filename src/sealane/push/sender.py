"""One request to a receiver, from its bytes to an answer, within its time.

Nothing of an answer but its status and `Retry-After` is of interest: redirects are not followed and bodies are dropped.
Nothing in the environment, such as a proxy, has a say in where a request goes.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import cast

import httpcore

from sealane._version import __version__
from sealane.node.webhooks.endpoints import Endpoint
from sealane.node.webhooks.hosts import AllowedHosts
from sealane.node.webhooks.verdicts import Answer
from sealane.push.network import CheckedNetwork, Resolve, loopback_and_listed, public_or_listed

RESPONSE_BYTES_MAX = 64 * 1024
"""Of an answer's body that is read and dropped; the connection of a longer one is closed instead of used again."""
CONNECT_SECONDS = 5.0
"""A receiver that cannot be connected to in this time is not there."""
REST_SECONDS = 1.0
"""Once the answer is known: how long its body may take, so that the connection can be used again."""
IDLE_SECONDS = 30.0
"""How long a connection is kept that nobody uses."""


class NoAnswer(Exception):
    """There was none. The text says why, for people."""


class NoAnswerInTime(NoAnswer):
    """The receiver took too long."""


class Sender:
    """One for all webhooks of a node; each has at most one request under way."""

    def __init__(self, hosts: AllowedHosts, resolve: Resolve, trust: ssl.SSLContext) -> None:
        self._https = self._pool(CheckedNetwork(resolve, public_or_listed(hosts)), trust)
        # Another pool, since a connection does not know the scheme that it is for.
        self._http = self._pool(CheckedNetwork(resolve, loopback_and_listed(hosts)), trust)

    @staticmethod
    def _pool(network: CheckedNetwork, trust: ssl.SSLContext) -> httpcore.AsyncConnectionPool:
        return httpcore.AsyncConnectionPool(
            trust, max_connections=None, keepalive_expiry=IDLE_SECONDS, network_backend=network
        )

    async def close(self) -> None:
        await self._https.aclose()
        await self._http.aclose()

    async def post(self, endpoint: Endpoint, headers: dict[str, str], body: bytes, seconds: float) -> Answer:
        """Raises `NoAnswer`, and `WebhookRefused` if no address of the host may be connected to."""
        try:
            async with asyncio.timeout(seconds) as whole:
                return await self._post(endpoint, headers, body, seconds, whole)
        except httpcore.ConnectTimeout:
            limit = min(CONNECT_SECONDS, seconds)
            raise NoAnswerInTime(f"the receiver could not be connected to within {limit:g} s") from None
        except (TimeoutError, httpcore.TimeoutException):
            raise NoAnswerInTime(f"the receiver did not answer within {seconds:g} s") from None
        except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as error:
            raise NoAnswer(f"the receiver cannot be reached: {_said(error)}") from None

    async def _post(
        self, endpoint: Endpoint, headers: dict[str, str], body: bytes, seconds: float, whole: asyncio.Timeout
    ) -> Answer:
        pool = self._https if endpoint.scheme == "https" else self._http
        url = httpcore.URL(scheme=endpoint.scheme, host=str(endpoint.host), port=endpoint.port, target=endpoint.target)
        every = {
            **headers,
            "host": endpoint.authority,
            "user-agent": f"sealane/{__version__}",
            "content-type": "application/json",
            "content-length": str(len(body)),
        }
        times = {"connect": min(CONNECT_SECONDS, seconds), "write": seconds, "read": seconds, "pool": seconds}
        async with pool.stream(
            "POST", url, headers=list(every.items()), content=body, extensions={"timeout": times}
        ) as response:
            whole.reschedule(None)  # The answer is here; nothing that follows makes it late.
            with suppress(OSError, httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError):
                async with asyncio.timeout(REST_SECONDS):
                    await _drop(response)
            return Answer(response.status, _header(response, b"retry-after"))


async def _drop(response: httpcore.Response) -> None:
    """Read the body to its end, if that is near. A connection whose body was not read is closed."""
    nbytes = 0
    stream = cast("AsyncGenerator[bytes, None]", response.aiter_stream())
    async with aclosing(stream) as pieces:
        async for piece in pieces:
            nbytes += len(piece)
            if nbytes > RESPONSE_BYTES_MAX:
                return


def _header(response: httpcore.Response, name: bytes) -> str | None:
    return next((value.decode("latin-1") for key, value in response.headers if key.lower() == name), None)


def _said(error: Exception) -> str:
    """What the library, or the system below it, says about it."""
    text = str(error)
    return text if text else type(error).__name__
