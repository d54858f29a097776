"""The chart as Kubernetes sees it: valid, joined up, and refused where it would be wrong."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import jsonschema_rs
import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml
from gotpl.errors import TemplateExecutionError

from sealane._version import __version__
from tests.deploy.chart import CHART, Document, render_with_helm
from tests.deploy.chart_cases import VALUES, cases, chart, one, pod_of, settings_of
from tests.deploy.places import DEPLOY, DOOR_PORTS, check_command

OLDEST, NEWEST = "1.27", kubernetes_validate.latest_version()
"""Versions of Kubernetes."""
WITHOUT_SCHEMA = ("ServiceMonitor", "PrometheusRule")
"""Of the Prometheus operator."""

REFUSED: dict[str, Document] = {
    "an unknown value": {"replicas": 1},
    "a door that there is not": {"doors": {"smtp": {"enabled": True, "port": 25}}},
    "a door without its port": {"doors": {"grpc": {"port": None}}},
    "an address of a door": {"doors": {"http": {"host": "127.0.0.1"}}},
    "a size that is none": {"persistence": {"size": "much"}},
    "a volume for several": {"persistence": {"accessModes": ["ReadWriteMany"]}},
    "two names in one": {"certificateNames": ["a.example.com,b.example.com"]},
    "a text as a switch": {"serviceMonitor": {"enabled": "yes"}},
}

REFUSED_IN_WORDS: dict[str, Document] = {
    "a node holds its data directory alone": {"replicaCount": 3},
    "doors.http.enabled is false": {"doors": {"http": {"enabled": False}}},
    "config.doors is given": {"config": {"doors": {"grpc": {"enabled": True}}}},
    "certificateNames": {"config": {"security": {"certificates": {"names": "a.example.com"}}}},
    "not both": {"secret": {"existingSecret": "mine", "values": {"a": "b"}}},
}


@cases
@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_kubernetes_takes_all_of_it(given: Document, version: str) -> None:
    for (kind, name), document in chart.render(given).items():
        assert document["metadata"]["namespace"] == "shop"
        assert len(name) <= 63
        if kind not in WITHOUT_SCHEMA:
            kubernetes_validate.validate(document, version, strict=True)


@cases
def test_selectors_lead_to_the_pod(given: Document) -> None:
    found = chart.render(given)
    labels = one(found, "StatefulSet")["spec"]["template"]["metadata"]["labels"]
    for (kind, _), document in found.items():
        spec = document.get("spec", {})
        if kind == "Service":
            assert spec["selector"].items() <= labels.items()
        elif kind in ("StatefulSet", "PodDisruptionBudget"):
            assert spec["selector"]["matchLabels"].items() <= labels.items()
        elif kind == "NetworkPolicy":
            assert spec["podSelector"]["matchLabels"].items() <= labels.items()


@cases
def test_every_open_door_has_a_port_of_the_pod_and_of_its_services(given: Document, tmp_path: Path) -> None:
    found = chart.render(given)
    doors = settings_of(found, tmp_path).settings.doors
    opened = {name: getattr(doors, name).port for name in DOOR_PORTS if getattr(doors, name).enabled}
    (container,) = pod_of(found)["containers"]
    assert {port["name"]: port["containerPort"] for port in container["ports"]} == opened
    services = [document for (kind, _), document in found.items() if kind == "Service"]
    assert len(services) == 2
    for service in services:
        assert {port["targetPort"]: port["port"] for port in service["spec"]["ports"]} == opened


@pytest.mark.parametrize("given", REFUSED.values(), ids=REFUSED)
def test_the_schema_refuses(given: Document) -> None:
    with pytest.raises(jsonschema_rs.ValidationError):
        chart.values(given)


@pytest.mark.parametrize("words", REFUSED_IN_WORDS)
def test_the_templates_refuse_and_say_why(words: str) -> None:
    with pytest.raises(TemplateExecutionError, match=re.escape(words)):
        chart.render(REFUSED_IN_WORDS[words])


@pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not here: https://helm.sh/docs/intro/install")
@cases
def test_helm_makes_the_same_of_it(given: Document, tmp_path: Path) -> None:
    linted = subprocess.run(["helm", "lint", "--strict", str(CHART)], capture_output=True, text=True, check=False)
    assert linted.returncode == 0, linted.stdout
    mine, helms = chart.render(given), render_with_helm(given, tmp_path)
    for each in (mine, helms):
        # A checksum of the same settings, written in another order or with other quotes.
        one(each, "StatefulSet")["spec"]["template"]["metadata"]["annotations"].pop("checksum/secret")
        one(each, "StatefulSet")["spec"]["template"]["metadata"]["annotations"].pop("checksum/config")
    assert mine == helms


def test_other_settings_mean_another_pod() -> None:
    def annotations(given: Document) -> Document:
        found: Document = one(chart.render(given), "StatefulSet")["spec"]["template"]["metadata"]["annotations"]
        return found

    assert annotations({}) == annotations({})
    assert annotations({}) != annotations({"config": {"log": {"level": "debug"}}})


def test_its_rules_and_its_dashboard_are_those_of_this_checkout() -> None:
    found = chart.render(VALUES["everything"])
    assert one(found, "PrometheusRule")["spec"] == yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())
    (dashboard,) = (each["data"] for each in found.values() if "sealane.json" in each.get("data", {}))
    assert json.loads(dashboard["sealane.json"]) == json.loads(
        (DEPLOY / "grafana" / "dashboards" / "sealane.json").read_text()
    )


def test_the_monitor_finds_the_service_and_the_alerts_find_its_job() -> None:
    found = chart.render(VALUES["everything"])
    monitor = one(found, "ServiceMonitor")["spec"]
    services = [each for (kind, _), each in found.items() if kind == "Service"]
    wanted = monitor["selector"]["matchLabels"].items()
    chosen = [each for each in services if wanted <= each["metadata"]["labels"].items()]
    assert [each["metadata"]["name"] for each in chosen] == ["prod-sealane"]
    (endpoint,) = monitor["endpoints"]
    assert endpoint["port"] in [port["name"] for port in chosen[0]["spec"]["ports"]]
    assert endpoint["relabelings"] == [{"targetLabel": "job", "replacement": "sealane"}]


def test_it_is_the_chart_of_this_version_for_these_doors() -> None:
    assert chart.about["appVersion"] == __version__
    assert {name: door["port"] for name, door in chart.defaults["doors"].items()} == DOOR_PORTS
    assert set(chart.schema["properties"]) - {"global"} == set(chart.defaults)


@cases
def test_the_notes_tell_commands_that_exist(given: Document) -> None:
    calls = re.findall(r" -- sealane (.*?)(?: >.*)?$", chart.notes(given), re.MULTILINE)
    assert calls
    for call in calls:
        check_command(shlex.split(call))
