"""Where settings are written: a YAML file, the environment, flags. Each value keeps its place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sealane.errors import InvalidSettings
from sealane.server.schema import sections, settings, suggestion

if TYPE_CHECKING:
    import yaml

CONFIG_NAME = "sealane.yaml"
PREFIX = "SEALANE_"
OTHER_VARIABLES = frozenset(
    {
        "SEALANE_API_KEY",
        "SEALANE_CA",
        "SEALANE_CONFIG",
        "SEALANE_PROFILE",
        "SEALANE_TOKEN",
        "SEALANE_URL",
    }
)
"""Variables of clients and of the command line, which are not settings of a node."""
PIPELINE = "SEALANE_PIPELINE__"
"""How those of the pipeline begin, which may run beside a node."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value was written: `place` is a file with its line, a variable or a flag."""

    kind: Literal["default", "file", "environment", "flag"]
    place: str = ""

    def __str__(self) -> str:
        return self.place or self.kind


@dataclass(frozen=True, slots=True)
class Given:
    """A value that somebody wrote for a setting that exists, as they wrote it."""

    name: str
    raw: object
    origin: Origin


def from_environment(environ: Mapping[str, str], problems: list[str]) -> Iterator[Given]:
    """What `SEALANE_…` variables say. An empty one is as good as none, since some tools cannot leave one out."""
    variables = {setting.variable: name for name, setting in settings().items()}
    for variable in sorted(environ):
        if not variable.startswith(PREFIX) or not environ[variable]:
            continue
        if variable in OTHER_VARIABLES or variable.startswith(PIPELINE):
            continue
        if variable in variables:
            yield Given(variables[variable], environ[variable], Origin("environment", variable))
            continue
        name = variable.removeprefix(PREFIX).lower().replace("__", ".")
        near = suggestion(name)
        likely = settings()[near].variable if near is not None and near in settings() else None
        problems.append(f"{variable}: there is no such setting{_did_you_mean(likely)}")


def from_flags(pairs: Iterable[str], problems: list[str]) -> Iterator[Given]:
    """What `--set name=value` says."""
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            problems.append(f"--set {pair}: expected name=value, such as --set doors.http.port=8081")
        elif name not in settings():
            problems.append(f"--set {pair}: {unknown(name)}")
        else:
            yield Given(name, value, Origin("flag", f"--set {name}"))


def from_file(path: Path, problems: list[str]) -> Iterator[Given]:
    """What a YAML file says, with the line of each value. Raises `InvalidSettings` if it cannot be read at all."""
    try:
        import yaml
    except ImportError:
        raise InvalidSettings(
            [f"{path} cannot be read without PyYAML; install it with: pip install 'sealane[server]'"]
        ) from None
    try:
        loader = yaml.SafeLoader(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InvalidSettings([f"{path}: cannot be read: {reason}"]) from None
    try:
        node = loader.get_single_node()
        if node is not None and not _is_nothing(node):
            yield from _YamlFile(path, loader, problems).section("", node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        raise InvalidSettings([f"{where}: this is not YAML: {error.problem or error.context}"]) from None
    finally:
        loader.dispose()


def unknown(name: str) -> str:
    """That a setting does not exist, and which one may have been meant."""
    if name in sections():
        return f"{name!r} is a section; name a setting in it"
    return f"there is no setting {name!r}{_did_you_mean(suggestion(name))}"


def _did_you_mean(name: str | None) -> str:
    return f"; did you mean {name}?" if name else "; `sealane config show` lists them all"


def _is_nothing(node: yaml.Node) -> bool:
    return bool(node.tag == "tag:yaml.org,2002:null")


class _YamlFile:
    def __init__(self, path: Path, loader: yaml.SafeLoader, problems: list[str]) -> None:
        self._path = path
        self._loader = loader
        self._problems = problems

    def section(self, prefix: str, node: Any) -> Iterator[Given]:
        import yaml

        if not isinstance(node, yaml.MappingNode):
            self._problem(node, f"{prefix or 'the file'} is a section: expected names with values below it")
            return
        seen: set[str] = set()
        for key, value in node.value:
            word = key.value if isinstance(key, yaml.ScalarNode) else "?"
            name = f"{prefix}.{word}" if prefix else word
            if name in seen:
                self._problem(key, f"{name} is written twice")
            elif name in settings():
                yield from self._value(name, value)
            elif name in sections():
                if not _is_nothing(value):
                    yield from self.section(name, value)
            else:
                self._problem(key, unknown(name))
            seen.add(name)

    def _value(self, name: str, node: Any) -> Iterator[Given]:
        import yaml

        if isinstance(node, yaml.ScalarNode):
            raw = self._loader.construct_object(node)
            yield Given(name, raw, Origin("file", self._place(node)))
        else:
            self._problem(node, f"{name} takes one value, not a list or a section")

    def _problem(self, node: Any, problem: str) -> None:
        self._problems.append(f"{self._place(node)}: {problem}")

    def _place(self, node: Any) -> str:
        return f"{self._path}:{node.start_mark.line + 1}"
