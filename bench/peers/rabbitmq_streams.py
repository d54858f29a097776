"""RabbitMQ Streams, a node of its own with the stream protocol alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.peers.peer import ServedPeer
from bench.peers.serving import free_ports, serving

HOME = Path("/usr/lib/rabbitmq")
NO_BUSY_WAITING = "+sbwt none +sbwtdcpu none +sbwtdio none"
"""Schedulers that spin while they wait would take the processors from the clients."""
SERVER = "one node, one replica, schedulers without busy waiting"
CONSUMER = "consumer: 50 chunks of credit, offset stored on the server each 10,000 messages"
LOOPBACK_ONLY = "-kernel inet_dist_use_interface {127,0,0,1}"
CONFIGURATION = """\
listeners.tcp = none
stream.listeners.tcp.1 = 127.0.0.1:{port}
stream.advertised_host = 127.0.0.1
stream.advertised_port = {port}
log.console = true
log.console.level = warning
log.file = false
disk_free_limit.absolute = 64MB
"""


class RabbitMqStreams(ServedPeer):
    name = "rabbitmq-streams"
    title = "RabbitMQ Streams"
    durable = True
    durability = (
        "written to the page cache before each confirmation, and synced when the system pleases: "
        "a crash of the machine loses messages"
    )
    settings = (
        f"{SERVER}; producer: rstream, raw messages in batches of 500 with up to 50,000 unconfirmed; {CONSUMER}; "
        "latency: a publish of its own for each message; uvloop"
    )
    count = 1_000_000
    client = "bench.peers.rabbitmq_client"
    packages = ("rstream",)
    server_name = "rabbitmq-server"
    debian_package = "rabbitmq-server"
    services = ("rabbitmq-server", "epmd.socket", "epmd.service")

    def server_version(self) -> str:
        found = sorted((HOME / "lib").glob("rabbitmq_server-*"))
        return found[-1].name.rpartition("-")[2] if found else ""

    @contextmanager
    def running(self, directory: Path) -> Iterator[str]:
        port, distribution_port, names_port = free_ports(3)
        (directory / "rabbitmq.conf").write_text(CONFIGURATION.format(port=port))
        (directory / "plugins").write_text("[rabbitmq_stream].\n")
        environment = {
            "HOME": str(directory),  # Where Erlang keeps its cookie.
            "RABBITMQ_NODENAME": f"bench-{port}@localhost",
            "RABBITMQ_CONFIG_FILE": str(directory / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "plugins"),
            "RABBITMQ_CONF_ENV_FILE": str(directory / "none"),
            "RABBITMQ_MNESIA_BASE": str(directory / "data"),
            "RABBITMQ_LOG_BASE": str(directory / "log"),
            "RABBITMQ_DIST_PORT": str(distribution_port),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": f"{NO_BUSY_WAITING} {LOOPBACK_ONLY}",
            "ERL_EPMD_PORT": str(names_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
        }
        log = directory / "rabbitmq.log"
        # Started here, Erlang's name server is a child that can be ended; a node that finds none leaves one behind.
        with (
            serving(["epmd"], names_port, log, environment),
            serving([str(HOME / "bin" / "rabbitmq-server")], port, log, environment),
        ):
            yield f"127.0.0.1:{port}"


class RabbitMqSubEntries(RabbitMqStreams):
    """The same server; its producer packs small messages into entries that the server does not look into."""

    name = "rabbitmq-sub-entries"
    title = "RabbitMQ Streams, sub-entries"
    settings = (
        f"{SERVER}; producer: rstream, raw messages, up to 256 B in uncompressed sub-entries of 250 with up to 400,000 "
        f"messages unconfirmed, larger ones in batches of 500 with up to 50,000 unconfirmed; {CONSUMER}; latency: a "
        "publish of its own for each message; uvloop"
    )
    producing = "publish_sub_entries"
    in_quick = False  # Its client sends sub-entries each half second: a short round tells little of it.
