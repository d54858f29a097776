"""Grants and the audit log by the command line."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from tests.integration.cli.shell import DEADLINE_SECONDS, Shell, close

EXIT_FAILED, EXIT_USAGE = 1, 2


def test_a_grant_is_added_checked_listed_and_removed(shell: Shell) -> None:
    asked = ("grant", "check", "anna", "publish", "shop/orders")
    refused = shell.run(*asked)
    assert (refused.returncode, b"no: anna has no grant" in refused.stdout) == (EXIT_FAILED, True)
    assert shell.text("grant", "add", "anna", "publish", "shop/o*") == "anna may publish shop/o*\n"
    assert "as before" in shell.text("grant", "add", "anna", "publish", "shop/o*")
    assert "by the grant `anna publish shop/o*`" in shell.text(*asked)
    assert shell.json(*asked, "--json")["allowed"] is True
    assert shell.json("grant", "list", "--subject", "anna", "--json") == [
        {"subject": "anna", "action": "publish", "pattern": "shop/o*"}
    ]
    assert "role:admin" in shell.text("grant", "list")
    shell.text("grant", "remove", "anna", "publish", "shop/o*")
    assert shell.json("grant", "list", "--subject", "anna", "--json") == []
    assert shell.run("grant", "remove", "anna", "publish", "shop/o*").returncode == EXIT_FAILED


def test_a_pattern_that_is_none_is_bad_usage_and_says_why(shell: Shell) -> None:
    for pattern, problem in (("orders", b"no slash"), ("a/b/c", b"more than one slash"), ("shop/[a-z]", b"character")):
        refused = shell.run("grant", "add", "anna", "publish", pattern)
        assert (refused.returncode, problem in refused.stderr) == (EXIT_USAGE, True), refused.stderr
    assert shell.run("grant", "add", "anna", "fly", "shop/*").returncode == EXIT_USAGE


def test_the_log_shows_what_was_asked_for(shell: Shell) -> None:
    shell.text("topic", "create", "seen")
    shell.text("topic", "delete", "seen", "--yes")
    events = [entry["event"] for entry in shell.objects("audit", "show", "--event", "topic", "--json")]
    assert events[-2:] == ["topic.create", "topic.delete"]
    (last,) = shell.objects("audit", "show", "--event", "topic", "--last", "1", "--since", "1h", "--json")
    assert (last["event"], last["resource"], last["outcome"]) == ("topic.delete", "default/seen", "ok")
    assert "default/seen" in shell.text("audit", "show", "--principal", last["principal"], "--outcome", "ok")
    assert shell.objects("audit", "show", "--since", "2100-01-01", "--json") == []


def test_the_nodes_log_and_what_was_exported_of_it_are_as_they_were_written(shell: Shell, tmp_path: Path) -> None:
    shell.text("topic", "create", "exported")
    assert "all are as they were written" in shell.text("audit", "verify")
    exported = tmp_path / "audit.jsonl"
    exported.write_text(shell.text("audit", "show", "--last", "0", "--json"))
    assert "all are as they were written" in shell.text("audit", "verify", str(exported))
    assert shell.json("audit", "verify", str(exported), "--json")["findings"] == []


def test_exported_lines_that_were_tampered_with_are_named(shell: Shell, tmp_path: Path) -> None:
    for number in range(3):
        shell.text("topic", "create", f"tampered{number}")
    lines = shell.text("audit", "show", "--last", "0", "--json").splitlines()
    middle = len(lines) // 2
    entry: dict[str, Any] = json.loads(lines[middle])
    number = entry["number"]
    forged = json.dumps({**entry, "principal": "nobody"})
    copies = {
        f"changed: entry {number} was changed": [*lines[:middle], forged, *lines[middle + 1 :]],
        f"removed: entry {number} was removed": [*lines[:middle], *lines[middle + 1 :]],
        f"inserted: an entry {number} too many": [*lines[:middle], forged, *lines[middle:]],
        "reordered: entry": [*lines[:middle], lines[middle + 1], lines[middle], *lines[middle + 2 :]],
        f"changed: line {middle + 1} is not an entry": [*lines[:middle], "{}", *lines[middle + 1 :]],
    }
    for finding, copy in copies.items():
        path = tmp_path / "copy.jsonl"
        path.write_text("\n".join(copy) + "\n")
        found = shell.run("audit", "verify", str(path))
        assert (found.returncode, finding in found.stderr.decode()) == (EXIT_FAILED, True), found.stderr.decode()


def test_following_writes_each_entry_as_a_line_when_it_comes(shell: Shell) -> None:
    begun = len(shell.text("audit", "show", "--last", "0", "--json").splitlines())
    following = shell.start("audit", "follow", "--from", "0", "--event", "topic.create")
    try:
        shell.text("topic", "create", "followed")
        stop = time.monotonic() + DEADLINE_SECONDS
        assert following.stdout is not None
        while (line := json.loads(following.stdout.readline()))["resource"] != "default/followed":
            assert time.monotonic() < stop
        assert line["number"] >= begun
    finally:
        close(following)


def test_the_log_of_a_directory_on_which_no_node_runs_can_be_read_and_verified(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "data")
    shell.text("grant", "add", "anna", "publish", "shop/orders")
    assert "grant.add" in [entry["event"] for entry in shell.objects("audit", "show", "--json")]
    assert "all are as they were written" in shell.text("audit", "verify")


def test_no_directory_is_made_for_a_look_at_its_log(tmp_path: Path) -> None:
    missing = Shell(tmp_path / "missing")
    assert missing.run("audit", "verify").returncode == EXIT_FAILED
    assert not missing.data.exists()
