"""What a node serves on `/metrics`, by name: is a metric there, and which labels has it?

A metric that has had nothing to tell yet shows no labels: those are then what docs/metrics.md says of it.
"""

from __future__ import annotations

import re

from tests.deploy.places import ROOT

OF_PROMETHEUS = {"up"}
"""Metrics that Prometheus makes itself."""
BY_PROMETHEUS = {"instance", "job"}
"""Labels that it adds to all that it scrapes."""
_TYPE = re.compile(r"^# TYPE (\w+) (\w+)$", re.MULTILINE)
_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? \S+$", re.MULTILINE)
_PARTS = {"histogram": ("_bucket", "_sum", "_count")}


class Exposition:
    def __init__(self, text: str) -> None:
        self.names = {name + part for name, kind in _TYPE.findall(text) for part in _PARTS.get(kind, ("",))}
        self._labels: dict[str, set[str]] = {}
        for name, labels in _SAMPLE.findall(text):
            self._labels.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))

    def labels(self, name: str) -> set[str]:
        return self._labels.get(name, documented(name)) | BY_PROMETHEUS

    def problems(self, asked: dict[str, set[str]]) -> list[str]:
        """What is asked for and not served."""
        found = []
        for name, labels in asked.items():
            missing = labels - self.labels(name)
            if name in OF_PROMETHEUS:
                continue
            if name not in self.names:
                found.append(f"{name} is no metric of a node")
            elif missing:
                found.append(f"{name} has no label {', '.join(sorted(missing))}")
        return found


def documented(name: str) -> set[str]:
    """The words that stand out in what the page says of a metric."""
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    row = re.search(rf"^\| `{name}` \| (.*) \|$", page, re.MULTILINE)
    return set(re.findall(r"`(\w+)`", row[1])) if row else set()
