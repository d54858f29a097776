"""Each peer that is installed here does what the bench asks of it, at a tiny count, and leaves nothing running."""

from __future__ import annotations

import pytest

from bench.peers import PEERS
from bench.peers.serving import answers


@pytest.mark.slow
@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_a_peer_is_measured(peer, tmp_path):
    if (reason := peer.absent()) is not None:
        # In every environment: a peer is no part of the product.
        pytest.skip(reason)
    assert all(peer.versions().values())
    for work in ("rate", "latencies"):
        directory = tmp_path / work
        directory.mkdir()
        with peer.running(directory) as address:
            if work == "rate":
                assert peer.rate(address, count=1_000, size=100) > 0
            else:
                found = peer.latencies(address, count=50)
                assert len(found) == 50
                assert found == sorted(found)
                assert found[0] > 0
        assert not answers(int(address.rpartition(":")[2]))
