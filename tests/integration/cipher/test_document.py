"""The sender and the receiver of CipherMQ's document, as it describes them: blocking sockets, hybrid encryption,
retries, and a set of ids against repeats. Nothing of Sealane is in them.
"""

from __future__ import annotations

import base64
import json
import os
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sealane.testing.node_process import NodeProcess
from tests.integration.cipher.plain_client import PlainClient, message_of

TRIES = 3
OAEP = padding.OAEP(mgf=padding.MGF1(hashes.SHA1()), algorithm=hashes.SHA1(), label=None)
NONCE_BYTES = 16
TAG_BYTES = 16


def encrypt_message_hybrid(message: str, public_key: rsa.RSAPublicKey) -> dict[str, str]:
    session_key, nonce = os.urandom(16), os.urandom(NONCE_BYTES)
    sealed = AESGCM(session_key).encrypt(nonce, message.encode(), None)
    return {
        "message_id": str(uuid.uuid4()),
        "enc_session_key": base64.b64encode(public_key.encrypt(session_key, OAEP)).decode(),
        "nonce": base64.b64encode(nonce).decode(),
        "tag": base64.b64encode(sealed[-TAG_BYTES:]).decode(),
        "ciphertext": base64.b64encode(sealed[:-TAG_BYTES]).decode(),
    }


def decrypt_message_hybrid(message: dict[str, str], private_key: rsa.RSAPrivateKey) -> str:
    parts = {name: base64.b64decode(message[name]) for name in ("enc_session_key", "nonce", "tag", "ciphertext")}
    session_key = private_key.decrypt(parts["enc_session_key"], OAEP)
    return AESGCM(session_key).decrypt(parts["nonce"], parts["ciphertext"] + parts["tag"], None).decode()


class Sender:
    def __init__(self, connect: Callable[[], PlainClient]) -> None:
        self.pending_messages: dict[str, dict[str, str]] = {}
        self._connect = connect
        self._client = connect()

    def send_message(self, message: dict[str, str]) -> bool:
        """Send it until its ACK is there."""
        self.pending_messages[message["message_id"]] = message
        for _ in range(TRIES):
            try:
                reply = self._client.ask(f"publish ciphermq_exchange ciphermq_key {json.dumps(message)}")
            except (OSError, EOFError):
                self._client.close()
                self._client = self._connect()
                continue
            if reply == f"ACK {message['message_id']}":
                del self.pending_messages[message["message_id"]]
                return True
        return False

    def close(self) -> None:
        self._client.close()


class Receiver:
    def __init__(self, client: PlainClient, private_key: rsa.RSAPrivateKey, stored: Path) -> None:
        self.processed_messages: set[str] = set()
        self.confirmed: set[str] = set()
        self._client = client
        self._private_key = private_key
        self._stored = stored

    def receive_messages(self, count: int) -> None:
        """Until so many are stored, and their acks confirmed."""
        self._client.send("consume ciphermq_queue")
        while len(self.confirmed) < count:
            line = self._client.line()
            if line.startswith("Message: "):
                self._process(message_of(line))
            elif line.startswith("ACK_CONFIRMED "):
                self.confirmed.add(line.removeprefix("ACK_CONFIRMED "))
            else:
                assert line == "Consuming ciphermq_queue", line

    def _process(self, message: dict[str, Any]) -> None:
        message_id = message["message_id"]
        if message_id not in self.processed_messages:
            self.processed_messages.add(message_id)
            with self._stored.open("a") as file:
                file.write(
                    json.dumps({"id": message_id, "body": decrypt_message_hybrid(message, self._private_key)}) + "\n"
                )
        self._client.send(f"ack {message_id}")


def test_every_message_is_received_once_also_if_the_broker_is_restarted(tmp_path: Path) -> None:
    private_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    bodies = [f"order {number}: 🔐" for number in range(40)]
    settings = {"doors.cipher.enabled": True, "doors.cipher.port": 0}
    with NodeProcess(tmp_path / "data", settings) as node:
        with PlainClient(node.doors["cipher"]) as setup:
            assert setup.ask("declare_queue ciphermq_queue") == "Queue declared"
            assert setup.ask("declare_exchange ciphermq_exchange") == "Exchange declared"
            assert setup.ask("bind ciphermq_queue ciphermq_exchange ciphermq_key") == "Queue bound"
        sender = Sender(lambda: PlainClient(node.doors["cipher"]))
        messages = [encrypt_message_hybrid(body, private_key.public_key()) for body in bodies]
        for message in messages[:20]:
            assert sender.send_message(message)
        node.kill()
        node.start()
        stored = tmp_path / "received_messages.json"
        with PlainClient(node.doors["cipher"]) as client:
            receiver = Receiver(client, private_key, stored)
            receiving = threading.Thread(target=receiver.receive_messages, args=[40])
            receiving.start()
            assert sender.send_message(messages[19])  # As one whose ACK was lost.
            for message in messages[20:]:
                assert sender.send_message(message)
            receiving.join(60)
            assert not receiving.is_alive()
        sender.close()
        with PlainClient(node.doors["cipher"]) as late:
            assert late.fetch("ciphermq_queue") is None

    found = [json.loads(line) for line in stored.read_text().splitlines()]
    assert [each["body"] for each in found] == bodies
    assert receiver.confirmed == {message["message_id"] for message in messages}
    assert sender.pending_messages == {}
