"""The dashboard: what it asks for is what a node serves, and nothing lies on top of something else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest
import yaml

from tests.deploy.exposition import Exposition
from tests.deploy.places import DEPLOY
from tests.deploy.promql import asked_for

GRAFANA = DEPLOY / "grafana"
DASHBOARD: dict[str, Any] = json.loads((GRAFANA / "dashboards" / "sealane.json").read_text())
PANELS = {panel["title"]: panel for panel in DASHBOARD["panels"] if panel["type"] != "row"}
VARIABLES = {variable["name"]: variable for variable in DASHBOARD["templating"]["list"]}
COLUMNS = 24
"""How wide a dashboard is."""


def expressions(panel: dict[str, Any]) -> Iterator[str]:
    yield from (target["expr"] for target in panel["targets"])


@pytest.mark.parametrize("title", PANELS)
def test_every_panel_asks_for_metrics_and_labels_that_a_node_serves(title: str, exposition: Exposition) -> None:
    asked = [asked_for(expression) for expression in expressions(PANELS[title])]
    assert asked
    assert [problem for each in asked for problem in exposition.problems(each)] == []


@pytest.mark.parametrize("title", PANELS)
def test_every_panel_says_what_it_shows_of_the_node_that_is_chosen(title: str) -> None:
    panel = PANELS[title]
    assert panel["description"]
    assert panel["fieldConfig"]["defaults"]["unit"]
    assert panel["datasource"]["uid"] == "${datasource}"
    letters = [target["refId"] for target in panel["targets"]]
    assert len(letters) == len(set(letters))
    for expression in expressions(panel):
        assert 'instance=~"$instance"' in expression


@pytest.mark.parametrize(
    "metric",
    [
        "sealane_published_messages_total",
        "sealane_publish_to_durable_seconds_bucket",
        "sealane_depth_messages",
        "sealane_oldest_unsettled_seconds",
        "sealane_leased_messages",
        "sealane_dead_lettered_messages_total",
        "sealane_storage_bytes",
        "sealane_connections",
        "sealane_refusals_total",
    ],
)
def test_what_an_operator_looks_for_is_there(metric: str) -> None:
    assert any(metric in asked_for(expression) for panel in PANELS.values() for expression in expressions(panel))


@pytest.mark.parametrize("name", ["instance", "domain", "topic"])
def test_what_can_be_chosen_comes_from_labels_that_a_node_serves(name: str, exposition: Exposition) -> None:
    selector, label = VARIABLES[name]["definition"].removeprefix("label_values(").removesuffix(")").rsplit(", ", 1)
    ((metric, matched),) = asked_for(selector).items()
    assert exposition.problems({metric: matched | {label}}) == []


def test_panels_have_names_and_numbers_of_their_own_and_do_not_overlap() -> None:
    assert len(PANELS) == len([panel for panel in DASHBOARD["panels"] if panel["type"] != "row"])
    numbers = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(numbers) == len(set(numbers))
    for one, other in combinations((panel["gridPos"] for panel in DASHBOARD["panels"]), 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or above, (one, other)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= COLUMNS for panel in DASHBOARD["panels"])


def test_the_source_that_is_provisioned_is_the_one_that_is_chosen_first() -> None:
    (source,) = yaml.safe_load((GRAFANA / "provisioning/datasources/prometheus.yaml").read_text())["datasources"]
    assert source["uid"] == VARIABLES["datasource"]["current"]["value"]
    assert source["type"] == VARIABLES["datasource"]["query"] == "prometheus"
