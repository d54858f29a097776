"""`sealane key`, `user` and `account`, against a node that authenticates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli.shell import Shell
from tests.integration.server.up import Up


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """Its commands are the administrator's, by the profile in the data directory."""
    with Up(tmp_path_factory.mktemp("node"), insecure=False) as node:
        yield Shell(node.data)


def with_key(shell: Shell, key: str) -> Shell:
    """The same node, asked by whoever has the key."""
    other = Shell(shell.data)
    other.environment["SEALANE_API_KEY"] = key
    return other


def test_a_key_is_made_used_and_revoked(shell: Shell) -> None:
    made = shell.json("key", "create", "sensors", "--allow", "publish:readings*", "--expires", "90d", "--json")
    sensors = with_key(shell, made["key"])
    sensors.text("publish", "readings-1", "21.5")
    refused = sensors.run("publish", "orders", "hello")
    assert refused.returncode == 3
    assert b"may not publish" in refused.stderr

    listed = shell.text("key", "list")
    assert made["id"] in listed
    assert "publish:~/readings*" in listed
    assert made["key"] not in listed

    assert "is revoked" in shell.text("key", "revoke", made["id"])
    assert "revoked" in shell.text("key", "list")
    over = sensors.run("publish", "readings-1", "21.5")
    assert over.returncode == 3
    assert b"not valid here" in over.stderr


def test_a_key_is_shown_once_with_a_word_about_keeping_it(shell: Shell) -> None:
    done = shell.run("key", "create", "billing", "--label", "nightly")
    assert done.returncode == 0, done.stderr
    assert b"slk_" in done.stdout
    assert b"not shown again" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("create", "a b"), "account"),
        (("create", "x", "--allow", "write:orders"), "publish, consume, manage or admin"),
        (("create", "x", "--expires", "soon"), "duration"),
    ],
)
def test_a_key_that_cannot_be_is_bad_usage(shell: Shell, arguments: tuple[str, ...], problem: str) -> None:
    done = shell.run("key", *arguments)
    assert done.returncode == 2
    assert problem in done.stderr.decode()


def test_a_key_that_is_not_there_cannot_be_revoked(shell: Shell) -> None:
    done = shell.run("key", "revoke", "aaaaaaaaaaaa")
    assert done.returncode == 1
    assert b"does not exist" in done.stderr


def test_a_user_is_made_by_a_password_from_standard_input_locked_and_removed(shell: Shell) -> None:
    assert "as manager" in shell.text("user", "create", "anna", "--role", "manager", input=b"correct horse\n")
    assert "active" in shell.text("user", "list")
    shell.text("user", "password", "anna", input=b"another one\n")
    shell.text("user", "lock", "anna")
    (anna,) = shell.json("user", "list", "--json")
    assert anna["locked"] is True
    shell.text("user", "unlock", "anna")
    shell.text("user", "rotate-tokens")
    assert shell.run("user", "remove", "anna").returncode == 2, "nobody is there to say yes"
    shell.text("user", "remove", "anna", "--yes")
    assert shell.json("user", "list", "--json") == []


def test_a_short_password_is_refused_and_not_repeated(shell: Shell) -> None:
    done = shell.run("user", "create", "bert", input=b"canary\n")
    assert done.returncode == 2
    assert b"canary" not in done.stderr + done.stdout


def test_no_password_is_bad_usage(shell: Shell) -> None:
    done = shell.run("user", "create", "bert")
    assert done.returncode == 2
    assert b"standard input" in done.stderr


def test_an_account_is_made_for_who_has_no_credential(shell: Shell) -> None:
    assert "account legacy of default is there, with the roles member" in shell.text("account", "create", "legacy")
    assert shell.json("account", "create", "old.shop", "--role", "producer", "--json")["domain"] == "shop"
    again = shell.run("account", "create", "legacy")
    assert again.returncode == 1
    assert b"sealane account roles" in again.stderr


def test_an_account_is_looked_at_given_roles_disabled_and_enabled(shell: Shell) -> None:
    made = shell.json("key", "create", "etl.shop", "--role", "consumer", "--json")
    etl = with_key(shell, made["key"])
    assert "consume" in shell.text("account", "show", "etl.shop")
    assert "the roles producer" in shell.text("account", "roles", "etl.shop", "producer")
    etl.text("publish", "orders", "hello")
    assert "is disabled" in shell.text("account", "disable", "etl.shop")
    assert etl.run("publish", "orders", "hello").returncode == 3
    assert "is enabled" in shell.text("account", "enable", "etl.shop")
    etl.text("publish", "orders", "hello")
    assert "no role" in shell.text("account", "roles", "etl.shop", "--none")
    assert etl.run("publish", "orders", "hello").returncode == 3
    assert "etl.shop" in shell.text("account", "list")


def test_without_a_running_node_the_data_directory_is_opened(tmp_path: Path) -> None:
    alone = Shell(tmp_path / "data")
    made = alone.json("key", "create", "billing", "--json")
    assert [each["id"] for each in alone.json("key", "list", "--json")] == [made["id"]]
