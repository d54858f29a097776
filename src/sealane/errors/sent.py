"""What a caller sent: messages, names, arguments, settings, schemas."""

from __future__ import annotations

from collections.abc import Sequence

from sealane.errors.base import SealaneError


class InvalidMessage(SealaneError):
    """A message breaks a rule of its own: a field of the wrong type or value."""

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        self.problem = problem
        super().__init__(f"message refused: {field} {problem}")


class LimitExceeded(InvalidMessage):
    """A message or batch is larger than a limit allows; `field`, `limit` and `value` say which, and by how much."""

    def __init__(self, field: str, limit: int, value: int, *, unit: str = "bytes", setting: str | None = None) -> None:
        self.limit = limit
        self.value = value
        self.unit = unit
        self.setting = setting or f"limits.{field}"
        hint = f"; send less, or raise the setting {self.setting}"
        super().__init__(field, f"is {value:,} {unit}, the limit is {limit:,}{hint}")


class InvalidBatch(SealaneError):
    """Bytes or Arrow data that claim to be a message batch are not one; `column` names the part at fault, if known."""

    def __init__(self, problem: str, *, column: str | None = None) -> None:
        self.problem = problem
        self.column = column
        where = f"column {column!r}: " if column else ""
        super().__init__(f"batch refused: {where}{problem}")


class InvalidName(SealaneError):
    """A topic, subscription, exchange or domain name is not allowed."""

    def __init__(self, kind: str, name: str, problem: str) -> None:
        self.kind = kind
        self.name = name
        self.problem = problem
        super().__init__(f"{kind} name {name!r} refused: {problem}")


class InvalidArgument(SealaneError):
    """An option of a call has a value it cannot have; `argument` and `problem` say which and why."""

    def __init__(self, argument: str, problem: str) -> None:
        self.argument = argument
        self.problem = problem
        super().__init__(f"{argument}: {problem}")


class InvalidSettings(SealaneError):
    """What a file, the environment or flags say about a node cannot be; `problems` has a sentence for each."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


class SchemaMismatch(InvalidMessage):
    """A payload does not fit the schema of its topic; nothing of its batch was stored.

    `index` says which message of the batch it is (from 0), `path` which field of it, `version` by which version of the
    schema, `problem` what is expected there. What the payload has instead is told nowhere.
    """

    def __init__(self, topic: str, version: int, index: int, path: str, problem: str) -> None:
        super().__init__(
            "payload",
            f"of message {index} of its batch does not fit version {version} of the schema of {topic!r} at {path}: "
            f"{problem}; nothing of the batch was stored",
        )
        self.topic = topic
        self.version = version
        self.index = index
        self.path = path
        self.problem = problem


class InvalidSchema(SealaneError):
    """What is to be a schema is none, or one that is not taken; `format` and `problem` say which and why."""

    def __init__(self, format: str, problem: str) -> None:
        self.format = format
        self.problem = problem
        super().__init__(f"{format} schema refused: {problem}")


class IncompatibleSchema(SealaneError):
    """A schema is not compatible with the latest version in the way that its topic asks for (`mode`), so it was not
    registered; `problems` has a sentence for each place, which begins with its path.
    """

    def __init__(self, topic: str, mode: str, problems: Sequence[str]) -> None:
        self.topic = topic
        self.mode = mode
        self.problems = tuple(problems)
        super().__init__(
            f"the schema may not follow the latest of {topic!r} (compatibility {mode}): {'; '.join(self.problems)}; "
            "change it, or the topic's compatibility (`sealane schema configure`)"
        )


class MissingExtra(SealaneError):
    """A library that this needs is not installed; `extra` is the part of Sealane that brings it."""

    def __init__(self, what: str, library: str, extra: str) -> None:
        self.what = what
        self.library = library
        self.extra = extra
        super().__init__(f"{what} need {library}, which is not installed: pip install 'sealane[{extra}]'")


class FilterError(SealaneError):
    """A filter expression cannot be understood; `position` is where in the text (from 0)."""

    def __init__(self, expression: str, position: int, problem: str) -> None:
        self.expression = expression
        self.position = position
        self.problem = problem
        super().__init__(f"filter {expression!r} refused at character {position}: {problem}")
