"""A build compiles what it can, and does not fail for want of a compiler."""

from __future__ import annotations

import shutil
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from hatch_build import COMPILED, SOURCE, problem_with_compiling

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As much of a checkout as is compiled."""
    for name in ("SEALANE_PURE", "CC"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / SOURCE).parent.mkdir(parents=True)
    shutil.copy(ROOT / SOURCE, tmp_path / SOURCE)
    return tmp_path


def test_it_compiles_without_a_warning(
    tree: Path, monkeypatch: pytest.MonkeyPatch, require_service: Callable[[str, bool, str], None]
) -> None:
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    headers = Path(sysconfig.get_path("include"), "Python.h")
    require_service("a C compiler", bool(shutil.which(compiler)) and headers.exists(), "apt-get install gcc libc6-dev")
    monkeypatch.setenv("CC", f"{compiler} -Werror")
    assert problem_with_compiling(tree) is None
    assert (tree / COMPILED).stat().st_size
    assert sorted(path.name for path in (tree / COMPILED).parent.iterdir()) == [COMPILED.name, SOURCE.name]


@pytest.mark.parametrize(
    ("variable", "value", "problem"),
    [
        ("SEALANE_PURE", "1", "SEALANE_PURE is 1"),
        ("CC", "no-such-compiler -O3", "there is no C compiler 'no-such-compiler'"),
        ("CC", "false", "false failed with exit code 1"),
    ],
)
def test_what_speaks_against_it_is_said(
    tree: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, problem: str
) -> None:
    monkeypatch.setenv(variable, value)
    assert problem_with_compiling(tree) == problem
    assert not (tree / COMPILED).exists()


def test_elsewhere_than_on_linux_nothing_is_compiled(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    assert problem_with_compiling(tree) == "it is compiled for CPython on Linux, and this is cpython on darwin"
