"""The Dockerfile, read: its stages, and what its last one leaves in the image."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property
from io import BytesIO
from pathlib import PurePosixPath
from typing import Any

from dockerfile_parse import DockerfileParser  # type: ignore[import-untyped]

from tests.deploy.places import DEPLOY, ROOT

DOCKERFILE = DEPLOY / "docker" / "Dockerfile"


@dataclass(frozen=True)
class Dockerfile:
    text: str

    @cached_property
    def stages(self) -> list[list[tuple[str, str]]]:
        """Each stage's instructions with their values, without comments and what comes before the first stage."""
        found: list[list[tuple[str, str]]] = []
        for each in self._parser.structure:
            if each["instruction"] == "FROM":
                found.append([])
            if each["instruction"] != "COMMENT" and found:
                found[-1].append((each["instruction"], each["value"]))
        return found

    @cached_property
    def _parser(self) -> Any:
        return DockerfileParser(fileobj=BytesIO(self.text.encode()))

    def values(self, instruction: str, stage: int = -1) -> list[str]:
        return [value for name, value in self.stages[stage] if name == instruction]

    def value(self, instruction: str) -> str:
        """Of the last stage, where there must be one."""
        (found,) = self.values(instruction)
        return found

    @property
    def environment(self) -> dict[str, str]:
        """What the image sets."""
        pairs = [word for value in self.values("ENV") for word in shlex.split(value)]
        return dict(pair.split("=", 1) for pair in pairs)

    @property
    def health_command(self) -> list[str]:
        found: list[str] = json.loads(self.value("HEALTHCHECK").partition(" CMD ")[2])
        return found

    @property
    def command(self) -> list[str]:
        found: list[str] = json.loads(self.value("ENTRYPOINT")) + json.loads(self.value("CMD"))
        return found

    def copies(self, stage: int = -1) -> list[tuple[list[str], str]]:
        """What comes from the checkout: sources, and where they go."""
        found = []
        for value in self.values("COPY", stage):
            words = shlex.split(value)
            if not any(word.startswith("--from") for word in words):
                found.append((words[:-1], words[-1]))
        return found


def is_ignored(path: str) -> bool:
    """Whether `.dockerignore` keeps a path of the checkout out of the build: its last line that fits decides."""
    ignored = False
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        pattern = line.removeprefix("!")
        parts = PurePosixPath(path).parts
        parents = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
        if any(fnmatch(each, pattern) or fnmatch(f"/{each}", pattern.replace("**", "*")) for each in parents):
            ignored = not line.startswith("!")
    return ignored
