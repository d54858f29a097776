"""How old the keys of data are, and how far sealing anew is, as Prometheus reads it."""

from __future__ import annotations

from pathlib import Path

from sealane.engine.local import DiskFiles, LocalEngine, StorageSettings
from sealane.node import Node
from sealane.node.surroundings import Surroundings, of_this_machine
from tests.unit.node.running_node import Clock
from tests.unit.server.test_metrics import scraped, value


async def test_keys_tell_their_age_and_what_is_left_to_be_sealed_anew(tmp_path: Path) -> None:
    clock = Clock()
    surroundings = Surroundings(clock, of_this_machine().entropy)
    engine = await LocalEngine.start(
        DiskFiles(tmp_path), settings=StorageSettings(), clock=clock, entropy=surroundings.entropy
    )
    node = await Node.open(engine, surroundings)
    clock.pass_seconds(3_600)
    families = scraped(node)
    assert value(families, "sealane_domain_key_age_seconds", domain="_system") == 3_600
    assert value(families, "sealane_domain_older_keys", domain="_system") == 0
    assert value(families, "sealane_resealing_left_bytes") == value(families, "sealane_resealing_bytes") == 0
    await engine.keys.rotate("_system")
    assert value(scraped(node), "sealane_domain_key_age_seconds", domain="_system") == 0
    await engine.keys.resealed()
    await node.close()
