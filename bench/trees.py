"""Versions of Sealane's code for processes to import: a revision checked out, or a working tree as it is now."""

from __future__ import annotations

import compileall
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.machine import revision
from hatch_build import SOURCE, problem_with_compiling

ROOT = Path(__file__).parents[1]
WORKING_TREE = ("work", ".")


class NoSuchTree(ValueError):
    """A name that is neither a revision nor a checkout."""


@dataclass(frozen=True, slots=True)
class Tree:
    """Code that does not change while it is measured."""

    name: str
    revision: str
    source: Path
    """The directory that has the package `sealane`."""

    def environment(self) -> dict[str, str]:
        """For a process that is to import this tree's package, and for all that it starts."""
        # What PYTHONPATH names comes before what is installed, an editable install's path too.
        return {**os.environ, "PYTHONPATH": str(self.source), "PYTHONSAFEPATH": ""}

    def has(self, package: str) -> bool:
        """Whether a package that was imported is this tree's."""
        return Path(package).resolve() == (self.source / "sealane").resolve()


@contextmanager
def tree(name: str, directory: Path) -> Iterator[Tree]:
    """A revision that git knows, checked out below a directory and removed afterwards; or a copy of a checkout's code.

    `.` and `work` are the working tree that this code is in, with whatever has been changed in it.
    """
    checkout = ROOT if name in WORKING_TREE else Path(name)
    if (checkout / "src" / "sealane").is_dir():
        source = directory / "src"
        shutil.copytree(checkout / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        yield _compiled(Tree(name, revision(checkout), source))
        return
    found = _git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    if found.returncode:
        raise NoSuchTree(f"{name!r} is no revision here, and no directory with src/sealane in it")
    commit = found.stdout.strip()
    place = directory / "tree"
    added = _git("worktree", "add", "--detach", str(place), commit)
    if added.returncode:
        raise RuntimeError(f"git could not check out {name}: {added.stderr.strip()}")
    try:
        yield _compiled(Tree(name, commit[:12], place / "src"))
    finally:
        _git("worktree", "remove", "--force", str(place))


def _compiled(made: Tree) -> Tree:
    """Compile it first: otherwise only the first round would, and what is in C nobody."""
    compileall.compile_dir(made.source, quiet=2)
    if (made.source.parent / SOURCE).exists():
        problem_with_compiling(made.source.parent)  # Without a compiler neither tree has it.
    return made


def _git(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=False, capture_output=True, text=True)


def python(module: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", module, *arguments]
