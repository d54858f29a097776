"""Which hosts and addresses webhooks may be sent to."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from sealane.errors import InvalidArgument, WebhookRefused
from sealane.node.webhooks.endpoints import read_url
from sealane.node.webhooks.hosts import AllowedHosts, is_loopback, is_public
from sealane.node.webhooks.settings import WebhookSettings

LISTED = AllowedHosts.read("hooks.example.com, *.partner.example, 10.1.0.0/16, 192.0.2.7, fd00:1::/64")


def host_is_listed(url: str, hosts: AllowedHosts = LISTED) -> bool:
    try:
        hosts.check_host(read_url(url).host)
    except WebhookRefused:
        return False
    return True


@pytest.mark.parametrize(
    ("url", "listed"),
    [
        ("https://hooks.example.com/", True),
        ("https://HOOKS.example.com./", True),
        ("https://example.com/", False),
        ("https://evil.hooks.example.com/", False),
        ("https://hooks.example.com.evil.example/", False),
        ("https://evilhooks.example.com/", False),
        ("https://a.partner.example/", True),
        ("https://a.b.partner.example/", True),
        ("https://partner.example/", False),
        ("https://evilpartner.example/", False),
        ("https://10.1.2.3/", True),
        ("https://10.2.2.3/", False),
        ("https://192.0.2.7/", True),
        ("https://192.0.2.8/", False),
        ("https://[::ffff:10.1.2.3]/", True),
        ("https://[::ffff:10.2.2.3]/", False),
        ("https://[fd00:1::5]/", True),
        ("https://[fd00:2::5]/", False),
        ("https://8.8.8.8/", False),
        ("https://localhost/", False),
        ("https://127.0.0.1/", False),
    ],
)
def test_a_host_must_be_listed(url: str, listed: bool) -> None:
    assert host_is_listed(url) is listed


@pytest.mark.parametrize("text", [None, "", " , "])
def test_with_nothing_listed_webhooks_are_off_and_it_is_said_what_to_change(text: str | None) -> None:
    hosts = AllowedHosts.read(text)
    assert not hosts
    with pytest.raises(WebhookRefused, match=r"webhooks are off on this node; .* webhooks\.hosts"):
        hosts.check_host("hooks.example.com")


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.255.255.254",
        "0.0.0.0",
        "0.1.2.3",
        "10.2.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "192.0.2.1",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::ffff:0:127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1",
        "2002:7f00:1::",
        "2002:808:808::1",
        "2001:0:53aa:64c:0:0:80ff:fffe",
        "2001:db8::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
    ],
)
def test_an_address_inside_a_network_is_refused_whatever_the_name(address: str) -> None:
    assert not is_public(ip_address(address))
    with pytest.raises(WebhookRefused, match="not a public one"):
        LISTED.check_address("hooks.example.com", ip_address(address))


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "93.184.216.34", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_a_public_address_is_connected_to(address: str) -> None:
    LISTED.check_address("hooks.example.com", ip_address(address))


@pytest.mark.parametrize("address", ["10.1.0.1", "::ffff:10.1.0.1", "192.0.2.7", "fd00:1::9"])
def test_an_address_that_a_network_names_is_connected_to(address: str) -> None:
    LISTED.check_address("hooks.example.com", ip_address(address))


def test_loopback_is_known_in_every_form() -> None:
    assert all(is_loopback(ip_address(each)) for each in ("127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"))
    assert not any(is_loopback(ip_address(each)) for each in ("0.0.0.0", "10.0.0.1", "8.8.8.8", "::"))


@pytest.mark.parametrize(
    "text",
    ["*", "*.", "*.*", "hooks.*", "https://hooks.example.com", "hooks.example.com:443", "10.0.0.1/8", "1.2.3", "a b"],
)
def test_what_lists_nothing_is_refused_at_the_start(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"webhooks\.hosts"):
        WebhookSettings(hosts=f"hooks.example.com, {text}")


def test_settings_of_the_breaker_must_make_sense() -> None:
    with pytest.raises(InvalidArgument, match=r"webhooks\.failures_max"):
        WebhookSettings(failures_max=0)
    with pytest.raises(InvalidArgument, match=r"webhooks\.open_seconds"):
        WebhookSettings(open_seconds=10, open_seconds_max=9)
