"""What commands show, and ask."""

from __future__ import annotations

import pytest
import typer

from sealane.cli.output import confirm, plain, show_facts, show_table


def test_a_table_in_a_pipe_has_no_rules_no_colours_and_is_never_cut(capsys: pytest.CaptureFixture[str]) -> None:
    name = "a" * 300
    show_table(["name", ">messages"], [(name, "1,000"), ("b", "7")], empty="nothing")

    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split() == ["name", "messages"]
    assert first.split() == [name, "1,000"]
    assert second == "b".ljust(300) + "  " + "       7"


def test_an_empty_table_is_a_sentence_beside_the_output(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(["name"], [], empty="nothing yet")

    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "nothing yet\n")


def test_brackets_in_values_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    show_facts([("filter", "headers['a'] = '[red]'")])

    assert capsys.readouterr().out == "filter  headers['a'] = '[red]'\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [("plain ä", "plain ä"), ("\x1b[2J", "\\x1b[2J"), ("a\rb\x07", "a\\rb\\x07"), ("a\tb\n", "a\tb\n")],
)
def test_what_would_change_a_terminal_is_spelled_out(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_harm_is_not_done_without_a_yes_where_nobody_can_answer(capsys: pytest.CaptureFixture[str]) -> None:
    confirm("Delete it?", yes=True)
    with pytest.raises(typer.Exit) as ended:
        confirm("Delete it?", yes=False)
    assert ended.value.exit_code == 2
    assert "give --yes" in capsys.readouterr().err
