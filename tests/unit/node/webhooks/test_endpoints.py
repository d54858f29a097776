"""Where a webhook may point: a URL is read in one way or refused."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest

from sealane.errors import InvalidArgument
from sealane.node.webhooks.endpoints import HOST_CHARS_MAX, URL_CHARS_MAX, Endpoint, read_host, read_url


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("https://hooks.example.com/orders", Endpoint("https", "hooks.example.com", 443, "/orders")),
        ("https://hooks.example.com", Endpoint("https", "hooks.example.com", 443, "/")),
        ("HTTPS://Hooks.Example.COM:8443/a?b=c/d?e", Endpoint("https", "hooks.example.com", 8443, "/a?b=c/d?e")),
        ("https://hooks.example.com?token=1", Endpoint("https", "hooks.example.com", 443, "/?token=1")),
        ("https://hooks.example.com./x", Endpoint("https", "hooks.example.com", 443, "/x")),
        ("https://xn--bcher-kva.example/", Endpoint("https", "xn--bcher-kva.example", 443, "/")),
        ("https://192.0.2.1/", Endpoint("https", IPv4Address("192.0.2.1"), 443, "/")),
        ("https://[2001:DB8::1]:444/", Endpoint("https", IPv6Address("2001:db8::1"), 444, "/")),
        ("http://localhost:9000/", Endpoint("http", "localhost", 9000, "/")),
    ],
)
def test_a_url_is_read_in_its_parts(text: str, endpoint: Endpoint) -> None:
    assert read_url(text) == endpoint


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no URL"),
        ("hooks.example.com/orders", "no URL"),
        ("https:/hooks.example.com", "no URL"),
        ("https:///orders", "no URL"),
        ("ftp://hooks.example.com/", "must be https"),
        ("file:///etc/passwd", "no URL"),
        ("https://user:password@hooks.example.com/", "a user or a password"),
        ("https://hooks.example.com@127.0.0.1/", "a user or a password"),
        ("https://127.0.0.1@hooks.example.com/", "a user or a password"),
        ("https://hooks.example.com%40127.0.0.1/", "no name of a host"),
        ("https://hooks.example.com\\@127.0.0.1/", "as %XX only"),
        ("https://hooks.example.com#@127.0.0.1/", "as %XX only"),
        ("https://hooks.example.com/a#b", "as %XX only"),
        ("https://hooks.example.com/a b", "as %XX only"),
        ("https://hooks.example.com/a\r\nx: y", "as %XX only"),
        ("https://hooks.exam\tple.com/", "as %XX only"),
        ("https://hooks.example.com:/", "no host"),
        ("https://hooks.example.com:0/", "no port"),
        ("https://hooks.example.com:65536/", "no port"),
        ("https://hooks.example.com:+80/", "no host"),
        ("https://hooks.example.com:80:90/", "no host"),
        ("https://hooks.example.com../", "no name of a host"),
        ("https://.example.com/", "no name of a host"),
        ("https://-hooks.example.com/", "no name of a host"),
        ("https://hooks_1.example.com/", "no name of a host"),
        ("https://*.example.com/", "no name of a host"),
        ("https://bücher.example/", "xn--"),
        ("https://hooks。example.com/", "xn--"),
        ("https://１２７.0.0.1/", "xn--"),
        ("https://exampⓛe.com/", "xn--"),
        ("https://[::1%25eth0]/", "no host"),
        ("https://[::1/", "no host"),
        ("https://[127.0.0.1]/", "no address of IPv6"),
        ("https://::1/", "no host"),
    ],
)
def test_what_could_be_read_in_two_ways_is_no_url(text: str, problem: str) -> None:
    with pytest.raises(InvalidArgument, match=problem):
        read_url(text)


@pytest.mark.parametrize(
    "text", ["2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "127.1", "127.0.1", "1.2.3.4.5", "256.1.1.1", "0x"]
)
def test_an_address_has_one_form(text: str) -> None:
    with pytest.raises(InvalidArgument, match="ends in a number"):
        read_host(text)


def test_a_dot_at_the_end_of_an_address_makes_no_name_of_it() -> None:
    assert read_host("127.0.0.1.") == IPv4Address("127.0.0.1")


def test_the_length_of_a_url_and_of_a_name_is_bounded() -> None:
    start = "https://hooks.example.com/"
    assert read_url(start + "x" * (URL_CHARS_MAX - len(start))).port == 443
    with pytest.raises(InvalidArgument, match="2,049 characters, the limit is 2,048"):
        read_url(start + "x" * (URL_CHARS_MAX - len(start) + 1))
    longest = ".".join("x" * length for length in (63, 63, 62, 62))
    assert len(longest) == HOST_CHARS_MAX
    assert read_host(longest) == longest
    for too_long in (longest + "x", "x" * 64):
        with pytest.raises(InvalidArgument, match="no name of a host"):
            read_host(too_long)


def test_a_refused_url_is_not_repeated() -> None:
    with pytest.raises(InvalidArgument) as refusal:
        read_url("https://user:hunter2@hooks.example.com/")
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "authority"),
    [
        ("https://Hooks.Example.com/", "hooks.example.com"),
        ("https://hooks.example.com:443/", "hooks.example.com"),
        ("https://hooks.example.com:80/", "hooks.example.com:80"),
        ("https://[2001:db8::1]:8443/", "[2001:db8::1]:8443"),
    ],
)
def test_what_is_sent_as_host(text: str, authority: str) -> None:
    assert read_url(text).authority == authority
