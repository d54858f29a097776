"""The targets, a file each, by its name."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from tests.fuzz.target import Target

NAMES: tuple[str, ...] = tuple(
    sorted(path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith("_"))
)


def load(name: str) -> Target:
    """The target of this name; only what it needs is imported."""
    target = cast("Target", import_module(f"{__name__}.{name}").TARGET)
    assert target.name == name, f"the target in {name}.py calls itself {target.name!r}"
    return target
