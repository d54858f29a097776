"""What is kept of authorities and certificates: nothing in the data directory has a private key in it."""

from __future__ import annotations

import base64
from pathlib import Path

from cryptography.hazmat.primitives.serialization import load_pem_private_key

import sealane
from sealane.engine.local import DiskFiles, LocalEngine, StorageSettings
from sealane.node import Node
from sealane.node.surroundings import of_this_machine
from sealane.security.ca.keys import private_der
from sealane.security.ca.records import ROOT


def stored(directory: Path) -> bytes:
    return b"\0".join(path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file())


def scalar(key: object) -> bytes:
    """The secret number itself, however it is wrapped."""
    number: int = key.private_numbers().private_value  # type: ignore[attr-defined]
    return number.to_bytes(48)


async def test_no_file_has_a_private_key_in_it(tmp_path: Path) -> None:
    surroundings = of_this_machine()
    engine = await LocalEngine.start(
        DiskFiles(tmp_path), settings=StorageSettings(), clock=surroundings.clock, entropy=surroundings.entropy
    )
    node = await Node.open(engine, surroundings)
    authorities = node.identity.authorities
    await authorities.init()
    issued = await authorities.issue("anna")
    assert issued.key is not None
    of_root = authorities._own.get(ROOT)._key
    secrets = [scalar(of_root), private_der(of_root), scalar(load_pem_private_key(issued.key.encode(), None))]
    await node.close()

    found = stored(tmp_path)
    assert not any(secret in found for secret in secrets)
    assert not any(base64.b64encode(secret)[4:-8] in found for secret in secrets)


async def test_an_authority_and_what_it_issued_are_there_after_a_restart(tmp_path: Path) -> None:
    async with sealane.embedded(tmp_path) as lane:
        made = await lane.administer("ca.init")
        issued = await lane.administer("ca.issue", name="anna")
        await lane.administer("ca.revoke", certificate="anna")
    async with sealane.embedded(tmp_path) as lane:
        assert (await lane.administer("ca.show"))[0]["fingerprint"] == made["fingerprint"]
        assert [each["serial"] for each in await lane.administer("ca.show", certificate="anna")] == [issued["serial"]]
        assert (await lane.administer("ca.list", state="revoked"))["certificates"][0]["name"] == "anna"
