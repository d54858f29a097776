"""A batch that came as bytes is stored as it came."""

from __future__ import annotations

import pyarrow as pa

from sealane.message import BatchMeta, Limits, Stamp, decode, encode, encoding, from_payloads


def test_a_batch_that_came_as_bytes_is_stored_from_the_memory_that_it_came_in():
    sent = encode(from_payloads([b"a", b"b"], Stamp(7, bytes(16)), limits=Limits()))
    memory = bytearray(sent)
    batch = decode(memory, limits=Limits())
    kept = encoding(batch)
    assert isinstance(kept, memoryview)
    assert pa.py_buffer(kept).address == pa.py_buffer(memory).address
    assert kept == sent == encode(batch)


def test_what_came_in_other_words_or_was_changed_is_encoded_anew():
    batch = from_payloads([b"a", b"b"], Stamp(7, bytes(16)), limits=Limits())
    assert encoding(batch) == encode(batch)
    numbered = batch.with_meta(BatchMeta(producer=b"p" * 16, sequence=300))
    sent = encode(numbered)
    # The same number in a longer form: no encoder of ours writes it.
    assert sent[8:].count(b"\xcd\x01\x2c") == 1
    spelled = sent[8:].replace(b"\xcd\x01\x2c", b"\xce\x00\x00\x01\x2c", 1)
    length = int.from_bytes(sent[4:8], "little") + 2
    foreign = sent[:4] + length.to_bytes(4, "little") + spelled
    body_at = 8 + (length - 2) + -(length - 2) % 8
    padded = foreign[: 8 + length] + bytes(-length % 8) + sent[body_at:]
    came = decode(bytearray(padded), limits=Limits())
    assert came.meta == numbered.meta
    assert came.whole is None
    assert encoding(came) == sent
    as_sent = decode(bytearray(sent), limits=Limits())
    assert encoding(as_sent.with_meta(BatchMeta(sequence=1, producer=b"p" * 16))) != sent
