"""The chart as the node sees it: its settings, its names, its rights, and who asks how it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from sealane.errors import InvalidSettings
from sealane.server.checks import check
from sealane.server.loading import load
from sealane.server.settings import ServerSettings
from tests.deploy.chart import Document
from tests.deploy.chart_cases import VALUES, cases, chart, one, pod_of, settings_of
from tests.deploy.images import DOCKERFILE, Dockerfile
from tests.integration.server.up import Up

IMAGE = Dockerfile(DOCKERFILE.read_text())


@cases
def test_the_node_takes_its_settings(given: Document, tmp_path: Path) -> None:
    loaded = settings_of(chart.render(given), tmp_path)
    check(loaded.settings)
    assert not loaded.settings.insecure
    assert loaded.settings.storage.disk_bytes_max is not None


def test_settings_of_the_user_reach_the_node(tmp_path: Path) -> None:
    settings = settings_of(chart.render(VALUES["everything"]), tmp_path).settings
    assert settings.node.limits.payload_bytes_max == 4 << 20
    assert settings.doors.native.connections_max == 500
    assert settings.doors.grpc.enabled


def test_the_certificate_is_for_every_name_of_the_node(tmp_path: Path) -> None:
    found = chart.render(VALUES["everything"])
    names = settings_of(found, tmp_path).settings.node.security.certificates.names or ""
    services = [name for kind, name in found if kind == "Service"]
    pod = f"{one(found, 'StatefulSet')['metadata']['name']}-0.{one(found, 'StatefulSet')['spec']['serviceName']}"
    assert one(found, "StatefulSet")["spec"]["serviceName"] in services
    for name in ("prod-sealane", pod):
        assert {name, f"{name}.shop", f"{name}.shop.svc", f"{name}.shop.svc.cluster.local"} <= set(names.split(","))
    assert {"broker.example.com", "10.0.0.5"} <= set(names.split(","))
    monitor = one(found, "ServiceMonitor")["spec"]["endpoints"][0]
    assert monitor["tlsConfig"]["serverName"] in names.split(",")


def test_variables_that_kubernetes_would_make_of_the_service_are_left_out() -> None:
    with pytest.raises(InvalidSettings):
        load(environ={"SEALANE_PORT": "tcp://10.0.0.1:7070", "SEALANE_SERVICE_HOST": "10.0.0.1"})
    assert pod_of(chart.render())["enableServiceLinks"] is False


def test_probes_ask_the_http_door_for_what_it_answers(node: Up) -> None:
    (container,) = pod_of(chart.render())["containers"]
    probes = {name: container[f"{name}Probe"] for name in ("startup", "liveness", "readiness")}
    for probe in probes.values():
        asked = probe["httpGet"]
        assert asked["scheme"] == "HTTPS"
        assert node.get(asked["path"])
        assert asked["port"] in [port["name"] for port in container["ports"]]
    assert probes["readiness"]["httpGet"]["path"] == "/ready"
    assert probes["liveness"]["httpGet"]["path"] == "/healthz", "a node whose disk has failed is not started anew"
    startup = probes["startup"]
    assert startup["periodSeconds"] * startup["failureThreshold"] >= chart.defaults["probes"]["startupSeconds"]


def test_a_stop_waits_for_the_drain() -> None:
    assert pod_of(chart.render())["terminationGracePeriodSeconds"] > ServerSettings().drain_seconds


@cases
def test_the_pod_has_no_more_rights_than_it_needs(given: Document) -> None:
    pod = pod_of(chart.render(given))
    (container,) = pod["containers"]
    user = int(IMAGE.value("USER").split(":")[0])
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": user,
        "runAsGroup": user,
        "fsGroup": user,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)


@cases
def test_only_the_data_and_tmp_are_written(given: Document) -> None:
    pod = pod_of(chart.render(given))
    (container,) = pod["containers"]
    written = {each["mountPath"] for each in container["volumeMounts"] if not each.get("readOnly")}
    assert written == {IMAGE.value("VOLUME"), "/tmp"}
    variables = {each["name"]: each["value"] for each in container["env"]}
    assert variables["SEALANE_DATA"] == IMAGE.environment["SEALANE_DATA"]


@pytest.mark.parametrize(("given", "name"), [("everything", "prod-sealane"), ("little", "mine"), ("nothing", None)])
def test_a_secret_is_mounted_if_there_is_one(given: str, name: str | None) -> None:
    found = chart.render(VALUES[given])
    volumes = {each["name"]: each for each in pod_of(found)["volumes"]}
    mounted = volumes.get("secret", {}).get("secret", {}).get("secretName")
    assert mounted == name
    assert (("Secret", "prod-sealane") in found) is (given == "everything")


def test_a_network_policy_lets_in_by_open_doors_alone() -> None:
    policy = one(chart.render(VALUES["everything"]), "NetworkPolicy")["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    (rule,) = policy["ingress"]
    assert rule["from"] == [{"podSelector": {}}]
    assert sorted(port["port"] for port in rule["ports"]) == ["grpc", "http", "native"]
    assert [port["port"] for port in policy["egress"][0]["ports"]] == [53, 53]
    assert policy["egress"][1:] == VALUES["everything"]["networkPolicy"]["egress"]
