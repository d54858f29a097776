"""The source of the package as the architecture tests see it: names, paths and syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "sealane"


def expect_none(problems: Iterable[str]) -> None:
    """Fail with all of the problems, one a line, if there are any."""
    found = list(problems)
    if found:
        pytest.fail("\n".join(found), pytrace=False)


@dataclass(frozen=True)
class Module:
    """One source file; `name` is dotted, and `is_package` tells an `__init__.py`."""

    name: str
    is_package: bool
    path: Path
    text: str

    @property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, filename=str(self.path))

    @property
    def layer(self) -> str:
        """The part of the package it belongs to; "" for the package's own `__init__.py`."""
        parts = self.name.split(".")
        return parts[1] if len(parts) > 1 else ""


def module_from_text(name: str, text: str, *, is_package: bool = False) -> Module:
    """A module that exists only here, to try a check on."""
    return Module(name, is_package, Path(f"<{name}>"), text)


@cache
def modules() -> tuple[Module, ...]:
    """Every module of the package, in the order of their names."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        found.append(Module(name, is_package, path, path.read_text(encoding="utf-8")))
    return tuple(found)


@dataclass(frozen=True)
class Import:
    """One imported module, or one name of it: `from sealane.message import Batch` is `sealane.message.Batch`."""

    target: str
    line: int
    eager: bool
    """Whether importing the module runs it: not inside a function, nor under TYPE_CHECKING."""


def imports(module: Module) -> list[Import]:
    """Every import statement wherever it stands, those under TYPE_CHECKING and in functions too."""
    found: list[Import] = []

    def visit(node: ast.AST, eager: bool) -> None:
        if isinstance(node, ast.Import):
            found.extend(Import(alias.name, node.lineno, eager) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(module, node)
            found.extend(Import(f"{base}.{alias.name}", node.lineno, eager) for alias in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for statement in node.body:
                visit(statement, False)
            for statement in node.orelse:
                visit(statement, eager)
            return
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            eager = False
        for child in ast.iter_child_nodes(node):
            visit(child, eager)

    visit(module.tree, True)
    return found


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    if not module.is_package:
        parts = parts[:-1]
    parts = parts[: len(parts) - (node.level - 1)]
    return ".".join([*parts, node.module] if node.module else parts)
