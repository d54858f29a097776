"""The help: quick, complete, and with examples that work."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.text import Text

from sealane.cli.main import COMMANDS

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "cli.md"

FILES = ("audit.jsonl", "invoice.pdf", "orders.jsonl", "anna.crt", "anna.key", "ca.crt")
"""What examples read."""
HEAVY = ("pyarrow", "numpy", "cryptography", "fastapi", "uvicorn", "sealane.client", "sealane.engine", "sealane.server")
"""What `sealane --help` and completion have no use for."""


def tree() -> dict[str, Any]:
    """Every command by its words, such as `topic create`."""
    found: dict[str, Any] = {}

    def visit(words: str, command: Any) -> None:
        if hasattr(command, "commands"):
            for name, each in command.commands.items():
                visit(f"{words} {name}".strip(), each)
        else:
            found[words] = command

    for each in COMMANDS:
        visit(each.name, each.load())
    return found


TREE = tree()


def examples_of(command: Any) -> list[str]:
    """The lines of a command's help that call `sealane`, as it is written there."""
    lines = Text.from_markup(command.epilog or "").plain.splitlines()
    lines += (command.help or "").split("Examples:")[1].splitlines() if "Examples:" in (command.help or "") else []
    return [line.strip() for line in lines if "sealane " in line]


def calls_in(line: str) -> Iterator[list[str]]:
    """The arguments of each call of `sealane` in a line of shell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|<>")
    lexer.whitespace_split = True
    words = list(lexer)
    call: list[str] | None = None
    for word in [*words, "|"]:
        if word in ("|", ">", "<"):
            if call is not None:
                yield call
            call = None
        elif call is not None:
            call.append(word)
        elif word == "sealane":
            call = []


def parse(arguments: list[str]) -> None:
    """Let the parser of the command that is meant read its arguments; nothing is run."""
    for count in (2, 1):
        command = TREE.get(" ".join(arguments[:count]))
        if command is not None:
            command.make_context(arguments[0], arguments[count:], resilient_parsing=False)
            return
    raise AssertionError(f"{arguments} names no command")


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], []])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys; from sealane.cli.main import app\n"
        f"try: app({arguments!r})\n"
        f"except SystemExit: print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert shown.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("later", COMMANDS, ids=lambda each: each.name)
def test_the_list_of_commands_says_what_each_says_itself(later: Any) -> None:
    assert (later.load().help or "").replace("\n", " ").startswith(later.summary)


@pytest.mark.parametrize("words", TREE)
def test_every_command_and_option_says_what_it_is_for(words: str) -> None:
    command = TREE[words]
    assert command.help, words
    assert [param.name for param in command.params if not getattr(param, "help", "")] == []


@pytest.mark.parametrize("words", TREE)
def test_every_command_teaches_with_examples_that_parse(words: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    for name in FILES:
        (tmp_path / name).touch()
    lines = examples_of(TREE[words])
    assert lines, f"`sealane {words} --help` has no examples"
    calls = [call for line in lines for call in calls_in(line)]
    assert any(" ".join(call).startswith(words) for call in calls)
    for call in calls:
        parse(call)


def test_an_example_that_does_not_parse_is_found() -> None:
    with pytest.raises(typer.BadParameter.__mro__[1]):
        parse(["publish", "orders", "--no-such-option"])
    assert list(calls_in("tail -f x | sealane publish logs --lines > out")) == [["publish", "logs", "--lines"]]


@pytest.mark.parametrize("words", TREE)
def test_every_command_is_in_the_reference(words: str) -> None:
    assert re.search(rf"`sealane {words}\b", PAGE.read_text(encoding="utf-8")), f"docs/cli.md misses sealane {words}"


def test_every_call_in_the_reference_parses(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    for name in FILES:
        (tmp_path / name).touch()
    blocks = re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    lines = [line.removeprefix("$ ") for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    calls = [call for line in lines for call in calls_in(line)]
    assert calls
    for call in calls:
        if not call[0].startswith("-"):
            parse(call)
