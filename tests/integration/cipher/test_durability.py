"""What was acknowledged outlives a node that is killed in that moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from sealane.testing.node_process import NodeProcess
from tests.cipher_messages import encrypted, written
from tests.integration.cipher.conftest import OPEN
from tests.integration.cipher.plain_client import PlainClient


@pytest.fixture
def mortal(tmp_path: Path) -> NodeProcess:
    return NodeProcess(tmp_path / "data", OPEN)


def connect(node: NodeProcess) -> PlainClient:
    return PlainClient(node.doors["cipher"])


def test_ack_means_durable_and_a_repeat_after_a_crash_is_stored_once(mortal: NodeProcess) -> None:
    message, batch = encrypted(), [encrypted() for _ in range(300)]
    with mortal:
        with connect(mortal) as client:
            client.make_queue("orders")
            client.publish("orders", message)
            client.publish_batch("orders", batch)
            mortal.kill()
        mortal.start()
        with connect(mortal) as client:
            client.publish("orders", message)
            client.publish_batch("orders", [*batch, encrypted("new")])
            client.consume("orders")
            assert client.messages(302)[:-1] == [message, *batch]
            assert client.ask("fetch orders") == "No message in orders"


def test_ack_confirmed_means_durable(mortal: NodeProcess) -> None:
    messages = [encrypted() for _ in range(5)]
    with mortal:
        with connect(mortal) as client:
            client.make_queue("orders")
            client.publish("orders", *messages)
            client.consume("orders")
            client.messages(5)
            client.ack(messages[1]["message_id"])
            client.ack(messages[3]["message_id"])
            mortal.kill()
        mortal.start()
        with connect(mortal) as client:
            client.consume("orders")
            assert client.messages(3) == [messages[0], messages[2], messages[4]]
            assert client.fetch("orders") is None


def test_whoever_has_not_heard_the_confirmation_may_ask_again_after_a_crash(mortal: NodeProcess) -> None:
    """Also for an id that is no UUID; and a message that was not acknowledged is not confirmed."""
    with mortal:
        with connect(mortal) as client:
            client.make_queue("orders")
            client.publish("orders", encrypted("order-1"), encrypted("order-2"))
            client.consume("orders")
            client.messages(2)
            client.ack("order-1")
            mortal.kill()
        mortal.start()
        with connect(mortal) as client:
            assert client.ask("fetch orders").startswith("Message: order-2 ")
            client.ack("order-1")
            with connect(mortal) as other:
                other.consume("orders")
                assert other.ask("ack order-2").startswith("Error: ack: order-2 is not held")


def test_queues_exchanges_and_bindings_outlive_a_crash(mortal: NodeProcess) -> None:
    message = encrypted()
    with mortal:
        with connect(mortal) as client:
            client.make_queue("orders")
            mortal.kill()
        mortal.start()
        with connect(mortal) as client:
            assert client.ask(f"publish orders-exchange key {written(message)}") == f"ACK {message['message_id']}"
            assert client.fetch("orders") == message
