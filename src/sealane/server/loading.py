"""From file, environment and flags to settings, and to where each value came from."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from sealane.errors import InvalidArgument, InvalidSettings
from sealane.server.frames_variables import ENABLED as FRAMES_ENABLED
from sealane.server.frames_variables import from_frames_variables
from sealane.server.schema import Scalar, place, settings
from sealane.server.settings import ServerSettings
from sealane.server.sources import CONFIG_NAME, Given, Origin, from_environment, from_file, from_flags
from sealane.server.values import NotAllowed, parse

T = TypeVar("T")

_DEFAULT = Origin("default")


@dataclass(frozen=True, slots=True)
class Entry:
    """One setting's value, and where it was written."""

    name: str
    value: Scalar
    origin: Origin


@dataclass(frozen=True, slots=True)
class Loaded:
    settings: ServerSettings
    config: Path | None
    """The file that was read."""
    entries: tuple[Entry, ...]
    """Every setting there is."""


def load(
    *,
    config: Path | None = None,
    environ: Mapping[str, str] | None = None,
    pairs: Iterable[str] = (),
    flags: Iterable[Given] = (),
) -> Loaded:
    """The settings, a later source winning over an earlier one: defaults, file, environment, flags. Where the frames
    door is open, the variables of its document come between the file and the environment of Sealane's own.

    The file is `config`, else that of `SEALANE_CONFIG`, else `sealane.yaml` in the current directory if there is one.
    `pairs` are `name=value`, `flags` those that have an option of their own. Raises `InvalidSettings` with all that is
    wrong, not only the first of it.
    """
    environ = os.environ if environ is None else environ
    path = _config_path(config, environ)
    problems: list[str] = []
    given: dict[str, Given] = {}
    for each in _all_given(path, environ, pairs, flags, problems):
        given[each.name] = each
    if _is_on(FRAMES_ENABLED, given):
        for each in from_frames_variables(environ):
            if each.name not in given or given[each.name].origin.kind == "file":
                given[each.name] = each
    values: dict[str, Scalar] = {}
    for name, setting in settings().items():
        values[name] = setting.default
        if name in given:
            try:
                values[name] = parse(setting, given[name].raw)
            except NotAllowed as error:
                problems.append(f"{name} is {given[name].raw!r} ({given[name].origin}): expected {error}")
    if problems:
        raise InvalidSettings(problems)
    built = _build(ServerSettings, "", values, given, problems)
    if problems or built is None:
        raise InvalidSettings(problems)
    entries = (Entry(name, values[name], given[name].origin if name in given else _DEFAULT) for name in values)
    return Loaded(built, path, tuple(entries))


def _is_on(name: str, given: Mapping[str, Given]) -> bool:
    """Whether a switch is on by what was written; what cannot be read is told elsewhere."""
    try:
        return name in given and parse(settings()[name], given[name].raw) is True
    except NotAllowed:
        return False


def _config_path(config: Path | None, environ: Mapping[str, str]) -> Path | None:
    if config is not None:
        return config
    if environ.get("SEALANE_CONFIG"):
        return Path(environ["SEALANE_CONFIG"])
    return Path(CONFIG_NAME) if Path(CONFIG_NAME).is_file() else None


def _all_given(
    path: Path | None, environ: Mapping[str, str], pairs: Iterable[str], flags: Iterable[Given], problems: list[str]
) -> Iterator[Given]:
    if path is not None:
        yield from from_file(path, problems)
    yield from from_environment(environ, problems)
    yield from from_flags(pairs, problems)
    yield from flags


def _build(
    group: type[T], prefix: str, values: Mapping[str, Scalar], given: Mapping[str, Given], problems: list[str]
) -> T | None:
    """An instance of a group from the values of its settings; None when something in it is wrong."""
    hints = get_type_hints(group)
    arguments: dict[str, Any] = {}
    found = len(problems)
    for field in dataclasses.fields(group):  # type: ignore[arg-type]
        name = place(prefix, field.name)
        if dataclasses.is_dataclass(hints[field.name]):
            arguments[field.name] = _build(hints[field.name], name, values, given, problems)
        else:
            arguments[field.name] = values[name]
    if len(problems) > found:
        return None
    try:
        return group(**arguments)
    except InvalidArgument as error:
        wrote = f" ({given[error.argument].origin})" if error.argument in given else ""
        problems.append(f"{error.argument} {error.problem}{wrote}")
        return None
