"""URLs as users write them, and the addresses behind names."""

from __future__ import annotations

import os

import pytest

from sealane.client.remote.addresses import PORT_MAX, Address, Endpoint, is_loopback, parse_urls, resolve
from sealane.errors import InvalidArgument


@pytest.mark.parametrize(
    ("urls", "addresses"),
    [
        ("sealane://127.0.0.1:7071", [("127.0.0.1", 7071)]),
        ("sealane://broker.example", [("broker.example", 7070)]),
        ("sealane://broker.example/", [("broker.example", 7070)]),
        (" sealane://a:1 ", [("a", 1)]),
        ("sealane://a:7071,b, c:7072", [("a", 7071), ("b", 7070), ("c", 7072)]),
        ("sealane://[::1]:7071,[fe80:0::1]", [("::1", 7071), ("fe80::1", 7070)]),
        (["sealane://a", "sealane://b:1,c"], [("a", 7070), ("b", 1), ("c", 7070)]),
        (("sealane://a:7070", "sealane://a"), [("a", 7070)]),
        (f"sealane://a:{PORT_MAX}", [("a", PORT_MAX)]),
    ],
)
def test_a_url_names_hosts_and_ports(urls: str | list[str], addresses: list[tuple[str, int]]) -> None:
    assert [tuple(address) for address in parse_urls(urls).addresses] == addresses
    assert not parse_urls(urls).tls


def test_sealanes_asks_for_tls_and_reads_as_it_is_written() -> None:
    nodes = parse_urls(["sealanes://a:7071,b", "sealanes://[::1]"])

    assert nodes.tls
    assert nodes.url == "sealanes://a:7071,b:7070,[::1]:7070"
    assert parse_urls(nodes.url) == nodes


def test_plain_text_and_tls_in_one_lane_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="cannot be mixed"):
        parse_urls(["sealanes://a", "sealane://b"])


@pytest.mark.parametrize(
    ("host", "stays_here"), [("localhost", True), ("127.8.8.8", True), ("::1", True), ("10.0.0.1", False), ("a", False)]
)
def test_what_stays_on_this_machine_is_known(host: str, stays_here: bool) -> None:
    assert is_loopback(host) is stays_here


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("127.0.0.1:7070", "write 'sealane://127.0.0.1:7070'"),
        ("", "no scheme"),
        ("http://a", "scheme 'http' is not known"),
        ("sealane://", "not a host"),
        ("sealane://a,,b", "not a host"),
        ("sealane://a:0", "port '0'"),
        (f"sealane://a:{PORT_MAX + 1}", "from 1 to 65535"),
        ("sealane://a:b", "port 'b'"),
        ("sealane://a:", "port ''"),
        ("sealane://a:٣", "port '٣'"),
        ("sealane://a/topic", "not a host"),
        ("sealane://a?x=1", "not a host"),
        ("sealane://::1", "IPv6 goes in brackets"),
        ("sealane://[::g]", "not an IPv6 address"),
        ("sealane://a b", "not a host"),
        ("sealanes://a b", "not a host"),
    ],
)
def test_what_is_no_url_is_refused_with_what_to_write(url: str, told: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^url: ") as refused:
        parse_urls(url)
    assert told in str(refused.value)


@pytest.mark.parametrize("url", ["sealane://me:secret@host", "sealanes://me:secret@host", "me:secret@host"])
def test_a_password_in_a_url_is_not_repeated(url: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        parse_urls(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("urls", [[], [7070], [None]])
def test_what_is_not_text_is_refused(urls: list) -> None:
    with pytest.raises(InvalidArgument, match=r"^url: "):
        parse_urls(urls)


def test_an_address_reads_as_it_is_written() -> None:
    assert str(Address("::1", 7070)) == "[::1]:7070"
    assert str(Address("a", 1)) == "a:1"


async def test_a_name_becomes_all_of_its_addresses_each_once() -> None:
    found, problems = await resolve([Address("localhost", 7070), Address("127.0.0.1", 7070)], os.urandom)

    assert [endpoint.address for endpoint in found].count(Address("127.0.0.1", 7070)) == 1
    assert {endpoint.address.host for endpoint in found} <= {"127.0.0.1", "::1"}
    assert problems == []


async def test_a_name_that_nobody_knows_is_a_problem_beside_the_addresses_that_are_known() -> None:
    found, problems = await resolve([Address("nobody.invalid", 7070), Address("127.0.0.1", 7071)], os.urandom)

    assert found == [Endpoint(Address("127.0.0.1", 7071), "127.0.0.1")]
    assert len(problems) == 1
    assert "nobody.invalid:7070: the name cannot be resolved" in problems[0]


async def test_the_order_is_random() -> None:
    addresses = [Address("127.0.0.1", port) for port in range(1, 30)]
    orders = {tuple((await resolve(addresses, os.urandom))[0]) for _ in range(3)}
    assert len(orders) == 3
    assert all(sorted(endpoint.address for endpoint in order) == addresses for order in orders)
