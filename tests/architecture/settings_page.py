"""Reads docs/settings.md, and the settings and limits that the package really has, in the same shape."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import re
from collections.abc import Iterator

import msgspec

from tests.architecture.source import ROOT, Module, modules

PAGE = ROOT / "docs" / "settings.md"
SETTINGS_CLASS = re.compile(r"(Config|Limits|Settings)$")
FIXED_LIMIT = re.compile(r"[A-Z][A-Z0-9_]*_(MAX|MIN)$")

Value = bool | int | float | str | None
REQUIRED = "required"

UNITS = {
    "KiB": 2**10, "MiB": 2**20, "GiB": 2**30,
    "s": 1, "min": 60, "h": 3600, "days": 86400,
}  # fmt: skip


def value_of(text: str) -> Value:
    """What a default on the page means: `8 MiB`, `30 s`, `100,000`, `on`, `none`; anything else is itself."""
    text = text.strip().strip("`")
    if text in ("on", "off"):
        return text == "on"
    if text == "none":
        return None
    number = re.fullmatch(r"(\d[\d,]*(?:\.\d+)?)(?: ([A-Za-z]+))?", text)
    if not number or (number[2] and number[2] not in UNITS):
        return text
    digits = number[1].replace(",", "")
    return (float(digits) if "." in digits else int(digits)) * UNITS.get(number[2], 1)


def documented(text: str) -> dict[str, dict[str, Value]]:
    """The tables of the page: by the name in backticks in a section's heading, each name with its default.

    A row without a reason is left out, as if it were not there.
    """
    sections: dict[str, dict[str, Value]] = {}
    rows: dict[str, Value] = {}
    for line in text.splitlines():
        if line.startswith("#"):
            name = re.search(r"`([\w.]+)`", line)
            rows = sections.setdefault(name[1], {}) if name else {}
        elif row := re.fullmatch(r"\| `([\w.]+)` \| ([^|]+) \| ([^|]*\S) \|", line.strip()):
            rows[row[1]] = value_of(row[2])
    return sections


def settings_of(settings_class: type) -> dict[str, Value]:
    """Each field with its default; the fields of a group are named `group.field`."""
    return dict(_fields(settings_class, ""))


def _fields(settings_class: type, prefix: str, group: object | None = None) -> Iterator[tuple[str, Value]]:
    """`group` is the instance whose values count, where it is the default of a field."""
    for name, default in _defaults(settings_class):
        value = default if group is None else getattr(group, name)
        if _is_group(value):
            if not SETTINGS_CLASS.search(type(value).__name__):
                yield from _fields(type(value), f"{prefix}{name}.", value)
        elif isinstance(value, tuple | frozenset):
            yield prefix + name, ", ".join(str(item) for item in sorted(value)) or "none"
        else:
            yield prefix + name, value  # type: ignore[misc]  # a scalar by now


def _defaults(settings_class: type) -> Iterator[tuple[str, object]]:
    if dataclasses.is_dataclass(settings_class):
        for field in dataclasses.fields(settings_class):
            if field.default is not dataclasses.MISSING:
                yield field.name, field.default
            elif field.default_factory is not dataclasses.MISSING:
                yield field.name, field.default_factory()
            else:
                yield field.name, REQUIRED
        return
    for item in msgspec.structs.fields(settings_class):
        if item.default is not msgspec.NODEFAULT:
            yield item.name, item.default
        elif item.default_factory is not msgspec.NODEFAULT:
            yield item.name, item.default_factory()
        else:
            yield item.name, REQUIRED


def _is_group(value: object) -> bool:
    return not isinstance(value, type) and (dataclasses.is_dataclass(value) or isinstance(value, msgspec.Struct))


def settings_classes() -> dict[str, type]:
    """Every dataclass or struct of the package whose name ends in Settings, Limits or Config, by its full name."""
    found = {}
    for module in modules():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and SETTINGS_CLASS.search(node.name) and not node.name.startswith("_"):
                loaded = getattr(importlib.import_module(module.name), node.name)
                if dataclasses.is_dataclass(loaded) or issubclass(loaded, msgspec.Struct):
                    found[f"{module.name}.{node.name}"] = loaded
    return found


def fixed_limits(module: Module) -> dict[str, Value]:
    """The public constants of a module that end in `_MAX` or `_MIN`: limits that no setting changes."""
    names = [
        target.id
        for node in module.tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and FIXED_LIMIT.match(target.id)
    ]
    loaded = importlib.import_module(module.name) if names else None
    return {name: getattr(loaded, name) for name in names}
