"""Alerts and the scrape configuration, against what a node really serves."""

from __future__ import annotations

import re
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.exposition import BY_PROMETHEUS, Exposition
from tests.deploy.places import DEPLOY, DOOR_PORTS
from tests.deploy.promql import asked_for, parse
from tests.deploy.scraping import KEY_OF_ANOTHER_NODE, Watcher, introduce, scrape_config

ALERTS = DEPLOY / "prometheus" / "alerts.yml"
RULES: dict[str, dict[str, Any]] = {
    rule["alert"]: rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]
}

THRESHOLDS = {
    "SealanePublishSlow": "> 0.05",  # 50 ms, for the 95th percentile
    "SealaneErrors": "> 0.001",  # 0.1 %
    "SealaneDiskNearlyFull": "> 0.8",  # 80 %
    "SealaneProcessorBusy": "> 0.8",
    "SealaneOpenFiles": "> 0.8",
    "SealaneQueueDeep": "> 10000",
}


@pytest.mark.parametrize("name", RULES)
def test_every_alert_asks_for_metrics_and_labels_that_a_node_serves(name: str, exposition: Exposition) -> None:
    assert exposition.problems(asked_for(RULES[name]["expr"])) == []


@pytest.mark.parametrize("name", RULES)
def test_every_alert_says_how_bad_it_is_where_and_what_to_do(name: str, exposition: Exposition) -> None:
    rule = RULES[name]
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert set(rule["annotations"]) == {"summary", "description"}
    said = " ".join(rule["annotations"].values())
    served = BY_PROMETHEUS.union(*(exposition.labels(metric) for metric in asked_for(rule["expr"])))
    assert set(re.findall(r"\$labels\.(\w+)", said)) <= served


@pytest.mark.parametrize("name", THRESHOLDS)
def test_an_alert_begins_where_it_should(name: str) -> None:
    assert " ".join(parse(RULES[name]["expr"]).prettify().split()).endswith(THRESHOLDS[name])


def test_names_of_alerts_are_unique() -> None:
    names = re.findall(r"- alert: (\w+)", ALERTS.read_text())
    assert len(names) == len(set(names)) == len(RULES)


def test_a_metric_or_a_label_that_no_node_serves_is_found(exposition: Exposition) -> None:
    assert exposition.problems(asked_for("sealane_no_such_thing > 1")) == [
        "sealane_no_such_thing is no metric of a node"
    ]
    asked = asked_for('sum by (instance, color) (rate(sealane_connections{shape="round"}[5m]))')
    assert exposition.problems(asked) == ["sealane_connections has no label color, shape"]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not here: apt-get install prometheus")
def test_promtool_finds_nothing_and_every_alert_comes_when_it_should(tmp_path: Path) -> None:
    cases = (Path(__file__).parent / "alert_cases.yml").read_text().replace("alerts.yml", str(ALERTS))
    (tmp_path / "cases.yml").write_text(cases)
    for arguments in (
        ("check", "rules", str(ALERTS)),
        ("check", "config", "--syntax-only", str(DEPLOY / "prometheus" / "prometheus.yml")),
        ("test", "rules", str(tmp_path / "cases.yml")),
    ):
        done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_case_in_which_it_comes() -> None:
    cases = yaml.safe_load((Path(__file__).parent / "alert_cases.yml").read_text())
    troubled, sound = (test["promql_expr_test"][0]["exp_samples"] for test in cases["tests"])
    assert sorted(each["labels"] for each in troubled) == sorted(f'{{alertname="{name}"}}' for name in RULES)
    assert sound == []


# --- the way in -------------------------------------------------------------------------------------------------------


def test_prometheus_comes_in_by_what_it_was_given(watcher: Watcher) -> None:
    status, text = watcher.ask("/metrics")
    assert status == 200
    assert "sealane_ready 1.0" in text


def test_it_may_read_the_metrics_and_nothing_else(watcher: Watcher) -> None:
    status, answer = watcher.ask("/api/v1/domains/default/topics/orders/subscriptions/s/messages?wait=0")
    assert status == 403, answer
    assert watcher.ask("/api/v1/domains/default/topics/orders", "DELETE")[0] == 403


def test_what_it_was_given_is_for_its_group_alone(watcher: Watcher) -> None:
    assert stat.S_IMODE(watcher.directory.stat().st_mode) == 0o750
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in watcher.directory.iterdir()}
    assert modes == {"ca.crt": 0o640, "metrics.key": 0o640}


def test_to_introduce_it_again_changes_nothing(watcher: Watcher) -> None:
    before = (watcher.directory / "metrics.key").read_text()
    assert before != KEY_OF_ANOTHER_NODE, "the node did not know it, so there is a new one"
    introduce(watcher.node, watcher.directory)
    assert (watcher.directory / "metrics.key").read_text() == before


def test_the_target_is_the_http_door() -> None:
    (target,) = scrape_config()["static_configs"][0]["targets"]
    assert target == f"sealane:{DOOR_PORTS['http']}"
