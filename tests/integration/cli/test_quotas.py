"""Quotas by the command line."""

from __future__ import annotations

import pytest

from tests.integration.cli.shell import Shell


def refused(shell: Shell, *arguments: str) -> tuple[int, str]:
    done = shell.run(*arguments)
    return done.returncode, done.stderr.decode()


def test_a_quota_is_set_changed_listed_and_removed(shell: Shell) -> None:
    shown = shell.text("quota", "set", "principal", "billing", "--messages", "1,000", "--bytes", "1MB")
    assert shown.splitlines()[-1].split()[:5] == ["principal", "billing", "1,000", "1,000,000", "none"]
    shell.text("quota", "set", "principal", "billing", "--requests", "100", "--messages", "none", "--connections", "3")
    shell.text("quota", "set", "domain", "shop", "--bytes", "64KiB")

    domain, principal = shell.json("quota", "list", "--json")
    assert (domain["scope"], domain["name"], domain["holds"]) == ("domain", "shop", {"bytes": 65_536})
    assert principal["holds"] == {"bytes": 1_000_000, "requests": 100}
    assert principal["set"]["messages_per_second"] == 0
    assert (principal["connections"], principal["connections_max"]) == (0, 3)
    assert [line.split()[:2] for line in shell.text("quota", "list").splitlines()[1:]] == [
        ["domain", "shop"],
        ["principal", "billing"],
    ]
    assert "0 of 3" in shell.text("quota", "show", "principal", "billing")

    shell.text("quota", "remove", "principal", "billing")
    shell.text("quota", "remove", "domain", "shop")
    assert shell.json("quota", "list", "--json") == []
    code, problem = refused(shell, "quota", "remove", "domain", "shop")
    assert (code, "does not exist" in problem) == (1, True)


def test_everyone_sees_what_holds_for_themselves(shell: Shell) -> None:
    principal, domain = shell.json("quota", "show", "--json")
    assert (principal["scope"], principal["name"]) == ("principal", "admin")
    assert (domain["scope"], domain["name"]) == ("domain", "default")
    assert principal["holds"] == {}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("principal", "billing"), "nothing to set"),
        (("principal", "billing", "--messages", "0"), "'0' is no limit"),
        (("principal", "billing", "--messages", "-5"), "'-5' is no limit"),
        (("principal", "billing", "--bytes", "1 parsec"), "is no limit"),
        (("topic", "orders", "--messages", "1"), "topic"),
    ],
)
def test_what_cannot_be_a_quota_is_bad_usage(shell: Shell, arguments: tuple[str, ...], problem: str) -> None:
    code, said = refused(shell, "quota", "set", *arguments)
    assert (code, problem in said) == (2, True), said


def test_a_domain_has_no_connections_of_its_own(shell: Shell) -> None:
    code, problem = refused(shell, "quota", "set", "domain", "shop", "--connections", "1")
    assert (code, "set it for its principals" in problem) == (2, True)


def test_show_wants_a_name(shell: Shell) -> None:
    assert refused(shell, "quota", "show", "principal")[0] == 2
