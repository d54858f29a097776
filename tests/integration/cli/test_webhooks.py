"""Webhooks by the command line."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.cli.shell import Shell
from tests.integration.server.up import Up

NOBODY_THERE = "http://127.0.0.1:1/hooks"


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    with Up(tmp_path_factory.mktemp("node"), "--set=webhooks.hosts=127.0.0.0/8") as node:
        yield Shell(node.data)


def test_a_webhook_is_made_looked_at_paused_resumed_rotated_and_removed(shell: Shell) -> None:
    shown = shell.text("webhook", "create", "orders", "billing", NOBODY_THERE, "--messages-max", "10")
    assert shown.splitlines()[0].split()[0] == "secret"
    secret = shown.splitlines()[0].split()[1]
    assert secret.startswith("whsec_")

    (listed,) = shell.json("webhook", "list", "--json")
    assert (listed["topic"], listed["subscription"], listed["state"]) == ("default/orders", "billing", "on")
    assert (listed["messages_max"], listed["timeout_seconds"], listed["owner"]) == (10, 15.0, "admin")
    assert shell.text("webhook", "list", "orders").splitlines()[1].split() == [
        *("default/orders", "billing", "on", "closed", "0"),
        NOBODY_THERE,
    ]
    assert "closed, 0 failures in a row" in shell.text("webhook", "show", "orders", "billing")

    assert "is paused" in shell.text("webhook", "pause", "orders", "billing")
    assert shell.json("webhook", "show", "orders", "billing", "--json")["state"] == "paused"
    assert "is on" in shell.text("webhook", "resume", "orders", "billing")

    rotated = shell.text("webhook", "rotate", "orders", "billing", "--keep", "1h")
    assert secret not in rotated
    assert "until" in rotated
    assert "is over" in shell.text("webhook", "rotate", "orders", "billing", "--keep", "0")

    assert "is removed" in shell.text("webhook", "remove", "orders", "billing", "--yes")
    assert shell.json("webhook", "list", "--json") == []
    gone = shell.run("webhook", "show", "orders", "billing")
    assert (gone.returncode, b"webhook 'default/orders:billing' does not exist" in gone.stderr) == (1, True)


def test_its_retries_are_those_of_the_subscription(shell: Shell) -> None:
    options = ("--attempts", "3", "--retry-delay", "2s", "--retry-delay-max", "1m", "--start", "latest")
    made = shell.json("webhook", "create", "parcels", "billing", NOBODY_THERE, *options, "--json")
    assert made["secret"].startswith("whsec_")
    shown = shell.text("subscription", "show", "parcels", "billing")
    assert "exponential from 2s up to 1m, 3 attempts" in shown


@pytest.mark.parametrize(
    ("url", "code", "problem"),
    [
        ("https://hooks.example.com/", 1, "not among the hosts that webhooks.hosts lists"),
        ("http://10.0.0.1/", 1, "webhooks are sent by https"),
        ("hooks.example.com", 2, "no URL such as"),
        ("https://anna:secret@127.0.0.1/", 2, "a user or a password"),
    ],
)
def test_where_nothing_may_go_is_an_error_that_says_why(shell: Shell, url: str, code: int, problem: str) -> None:
    done = shell.run("webhook", "create", "orders", "shipping", url)
    assert (done.returncode, problem in done.stderr.decode()) == (code, True), done.stderr


def test_where_webhooks_are_off_the_error_names_the_setting(tmp_path_factory: pytest.TempPathFactory) -> None:
    with Up(tmp_path_factory.mktemp("off")) as node:
        done = Shell(node.data).run("webhook", "create", "orders", "billing", "https://hooks.example.com/")
    assert done.returncode == 1
    assert b"webhooks are off on this node; list where they may go in webhooks.hosts" in done.stderr
