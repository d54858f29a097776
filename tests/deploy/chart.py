"""The chart, rendered as Helm renders it: with its values checked by its schema, then by Go's templates.

The templates run in `gotpl`, which knows Helm's functions, so no `helm` is needed; where there is one, a test compares.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from copy import deepcopy
from functools import cached_property
from pathlib import Path
from typing import Any

import jsonschema_rs
import yaml
from gotpl.exts.helm import HelmTemplateEngine

from tests.deploy.places import DEPLOY

CHART = DEPLOY / "helm" / "sealane"
RELEASE = {"Name": "prod", "Namespace": "shop", "Service": "Helm"}
NOTES = "NOTES.txt"

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The one in C, which takes a tenth of the time, where there is one."""

Document = dict[str, Any]
Resources = dict[tuple[str, str], Document]
"""What Kubernetes would be given, by kind and name."""


class Files:
    """`.Files` of a template."""

    def Get(self, name: str) -> str:  # noqa: N802 - Helm's name for it
        return (CHART / name).read_text(encoding="utf-8")


class Chart:
    def __init__(self) -> None:
        self.about: Document = yaml.safe_load((CHART / "Chart.yaml").read_text())
        self.defaults: Document = yaml.safe_load((CHART / "values.yaml").read_text())
        self.schema: Document = json.loads((CHART / "values.schema.json").read_text())
        self._rendered: dict[str, Resources] = {}

    @cached_property
    def _engine(self) -> HelmTemplateEngine:
        return HelmTemplateEngine({path.name: path.read_text() for path in (CHART / "templates").iterdir()})

    def values(self, given: Mapping[str, Any] | None = None) -> Document:
        """The defaults with these on top. Raises `jsonschema_rs.ValidationError` if the schema forbids one."""
        values = merged(self.defaults, given or {})
        jsonschema_rs.validate(self.schema, values)
        return values

    def texts(self, given: Mapping[str, Any] | None = None) -> dict[str, str]:
        """What each template makes of the values, by its name."""
        about = {"Name": self.about["name"], "Version": self.about["version"], "AppVersion": self.about["appVersion"]}
        context = {"Values": self.values(given), "Chart": about, "Release": RELEASE, "Files": Files()}
        names = [path.name for path in (CHART / "templates").iterdir() if path.suffix != ".tpl"]
        return self._engine.render(dict.fromkeys(sorted(names), context))

    def render(self, given: Mapping[str, Any] | None = None) -> Resources:
        """What Kubernetes would be given; made once of the same values."""
        key = json.dumps(given or {}, sort_keys=True)
        if key not in self._rendered:
            texts = [text for name, text in self.texts(given).items() if name != NOTES]
            self._rendered[key] = resources("\n---\n".join(texts))
        return deepcopy(self._rendered[key])

    def notes(self, given: Mapping[str, Any] | None = None) -> str:
        return self.texts(given)[NOTES]


def resources(text: str) -> Resources:
    found = [document for document in yaml.load_all(text, Loader=LOADER) if document is not None]
    named = {(document["kind"], document["metadata"]["name"]): document for document in found}
    assert len(named) == len(found), "two resources have the same name"
    return named


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> Document:
    """As Helm lays values over each other: maps are joined, everything else is replaced, null takes away."""
    result: Document = deepcopy(dict(below))
    for name, value in above.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, Mapping) and isinstance(result.get(name), Mapping):
            result[name] = merged(result[name], value)
        else:
            result[name] = deepcopy(value)
    return result


def render_with_helm(given: Mapping[str, Any], directory: Path) -> Resources:
    """The same by a real `helm`."""
    path = directory / "values.json"
    path.write_text(json.dumps(given))
    names = [RELEASE["Name"], str(CHART), "--namespace", RELEASE["Namespace"]]
    done = subprocess.run(
        ["helm", "template", *names, "--values", str(path)], capture_output=True, text=True, timeout=60, check=True
    )
    return resources(done.stdout)
