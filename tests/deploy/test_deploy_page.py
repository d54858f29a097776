"""`docs/deploy.md`: what it tells to type works, what it names exists, and every alert is in it."""

from __future__ import annotations

import re
import shlex

import pytest
import yaml

from tests.deploy.chart_cases import chart
from tests.deploy.places import DEPLOY, ROOT, check_command

PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
LINES = [line for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
CALLS = [
    found[1] for line in LINES for found in re.finditer(r"(?:\$pod|--|exec sealane|bin/)\s*sealane ([^|>]*)", line)
]
EXAMPLES = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]


@pytest.mark.parametrize("call", CALLS)
def test_its_commands_exist(call: str) -> None:
    check_command(shlex.split(call))


def test_there_are_commands_to_be_checked() -> None:
    assert len(CALLS) >= 8


def test_its_files_exist() -> None:
    named = {word for line in LINES for word in re.findall(r"deploy/[\w./*-]+", line)}
    assert named
    assert [word for word in named if not list(ROOT.glob(word))] == []


def test_its_examples_are_right() -> None:
    composition, values = EXAMPLES
    assert set(composition["services"]) <= set(
        yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())["services"]
    )
    assert chart.render(values)


def test_every_alert_is_in_it() -> None:
    alerts = re.findall(r"- alert: (\w+)", (DEPLOY / "prometheus" / "alerts.yml").read_text())
    assert set(re.findall(r"`(Sealane\w+)`", PAGE)) == set(alerts)
