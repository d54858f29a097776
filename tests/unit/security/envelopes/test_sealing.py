"""Sealed for its recipients, a batch opens for each of them and for nobody else."""

from __future__ import annotations

import os
import random
from collections import Counter
from itertools import combinations

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from sealane.errors import InvalidArgument, InvalidBatch, InvalidMessage, LimitExceeded
from sealane.message import Batch, Limits, Row, Stamp, decode, encode, from_rows
from sealane.message.batch import BatchMeta
from sealane.message.concat import concat
from sealane.message.schema import ENVELOPE, PAYLOAD
from sealane.security.envelopes import (
    KEY_KINDS,
    RECIPIENTS_MAX,
    KeyKind,
    OpeningKeys,
    PrivateKey,
    Recipients,
    open_batch,
    sealed_bytes,
)
from sealane.security.envelopes.envelope import ENVELOPE_BYTES_MAX, read_envelope
from sealane.security.envelopes.opening import CHANGED, NOT_FOR_US, NOT_SEALED, OPENING_KEYS_MAX, SESSIONS_CACHED
from sealane.security.envelopes.sealing import with_columns
from sealane.security.envelopes.session import MESSAGE_BYTES_ADDED
from tests.unit.security.envelopes.sealed import LIMITS, key, plain, seal

PAYLOADS = [b"", b"a", b"the marker" * 20, os.urandom(1_000)]


def opened(batch: Batch, *keys: PrivateKey) -> list[bytes]:
    back, problems = open_batch(batch, OpeningKeys(keys))
    assert not problems
    assert back.absent >> ENVELOPE & 1
    return back.payloads()


@pytest.mark.parametrize("kind", KEY_KINDS)
def test_what_is_sealed_for_a_key_opens_with_it(kind: KeyKind) -> None:
    batch = plain(PAYLOADS)
    sealed = seal(batch, key(kind))
    assert sealed.ids() == batch.ids()
    assert all(b"the marker" not in bytes(buffer) for buffer in sealed.column(PAYLOAD).buffers() if buffer)
    assert opened(sealed, key(kind)) == PAYLOADS


def test_each_of_several_recipients_opens_it() -> None:
    keys = [key("x25519", 1), key("rsa-2048"), key("x25519", 2), key("rsa-3072")]
    sealed = seal(plain(PAYLOADS), *keys)
    for each in keys:
        assert opened(sealed, each) == PAYLOADS
        assert opened(sealed, key("x25519", 9), each) == PAYLOADS


def test_slices_and_single_messages_carry_all_that_their_recipient_needs() -> None:
    sealed = seal(plain([b"%d" % number for number in range(100)]), key())
    assert opened(sealed.slice(40, 43), key()) == [b"40", b"41", b"42"]
    there = decode(encode(sealed.slice(99, 100)), limits=LIMITS)
    assert opened(there, key()) == [b"99"]


def test_keys_headers_and_times_stay_as_they_are() -> None:
    rows = [Row(b"%d" % n, b"key", {"region": "eu"}, 7, 2_000_000_000_000_000) for n in range(3)]
    batch = from_rows(rows, Stamp(1_700_000_000_000_000, os.urandom(16)), limits=LIMITS)
    sealed = seal(batch, key())
    unchanged = ["id", "key", "headers", "priority", "created", "expires"]
    assert sealed.records.select(unchanged).equals(batch.records.select(unchanged))
    assert open_batch(sealed, OpeningKeys(key()))[0] == batch


def test_messages_that_are_not_sealed_come_as_they_are() -> None:
    batch = plain([b"open", b"too"])
    assert open_batch(batch, OpeningKeys(key())) == (batch, {})
    assert open_batch(batch, OpeningKeys(key()), require_sealed=True)[1] == {0: NOT_SEALED, 1: NOT_SEALED}


def test_a_batch_of_messages_from_several_senders_opens_where_it_can() -> None:
    parts = [seal(plain([b"1", b"2"]), key()), plain([b"3"]), seal(plain([b"4"]), key("x25519", 1))]
    parts.append(seal(plain([b"5"]), key(), key("x25519", 1)))
    mixed = Batch(pa.concat_batches([part.records for part in parts]))
    back, problems = open_batch(mixed, OpeningKeys(key()))
    assert problems == {3: NOT_FOR_US}
    sealed = mixed.payloads()[3]
    assert back.payloads() == [b"1", b"2", b"3", sealed, b"5"]
    assert back.column(ENVELOPE).is_valid().to_pylist() == [False, False, False, True, False]
    assert open_batch(mixed, OpeningKeys(key()), require_sealed=True)[1] == {2: NOT_SEALED, 3: NOT_FOR_US}


# --- nonces -----------------------------------------------------------------------------------------------------------


def test_no_nonce_is_used_twice_under_one_session_key() -> None:
    used: Counter[tuple[bytes, bytes]] = Counter()
    envelopes = set()
    for rows in [1] * 50 + [2, 3, 600, 1_000, 70_000]:
        sealed = seal(plain([b""] * rows), key(), limits=Limits(batch_bytes_max=1 << 24))
        (envelope,) = set(sealed.column(ENVELOPE).to_pylist())
        envelopes.add(envelope)
        used.update((envelope, payload[:12]) for payload in sealed.payloads())
    assert len(envelopes) == 55
    assert used.most_common(1)[0][1] == 1


def test_the_same_batch_sealed_twice_shares_neither_session_key_nor_bytes() -> None:
    batch = plain([b"same"] * 10)
    one, other = seal(batch, key()), seal(batch, key())
    for place in (PAYLOAD, ENVELOPE):
        assert not set(one.column(place).to_pylist()) & set(other.column(place).to_pylist())


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sealed_for", "opened_with"), [*combinations(KEY_KINDS, 2), ("rsa-2048", "rsa-2048")])
def test_another_key_opens_nothing(sealed_for: KeyKind, opened_with: KeyKind) -> None:
    sealed = seal(plain(PAYLOADS), key(sealed_for))
    back, problems = open_batch(sealed, OpeningKeys(key(opened_with, 7)))
    assert problems == dict.fromkeys(range(4), NOT_FOR_US)
    assert back == sealed


def test_a_changed_payload_is_refused_and_the_others_are_not() -> None:
    sealed = seal(plain(PAYLOADS), key())
    for row in range(4):
        payload = sealed.payloads()[row]
        for at in (0, 11, 12, len(payload) - 1):
            changed = payload[:at] + bytes([payload[at] ^ 1]) + payload[at + 1 :]
            check_only_refused(sealed, row, changed)
        for cut in (0, 1, 11, 12, 27, len(payload) - 1):
            check_only_refused(sealed, row, payload[:cut])


def check_only_refused(sealed: Batch, row: int, payload: bytes) -> None:
    payloads = sealed.payloads()
    payloads[row] = payload
    changed = with_columns(sealed, {PAYLOAD: pa.array(payloads, pa.binary())})
    back, problems = open_batch(changed, OpeningKeys(key()))
    assert problems == {row: CHANGED}
    assert [each for place, each in enumerate(back.payloads()) if place != row] == [
        each for place, each in enumerate(PAYLOADS) if place != row
    ]


def test_payloads_that_changed_places_are_refused() -> None:
    sealed = seal(plain([b"pay 1", b"pay 1,000,000"]), key())
    swapped = with_columns(sealed, {PAYLOAD: pa.array(sealed.payloads()[::-1], pa.binary())})
    assert open_batch(swapped, OpeningKeys(key()))[1] == {0: CHANGED, 1: CHANGED}


def test_a_payload_of_another_batch_is_refused() -> None:
    batch = plain([b"a"])
    one, other = seal(batch, key()), seal(batch, key())
    moved = with_columns(one, {PAYLOAD: other.column(PAYLOAD)})
    assert open_batch(moved, OpeningKeys(key()))[1] == {0: CHANGED}


def test_an_envelope_cut_off_anywhere_is_refused() -> None:
    sealed = seal(plain([b"a"]), key(), key("rsa-2048"))
    (envelope,) = sealed.column(ENVELOPE).to_pylist()
    for length in range(len(envelope)):
        assert problems_under(sealed, envelope[:length]), length
    assert problems_under(sealed, envelope + b"\0")
    assert not problems_under(sealed, envelope)


@pytest.mark.parametrize("recipients", [1, 2])
def test_an_envelope_changed_anywhere_is_refused_by_every_recipient(recipients: int) -> None:
    keys = [key("x25519", number) for number in range(recipients)]
    sealed = seal(plain([b"a"]), *keys)
    (envelope,) = sealed.column(ENVELOPE).to_pylist()
    for at in range(len(envelope)):
        changed = bytearray(envelope)
        changed[at] ^= 1 << at % 8
        for each in keys:
            assert problems_under(sealed, bytes(changed), each), at


def test_the_envelope_of_one_recipient_is_as_short_as_it_can_be() -> None:
    (envelope,) = seal(plain([b"a"]), key()).column(ENVELOPE).to_pylist()
    assert len(envelope) == 3 + 1 + 8 + 32 + 16
    assert Recipients([key().public]).envelope_bytes == len(envelope)


def test_random_bytes_for_an_envelope_are_refused() -> None:
    dice = random.Random(7)
    sealed = seal(plain([b"a"]), key())
    (envelope,) = sealed.column(ENVELOPE).to_pylist()
    for _ in range(2_000):
        data = bytearray(envelope if dice.random() < 0.7 else dice.randbytes(dice.randrange(300)))
        for _ in range(dice.randrange(1, 6)):
            if data and dice.random() < 0.8:
                data[dice.randrange(len(data))] = dice.randrange(256)
            else:
                data[dice.randrange(len(data) + 1) :] = dice.randbytes(dice.randrange(40))
        if bytes(data) != envelope:
            assert problems_under(sealed, bytes(data))


def test_an_envelope_longer_than_any_is_refused_before_it_is_read() -> None:
    sealed = seal(plain([b"a"]), key())
    assert "at most" in problems_under(sealed, b"\1" * (ENVELOPE_BYTES_MAX + 1))[0]


def test_an_envelope_of_a_later_version_says_so() -> None:
    sealed = seal(plain([b"a"]), key())
    assert "its version is 9" in problems_under(sealed, b"\x09" + bytes(100))[0]


def problems_under(sealed: Batch, envelope: bytes, private: PrivateKey | None = None) -> dict[int, str]:
    """The same whether the envelope is each message's own or that of the whole batch."""
    own = with_columns(sealed, {ENVELOPE: pa.array([envelope], pa.binary())})
    shared = sealed.with_meta(msgspec.structs.replace(sealed.meta, envelope=envelope))
    found = [dict(open_batch(each, OpeningKeys(private or key()))[1]) for each in (own, shared)]
    assert found[0] == found[1]
    return found[0]


def test_a_batch_that_is_sealed_is_not_sealed_again() -> None:
    with pytest.raises(InvalidMessage, match="sealed; publish them without"):
        seal(seal(plain([b"a"]), key()), key())


def test_as_many_recipients_as_there_may_be_and_one_more_is_refused() -> None:
    keys = [PrivateKey.generate() for _ in range(RECIPIENTS_MAX + 1)]
    sealed = seal(plain([b"a"]), *keys[1:])
    assert len(read_envelope(sealed.column(ENVELOPE).to_pylist()[0]).wrapped) == RECIPIENTS_MAX
    assert opened(sealed, keys[-1]) == [b"a"]
    with pytest.raises(InvalidArgument, match="33 keys, a message is for at most 32"):
        seal(plain([b"a"]), *keys)
    with pytest.raises(InvalidArgument, match="nobody"):
        Recipients([])


def test_a_recipient_named_twice_is_one() -> None:
    assert len(Recipients([key().public, PrivateKey.from_pem(key().pem()).public])) == 1


def test_as_many_private_keys_as_a_reader_may_have_and_one_more_is_refused() -> None:
    OpeningKeys([key()] * OPENING_KEYS_MAX)
    with pytest.raises(InvalidArgument, match="at most 64"):
        OpeningKeys([key()] * (OPENING_KEYS_MAX + 1))
    with pytest.raises(InvalidArgument, match="PrivateKey"):
        OpeningKeys([])


def test_the_limits_hold_for_what_is_sealed() -> None:
    limits = Limits(payload_bytes_max=1_000)
    seal(plain([bytes(1_000 - MESSAGE_BYTES_ADDED)]), key(), limits=limits)
    with pytest.raises(LimitExceeded, match="sealed payload is 1,001 bytes, the limit is 1,000"):
        seal(plain([bytes(1_001 - MESSAGE_BYTES_ADDED)]), key(), limits=limits)


@pytest.mark.parametrize("recipients", [1, 32])
def test_the_size_of_a_sealed_batch_is_known_before_and_limited(recipients: int) -> None:
    batch, keys = plain([b"12345"] * 10), [key("x25519", number) for number in range(recipients)]
    size = sealed_bytes(batch, Recipients(each.public for each in keys))
    assert seal(batch, *keys, limits=Limits(batch_bytes_max=size)).nbytes == size
    with pytest.raises(LimitExceeded, match="sealed batch"):
        seal(batch, *keys, limits=Limits(batch_bytes_max=size - 1))


def test_an_envelope_is_said_once_for_a_batch_and_kept_by_whatever_is_cut_out_of_it() -> None:
    sealed = seal(plain(PAYLOADS), key())
    assert sealed.meta.envelope is not None
    assert sealed.column(ENVELOPE).to_pylist() == [sealed.meta.envelope] * len(PAYLOADS)
    sent = decode(encode(sealed), limits=LIMITS)
    assert sent.layout is not None, "it is a plain batch to the node"
    for part in (sent.slice(1, 3), sent.cut(1, 3), sent.take(np.array([1, 2]))):
        again = decode(encode(part), limits=LIMITS)
        assert open_batch(again, OpeningKeys(key()))[0].payloads() == PAYLOADS[1:3]


def test_batches_under_different_envelopes_become_one_in_which_each_message_has_its_own() -> None:
    one, other = seal(plain([b"a", b"b"]), key()), seal(plain([b"c"]), key())
    joined = decode(encode(concat([one, other, plain([b"d"])])), limits=LIMITS)
    assert joined.meta.envelope is None
    assert joined.column(ENVELOPE).to_pylist() == [one.meta.envelope] * 2 + [other.meta.envelope, None]
    assert open_batch(joined, OpeningKeys(key()))[0].payloads() == [b"a", b"b", b"c", b"d"]


def test_batches_under_one_envelope_stay_under_it() -> None:
    sealed = seal(plain(PAYLOADS), key())
    joined = concat([sealed.slice(0, 2), sealed.slice(2, len(PAYLOADS))], meta=BatchMeta())
    assert joined.meta.envelope == sealed.meta.envelope
    assert concat([sealed], meta=BatchMeta()).meta.envelope == sealed.meta.envelope
    assert open_batch(joined, OpeningKeys(key()))[0].payloads() == PAYLOADS


def test_the_envelope_for_many_recipients_is_in_a_column() -> None:
    keys = [key("x25519", number) for number in range(RECIPIENTS_MAX)]
    sealed = seal(plain(PAYLOADS), *keys)
    assert sealed.meta.envelope is None
    assert open_batch(decode(encode(sealed), limits=LIMITS), OpeningKeys(keys[-1]))[0].payloads() == PAYLOADS


def test_an_envelope_that_is_said_twice_is_refused() -> None:
    sealed = seal(plain([b"a"]), key())
    own = with_columns(sealed, {ENVELOPE: pa.array([sealed.meta.envelope], pa.binary())})
    twice = Batch.of_kept(own.kept, sealed.meta, own.absent, exact=True)
    with pytest.raises(InvalidBatch, match="in the metadata and in a column"):
        decode(encode(twice), limits=LIMITS)


def test_more_envelopes_than_are_remembered_open_all_the_same() -> None:
    keys = OpeningKeys(key())
    envelopes = [seal(plain([b"%d" % number]), key()) for number in range(SESSIONS_CACHED + 10)]
    for _ in range(2):
        for number, sealed in enumerate(envelopes):
            assert open_batch(sealed, keys)[0].payloads() == [b"%d" % number]
    assert len(keys._sessions) == SESSIONS_CACHED
