"""Connections to receivers are made to addresses that were looked at, and to no others."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from ipaddress import ip_address

import httpcore
import pytest

from sealane.errors import WebhookRefused
from sealane.node.webhooks.endpoints import Address
from sealane.node.webhooks.hosts import AllowedHosts
from sealane.push.network import (
    ADDRESSES_MAX,
    CheckedNetwork,
    Resolve,
    SystemResolver,
    loopback_and_listed,
    public_or_listed,
)


def resolving(*addresses: str) -> Resolve:
    async def resolve(name: str) -> Sequence[Address]:
        return [ip_address(each) for each in addresses]

    return resolve


async def connect(network: CheckedNetwork, host: str = "hooks.example") -> str:
    """The address that was connected to: a listener stands at 127.0.0.1."""
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        stream = await network.connect_tcp(host, port, timeout=10)
        address = str(stream.get_extra_info("server_addr")[0])
        await stream.aclose()
        return address
    finally:
        server.close()


async def test_of_several_addresses_those_that_may_not_be_used_are_passed_over() -> None:
    hosts = AllowedHosts.read("hooks.example, 127.0.0.1")
    network = CheckedNetwork(resolving("10.0.0.1", "169.254.169.254", "127.0.0.1"), public_or_listed(hosts))
    assert await connect(network) == "127.0.0.1"


async def test_where_no_address_may_be_used_nothing_is_connected_to() -> None:
    hosts = AllowedHosts.read("hooks.example")
    network = CheckedNetwork(resolving("127.0.0.1", "::1"), public_or_listed(hosts))
    with pytest.raises(WebhookRefused, match="not a public one"):
        await connect(network)


async def test_an_address_in_the_url_is_looked_at_as_one_of_a_name() -> None:
    network = CheckedNetwork(resolving(), public_or_listed(AllowedHosts.read("127.0.0.2")))
    with pytest.raises(WebhookRefused):
        await connect(network, "127.0.0.1")


async def test_plain_http_goes_to_loopback_alone_whatever_is_listed() -> None:
    hosts = AllowedHosts.read("localhost, 127.0.0.0/8, 10.0.0.0/8")
    with pytest.raises(WebhookRefused, match="not of this machine"):
        await connect(CheckedNetwork(resolving("10.0.0.1"), loopback_and_listed(hosts)), "localhost")
    assert await connect(CheckedNetwork(resolving("127.0.0.1"), loopback_and_listed(hosts)), "localhost") == "127.0.0.1"


async def test_the_next_address_is_tried_where_one_does_not_answer() -> None:
    network = CheckedNetwork(
        resolving("127.0.0.3", "127.0.0.1"), public_or_listed(AllowedHosts.read("hooks.example, 127.0.0.0/8"))
    )
    assert await connect(network) == "127.0.0.1"


async def test_of_a_name_with_very_many_addresses_the_first_few_are_tried() -> None:
    many = ["127.0.0.3"] * ADDRESSES_MAX + ["127.0.0.1"]
    network = CheckedNetwork(resolving(*many), public_or_listed(AllowedHosts.read("hooks.example, 127.0.0.0/8")))
    with pytest.raises(httpcore.ConnectError):
        await connect(network)


async def test_a_name_without_an_address_cannot_be_connected_to() -> None:
    async def unknown(name: str) -> Sequence[Address]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    check = public_or_listed(AllowedHosts.read("hooks.example"))
    with pytest.raises(httpcore.ConnectError, match="Name or service not known"):
        await connect(CheckedNetwork(unknown, check))
    with pytest.raises(httpcore.ConnectError, match="no address"):
        await connect(CheckedNetwork(resolving(), check))


async def test_a_name_server_that_does_not_answer_is_given_up() -> None:
    async def silent(name: str) -> Sequence[Address]:
        await asyncio.Event().wait()
        return []

    network = CheckedNetwork(silent, public_or_listed(AllowedHosts.read("hooks.example")))
    with pytest.raises(httpcore.ConnectTimeout):
        await network.connect_tcp("hooks.example", 443, timeout=0.01)


async def test_a_socket_of_this_machine_is_no_receiver() -> None:
    network = CheckedNetwork(resolving(), public_or_listed(AllowedHosts.read("hooks.example")))
    with pytest.raises(WebhookRefused):
        await network.connect_unix_socket("/var/run/docker.sock")


async def test_the_system_is_asked_for_names_on_threads_of_its_own() -> None:
    resolver = SystemResolver()
    try:
        assert ip_address("127.0.0.1") in await resolver("localhost")
    finally:
        resolver.close()
