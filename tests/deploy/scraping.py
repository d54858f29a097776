"""Prometheus's way into a node: what `introduce.sh` gives it, and how `prometheus.yml` says to use it."""

from __future__ import annotations

import http.client
import socket
import ssl
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.places import DEPLOY
from tests.integration.server.up import DEADLINE_SECONDS, Up, environment

KEY_OF_ANOTHER_NODE = "slk_anothernode_itssecret\n"
"""What is left in a volume that is older than the node's data."""


def scrape_config() -> dict[str, Any]:
    """The one job of `prometheus.yml`."""
    config = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())
    (job,) = config["scrape_configs"]
    assert isinstance(job, dict)
    return job


def introduce(node: Up, directory: Path) -> None:
    """Run the script as Compose does."""
    tools = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    done = subprocess.run(
        ["/bin/sh", str(DEPLOY / "compose" / "introduce.sh"), str(directory)],
        env=environment(PATH=tools, SEALANE_DATA=str(node.data)),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@dataclass(frozen=True)
class Watcher:
    """Prometheus, with what it was given in this directory."""

    node: Up
    directory: Path

    def ask(self, path: str, method: str = "GET") -> tuple[int, str]:
        """The node's answer, status and text: over TLS, by the authority, the name and the key that the job names."""
        job = scrape_config()
        assert job["scheme"] == "https"
        key = self._given(job["authorization"]["credentials_file"]).read_text().strip()
        context = ssl.create_default_context(cafile=self._given(job["tls_config"]["ca_file"]))
        host, _, port = self.node.ready["doors"]["http"].rpartition(":")
        plain = socket.create_connection((host, int(port)), timeout=DEADLINE_SECONDS)
        connection = http.client.HTTPSConnection(host, int(port), timeout=DEADLINE_SECONDS)
        connection.sock = context.wrap_socket(plain, server_hostname=job["tls_config"]["server_name"])
        try:
            connection.request(method, path, headers={"authorization": f"Bearer {key}"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def _given(self, path: str) -> Path:
        return self.directory / Path(path).name
