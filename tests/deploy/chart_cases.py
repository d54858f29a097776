"""Values that the chart is rendered with, and ways to look at what comes out."""

from __future__ import annotations

from pathlib import Path

import pytest

from sealane.server.loading import Loaded, load
from tests.deploy.chart import Chart, Document, Resources

chart = Chart()

VALUES: dict[str, Document] = {
    "nothing": {},
    "everything": {
        "doors": {"grpc": {"enabled": True}, "native": {"connections_max": 500}},
        "config": {"limits": {"payload_bytes_max": "4MiB"}, "webhooks": {"ca": "/run/secrets/sealane/ca.pem"}},
        "certificateNames": ["broker.example.com", "10.0.0.5"],
        "secret": {"values": {"ca.pem": "-----BEGIN CERTIFICATE-----\n…\n"}},
        "image": {"repository": "registry.example.com/sealane", "tag": "1.2.3"},
        "imagePullSecrets": [{"name": "registry"}],
        "persistence": {"storageClassName": "fast", "annotations": {"team": "shop"}},
        "service": {"type": "LoadBalancer", "annotations": {"example.com/internal": "true"}},
        "podAnnotations": {"team": "shop"},
        "podLabels": {"team": "shop"},
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "broker", "operator": "Exists"}],
        "affinity": {"podAntiAffinity": {}},
        "priorityClassName": "high",
        "podDisruptionBudget": {"maxUnavailable": 0},
        "networkPolicy": {"enabled": True, "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]},
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
        "grafanaDashboard": {"enabled": True},
    },
    "little": {
        "fullnameOverride": "broker",
        "doors": {"native": {"enabled": False}},
        "secret": {"existingSecret": "mine"},
        "podDisruptionBudget": {"enabled": False},
        "resources": {},
    },
}

cases = pytest.mark.parametrize("given", VALUES.values(), ids=VALUES)


def one(found: Resources, kind: str) -> Document:
    (document,) = (each for (of, _), each in found.items() if of == kind)
    return document


def pod_of(found: Resources) -> Document:
    pod: Document = one(found, "StatefulSet")["spec"]["template"]["spec"]
    return pod


def settings_of(found: Resources, directory: Path) -> Loaded:
    """What the node would make of its ConfigMap and its variables."""
    (config,) = (each["data"]["sealane.yaml"] for each in found.values() if "sealane.yaml" in each.get("data", {}))
    (directory / "sealane.yaml").write_text(config)
    (container,) = pod_of(found)["containers"]
    variables = {each["name"]: each["value"] for each in container["env"]}
    assert variables["SEALANE_CONFIG"] == "/etc/sealane/sealane.yaml"
    return load(config=directory / "sealane.yaml", environ=variables)
