"""Habits that a linter does not know."""

from __future__ import annotations

import ast
import io
import re
import tokenize

import pytest

from tests.architecture.source import PACKAGE, ROOT, expect_none, modules

LINES_MAX = 500
"""A file is one idea; beyond this it is at least two."""

EMPTY_NAMES = frozenset({"common", "helper", "helpers", "manager", "misc", "util", "utils"})
"""Names that say nothing about what is inside."""

NOTE = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
OWNED_NOTE = re.compile(r"\bTODO\([\w-]+\): \S+")

PYTHON_FILES = sorted(
    path for folder in ("src", "tests", "bench", "examples") for path in (ROOT / folder).rglob("*.py")
)


def unowned_notes(text: str) -> list[str]:
    """The comments that leave work behind without saying whose it is."""
    comments = (
        token.string for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type == tokenize.COMMENT
    )
    return [comment for comment in comments if NOTE.search(comment) and not OWNED_NOTE.search(comment)]


def test_every_file_is_short_enough_to_be_one_idea() -> None:
    sizes = {module.name: module.text.count("\n") for module in modules()}
    expect_none(f"{name} has {lines} lines, at most {LINES_MAX}" for name, lines in sizes.items() if lines > LINES_MAX)


def test_every_module_says_what_it_is_for() -> None:
    expect_none(f"{module.name} has no docstring" for module in modules() if not ast.get_docstring(module.tree))


def test_every_folder_of_code_is_a_package() -> None:
    folders = {path.parent for path in PACKAGE.rglob("*.py")}
    expect_none(f"{folder} has no __init__.py" for folder in sorted(folders) if not (folder / "__init__.py").exists())


def test_no_module_has_a_name_that_says_nothing() -> None:
    expect_none(
        f"{module.name}: say what it is" for module in modules() if EMPTY_NAMES & set(re.split(r"[._]", module.name))
    )


def test_only_the_command_line_prints() -> None:
    expect_none(
        f"{module.name}:{node.lineno} prints"
        for module in modules()
        if module.layer != "cli"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    )


def test_a_note_about_work_left_names_its_owner() -> None:
    expect_none(
        f"{path.relative_to(ROOT)}: {note}" for path in PYTHON_FILES for note in unowned_notes(path.read_text("utf-8"))
    )


@pytest.mark.parametrize(
    ("text", "is_fine"),
    [
        ("# TODO: later\n", False),
        ("x = 1  # FIXME\n", False),
        ("# TODO(maria): drop with format 2, which nobody can have by then\n", True),
        ("x = 'TODO'\n", True),
    ],
)
def test_the_check_of_notes_bites(text: str, is_fine: bool) -> None:
    assert (unowned_notes(text) == []) is is_fine


def test_files_that_ship_are_where_the_tools_look_for_them() -> None:
    expected = ["LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "constraints.txt", ".ci/run"]
    expect_none(f"{name} is missing" for name in [*expected, "src/sealane/py.typed"] if not (ROOT / name).is_file())


def test_constraints_hold_names_and_versions_only() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert pins
    expect_none(line for line in pins if not re.fullmatch(r"[a-z0-9-]+==[a-z0-9.+!]+", line))
