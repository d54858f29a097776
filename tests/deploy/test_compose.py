"""The composition of node, Prometheus and Grafana: its shape, its paths, its settings."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any

import jsonschema_rs
import pytest
import yaml

from sealane.server.loading import load
from sealane.server.settings import ServerSettings
from tests.deploy.images import DOCKERFILE, Dockerfile
from tests.deploy.places import DEPLOY, DOOR_PORTS
from tests.deploy.scraping import scrape_config

COMPOSE = DEPLOY / "compose" / "compose.yaml"
IMAGE = Dockerfile(DOCKERFILE.read_text())


def interpolated(text: str, **variables: str) -> str:
    """`${NAME:-default}` replaced, as Compose does it."""
    return re.sub(r"\$\{(\w+):-([^}]*)\}", lambda found: variables.get(found[1]) or found[2], text)


DOCUMENT: dict[str, Any] = yaml.safe_load(interpolated(COMPOSE.read_text()))
SERVICES: dict[str, Any] = DOCUMENT["services"]
NODE = SERVICES["sealane"]


def mounts(service: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Source, target and mode of each volume."""
    parts = [volume.split(":") for volume in service.get("volumes", ())]
    return [(source, target, "".join(mode)) for source, target, *mode in parts]


def bound(service: dict[str, Any], path: str) -> Path:
    """The file of this checkout that a path in a service's container is."""
    for source, target, _ in mounts(service):
        if source.startswith(".") and PurePosixPath(path).is_relative_to(target):
            return (COMPOSE.parent / source / PurePosixPath(path).relative_to(target)).resolve()
    raise AssertionError(f"nothing of this checkout is mounted at {path}")


def test_it_is_what_compose_reads() -> None:
    schema = json.loads((files("check_jsonschema") / "builtin_schemas/vendor/compose-spec.json").read_text())
    jsonschema_rs.validate(schema, DOCUMENT)


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_confined(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "privileged" not in service


@pytest.mark.parametrize("name", SERVICES)
def test_what_is_mounted_exists_and_is_not_written_to(name: str) -> None:
    for source, _, mode in mounts(SERVICES[name]):
        if source.startswith("."):
            assert (COMPOSE.parent / source).exists(), source
            assert mode == "ro"
        else:
            assert source in DOCUMENT["volumes"]


@pytest.mark.parametrize("name", SERVICES)
def test_an_image_that_is_not_built_here_is_of_one_version(name: str) -> None:
    service = SERVICES[name]
    if "build" in service:
        assert (COMPOSE.parent / service["build"]["context"] / service["build"]["dockerfile"]).resolve() == DOCKERFILE
    else:
        assert re.fullmatch(r"[\w./-]+:v?\d+\.\d+\.\d+", service["image"])


def test_nobody_beyond_this_machine_gets_in_unless_someone_says_so() -> None:
    published = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)
    opened = yaml.safe_load(interpolated(COMPOSE.read_text(), LISTEN="0.0.0.0"))["services"]
    assert all(port.startswith("0.0.0.0:") for port in opened["sealane"]["ports"])


def test_the_nodes_ports_are_those_of_its_doors() -> None:
    for port in NODE["ports"]:
        _, outside, inside = port.split(":")
        assert outside == inside
        assert int(inside) in (DOOR_PORTS["native"], DOOR_PORTS["http"])


@pytest.mark.parametrize("variables", [{}, {"NAMES": "broker.example.com, 10.0.0.5", "DISK": "1TiB"}])
def test_the_nodes_variables_are_settings(variables: dict[str, str]) -> None:
    node = yaml.safe_load(interpolated(COMPOSE.read_text(), **variables))["services"]["sealane"]
    image = {name: value for name, value in IMAGE.environment.items() if name != "SEALANE_CONFIG"}
    loaded = load(config=DEPLOY / "docker" / "sealane.yaml", environ={**image, **node["environment"]})
    assert loaded.settings.storage.disk_bytes_max is not None
    assert loaded.settings.node.security.certificates.names == variables.get("NAMES")


def test_only_the_volume_and_tmp_are_written() -> None:
    assert mounts(NODE) == [("data", IMAGE.value("VOLUME"), "")]
    assert [each.split(":")[0] for each in NODE["tmpfs"]] == ["/tmp"]


def test_a_stop_waits_for_the_drain() -> None:
    assert float(NODE["stop_grace_period"].removesuffix("s")) > ServerSettings().drain_seconds


def test_prometheus_is_introduced_by_the_node_before_it_starts() -> None:
    introduction, prometheus = SERVICES["introduction"], SERVICES["prometheus"]
    assert bound(introduction, introduction["entrypoint"][1]) == DEPLOY / "compose" / "introduce.sh"
    # The volume takes the owner of what the image has there, so that the script may write.
    assert ("watcher", IMAGE.value("VOLUME"), "") in mounts(introduction)
    assert introduction["entrypoint"][2] == IMAGE.value("VOLUME")
    data = PurePosixPath(IMAGE.environment["SEALANE_DATA"]).relative_to(IMAGE.value("VOLUME"))
    assert ("data", "/node", "ro") in mounts(introduction)
    assert introduction["environment"]["SEALANE_DATA"] == str("/node" / data)
    assert introduction["network_mode"] == "service:sealane"
    assert introduction["depends_on"]["sealane"]["condition"] == "service_healthy"

    assert prometheus["depends_on"]["introduction"]["condition"] == "service_completed_successfully"
    assert prometheus["group_add"] == [IMAGE.value("USER").split(":")[1]]
    job = scrape_config()
    for path in (job["authorization"]["credentials_file"], job["tls_config"]["ca_file"]):
        assert ("watcher", str(PurePosixPath(path).parent), "ro") in mounts(prometheus)
    assert job["tls_config"]["server_name"] == NODE["hostname"]


def test_prometheus_and_grafana_find_what_is_provisioned() -> None:
    prometheus, grafana = SERVICES["prometheus"], SERVICES["grafana"]
    (config,) = (word.partition("=")[2] for word in prometheus["command"] if word.startswith("--config.file="))
    assert bound(prometheus, config).is_file()
    rules = yaml.safe_load(bound(prometheus, config).read_text())["rule_files"]
    assert all((bound(prometheus, config).parent / rule).is_file() for rule in rules)

    assert bound(grafana, grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]).is_file()
    provisioning = bound(grafana, "/etc/grafana/provisioning")
    (provider,) = yaml.safe_load((provisioning / "dashboards" / "sealane.yaml").read_text())["providers"]
    assert bound(grafana, provider["options"]["path"]) == DEPLOY / "grafana" / "dashboards"
    (source,) = yaml.safe_load((provisioning / "datasources" / "prometheus.yaml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    assert set(prometheus["networks"]) & set(grafana["networks"])
    assert set(prometheus["networks"]) & set(NODE["networks"])
