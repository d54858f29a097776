"""The door in a node's own process, as users have it."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import grpc
import pytest

from sealane.client.profiles import read_profile
from sealane.doors.grpc import swarmmq_pb2 as pb
from sealane.doors.grpc.swarmmq_pb2_grpc import SwarmMQStub
from tests.integration.grpc.conftest import DEADLINE_SECONDS, sent, wish
from tests.integration.server.up import Up

GRPC = ("--set=doors.grpc.enabled=on", "--set=doors.grpc.port=0")


def credentials(up: Up) -> Any:
    """Those of the administrator on this machine."""
    admin = read_profile(up.data / "admin.profile")
    assert admin.ca and admin.key and admin.certificate  # noqa: PT018 - of a profile with a certificate
    return grpc.ssl_channel_credentials(admin.ca.encode(), admin.key.encode(), admin.certificate.encode())


def talk(stub: Any) -> None:
    """A client that blocks, as most are."""
    assert stub.GetNodeHealth(pb.HealthRequest(), timeout=DEADLINE_SECONDS).status == pb.HealthResponse.SERVING
    stub.SendMessage(sent(b"1"), timeout=DEADLINE_SECONDS)
    (answer,) = stub.PullMessages(wish(), timeout=DEADLINE_SECONDS)
    assert [message.payload for message in answer.messages] == [b"1"]
    stub.AckMessage(
        pb.AckMessageRequest(destination="orders", subscription="billing", lease=answer.lease),
        timeout=DEADLINE_SECONDS,
    )


@pytest.mark.parametrize("insecure", [True, False])
def test_a_node_with_the_door_says_where_it_is_serves_and_stops_clean(tmp_path: Path, insecure: bool) -> None:
    with Up(tmp_path, *GRPC, insecure=insecure) as up:
        address = up.ready["doors"]["grpc"]
        opened = (
            grpc.insecure_channel(address)
            if insecure
            else grpc.secure_channel(address.replace("127.0.0.1", "localhost"), credentials(up))
        )
        with opened as channel:
            talk(SwarmMQStub(channel))
            if insecure:
                assert b'sealane_connections{door="grpc"} 1.0' in up.get("/metrics")
            code, _, log = up.end(signal.SIGTERM)
    assert code == 0
    assert "the grpc door is open" in log
    assert "a consumer joined" not in log, "pulls are not worth a line"
    assert "Traceback" not in log
    assert "absl::" not in log


def test_a_stream_hears_of_the_stop(tmp_path: Path) -> None:
    with Up(tmp_path, *GRPC) as up, grpc.insecure_channel(up.ready["doors"]["grpc"]) as channel:
        stub = SwarmMQStub(channel)
        stub.SendMessage(sent(b"1"), timeout=DEADLINE_SECONDS)
        call = stub.PullMessages(wish(follow=True), timeout=DEADLINE_SECONDS)
        assert len(next(call).messages) == 1
        up.end(signal.SIGTERM)
        with pytest.raises(grpc.RpcError) as caught:
            next(call)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert "about to stop" in caught.value.details()
