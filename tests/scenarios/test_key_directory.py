"""The key directory: who is meant by a name, for how long, and how a sender makes sure."""

from __future__ import annotations

import pytest

import sealane
from sealane.client import sealing
from sealane.security.directory import COMMENT_CHARS_MAX, RECIPIENT_KEYS_MAX
from sealane.security.envelopes import RECIPIENTS_MAX
from tests.scenarios.broker import take, take_payloads

OLD, NEW, STRANGER = (sealane.PrivateKey.generate() for _ in range(3))
SECRET = b"4111 1111 1111 1111"


@pytest.fixture
def no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are looked up each time, as they are after some minutes."""
    monkeypatch.setattr(sealing, "DIRECTORY_SECONDS", 0.0)


async def test_a_key_is_found_under_its_name_with_its_story(lane: sealane.Lane) -> None:
    shown = await lane.register_key(OLD.public, "billing", comment="the old machine")
    assert shown["name"] == "billing"
    assert (await lane.public_keys("billing")) == [OLD.public]
    [listed] = await lane.administer("directory.list")
    [key] = listed["keys"]
    assert (listed["name"], key["fingerprint"], key["algorithm"]) == ("billing", OLD.public.fingerprint, "x25519")
    assert (key["by"], key["comment"]) == ("admin", "the old machine")
    assert key["registered_us"] > 0


async def test_a_key_without_a_name_is_registered_under_ones_own(lane: sealane.Lane) -> None:
    assert (await lane.register_key(OLD.public))["name"] == "admin"


async def test_while_keys_change_both_open(lane: sealane.Lane, no_memory: None) -> None:
    await lane.register_key(OLD.public, "billing")
    await lane.publish("orders", b"before", seal_for="billing")
    await lane.register_key(NEW.public, "billing")
    await lane.publish("orders", b"between", seal_for="billing")
    await lane.administer("directory.remove", name="billing", fingerprint=OLD.public.fingerprint)
    await lane.publish("orders", b"after", seal_for="billing")
    assert await take_payloads(lane.consume("orders", "both", keys=[OLD, NEW]), 3) == [b"before", b"between", b"after"]
    found = await take(lane.consume("orders", "old", keys=OLD), 3)
    assert [message.sealed for message in found] == [False, False, True]


async def test_what_is_sealed_after_a_recipient_was_removed_is_not_for_it(lane: sealane.Lane, no_memory: None) -> None:
    await lane.register_key(OLD.public, "billing")
    async with lane.producer("orders", seal_for="billing") as producer:
        await producer.send(b"before")
        await producer.flush()
        await lane.administer("directory.remove", name="billing")
        with pytest.raises(sealane.RecipientNotFound):
            await producer.send(b"after")
    with pytest.raises(sealane.RecipientNotFound):
        await lane.publish("orders", b"after", seal_for=["billing"])
    assert await take_payloads(lane.consume("orders", "s", keys=OLD), 1) == [b"before"]


async def test_a_key_is_looked_up_once_in_some_minutes(lane: sealane.Lane) -> None:
    await lane.register_key(OLD.public, "billing")
    await lane.publish("orders", b"1", seal_for="billing")
    await lane.administer("directory.remove", name="billing")
    await lane.publish("orders", b"2", seal_for="billing")
    assert await take_payloads(lane.consume("orders", "s", keys=OLD), 2) == [b"1", b"2"]


async def test_a_pinned_key_is_used_and_no_other_that_the_node_adds(lane: sealane.Lane) -> None:
    await lane.register_key(OLD.public, "billing")
    await lane.register_key(STRANGER.public, "billing")
    await lane.publish("orders", SECRET, seal_for={"billing": OLD.public.fingerprint})
    assert await take_payloads(lane.consume("orders", "s", keys=OLD), 1) == [SECRET]
    [message] = await take(lane.consume("orders", "stranger", keys=STRANGER), 1)
    assert message.sealed


async def test_another_key_than_the_pinned_one_is_refused_with_both_fingerprints(lane: sealane.Lane) -> None:
    await lane.register_key(STRANGER.public, "billing")
    with pytest.raises(sealane.KeyPinMismatch) as refusal:
        await lane.publish("orders", SECRET, seal_for={"billing": OLD.public.fingerprint})
    error = refusal.value
    assert (error.recipient, error.pinned) == ("billing", OLD.public.fingerprint)
    assert error.found == STRANGER.public.fingerprint
    assert OLD.public.fingerprint in str(error)
    assert STRANGER.public.fingerprint in str(error)
    assert await lane.topics() == [], "nothing was published"


# --- refusals ---------------------------------------------------------------------------------------------------------


async def test_a_recipient_that_nobody_registered_is_refused(lane: sealane.Lane) -> None:
    for work in (
        lane.public_keys("nobody"),
        lane.publish("orders", SECRET, seal_for="nobody"),
        lane.administer("directory.remove", name="nobody"),
    ):
        with pytest.raises(sealane.RecipientNotFound, match="recipient 'nobody' does not exist"):
            await work


async def test_the_same_key_twice_is_refused(lane: sealane.Lane) -> None:
    await lane.register_key(OLD.public, "billing")
    with pytest.raises(sealane.AlreadyExists, match="has it registered"):
        await lane.register_key(OLD.public, "billing")
    await lane.register_key(OLD.public, "audit")


async def test_as_many_keys_as_a_recipient_may_have_and_one_more_is_refused(lane: sealane.Lane) -> None:
    for _ in range(RECIPIENT_KEYS_MAX):
        await lane.register_key(sealane.PrivateKey.generate().public, "billing")
    with pytest.raises(sealane.InvalidArgument, match="remove one that is no longer used"):
        await lane.register_key(OLD.public, "billing")


async def test_what_is_no_key_is_refused(lane: sealane.Lane) -> None:
    for pem in ("", "hello", OLD.pem()):
        with pytest.raises(sealane.InvalidArgument):
            await lane.administer("directory.register", name="billing", public_key=pem)
    assert await lane.administer("directory.list") == []


@pytest.mark.parametrize("name", ["", "a/b", "../etc", "a b", "x" * 129, "ü"])
async def test_what_cannot_be_a_name_is_refused(lane: sealane.Lane, name: str) -> None:
    with pytest.raises(sealane.InvalidName):
        await lane.register_key(OLD.public, name)


async def test_a_comment_that_is_too_long_is_refused(lane: sealane.Lane) -> None:
    await lane.register_key(OLD.public, "a", comment="x" * COMMENT_CHARS_MAX)
    with pytest.raises(sealane.InvalidArgument, match="comment"):
        await lane.register_key(OLD.public, "b", comment="x" * (COMMENT_CHARS_MAX + 1))


async def test_a_fingerprint_that_is_not_there_cannot_be_removed(lane: sealane.Lane) -> None:
    await lane.register_key(OLD.public, "billing")
    with pytest.raises(sealane.NotFound, match=NEW.public.fingerprint.replace("+", ".")):
        await lane.administer("directory.remove", name="billing", fingerprint=NEW.public.fingerprint)


async def test_more_names_than_a_message_has_recipients_are_not_answered_at_once(lane: sealane.Lane) -> None:
    with pytest.raises(sealane.InvalidArgument, match="at most 32"):
        await lane.administer("directory.get", names=["a"] * (RECIPIENTS_MAX + 1))
