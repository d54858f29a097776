"""Which partition a message goes to.

The hash is part of the contract, since clients compute it too and stored messages lie where it put them: XXH3 (64 bits,
seed 0) of the key's bytes, or of the id's 16 bytes, modulo the number of partitions.
"""

from __future__ import annotations

import numpy as np
import xxhash

from sealane.errors import InvalidArgument
from sealane.message import Batch
from sealane.message.arrow_compute import pc
from sealane.message.schema import KEY

_hash = xxhash.xxh3_64_intdigest


def partition_of(data: bytes, partitions: int) -> int:
    """The partition, from 0, of a key or of an id's 16 bytes."""
    if partitions < 1:
        raise InvalidArgument("partitions", f"is {partitions}, a topic has at least 1")
    return _hash(data) % partitions


def split_by_partition(batch: Batch, partitions: int, keyless: int) -> list[tuple[int, np.ndarray | None]]:
    """The partitions that the batch's messages go to, in order, each with the places of its messages in the batch.

    A message with a key goes by its key; one without a key and with a given id by its id, so that a resend meets its
    first copy; the rest go together to `keyless`, which the caller chooses. None in place of the places means the whole
    batch, which then needs no copy.
    """
    if partitions < 1:
        raise InvalidArgument("partitions", f"is {partitions}, a topic has at least 1")
    if partitions == 1:
        return [(0, None)]
    if not 0 <= keyless < partitions:
        raise InvalidArgument("keyless", f"is {keyless}, the partitions go from 0 to {partitions - 1}")
    if batch.absent >> KEY & 1:
        if not batch.meta.given_ids:
            return [(keyless, None)]
        targets = _hashed(batch.ids(), partitions)
    else:
        targets = _targets(batch, partitions, keyless)
    present = np.unique(targets)
    if len(present) == 1:
        return [(int(present[0]), None)]
    return [(int(partition), np.flatnonzero(targets == partition)) for partition in present]


def _targets(batch: Batch, partitions: int, keyless: int) -> np.ndarray:
    """Each message's partition; every distinct key is hashed once."""
    column = batch.column(KEY)
    encoded = column.dictionary_encode()
    hashed = _hashed(encoded.dictionary.to_pylist(), partitions)
    if not column.null_count:
        return hashed[encoded.indices.to_numpy()]
    # Rows without a key look up one place beyond the known keys, which they then overwrite or keep as `keyless`.
    places = pc.fill_null(encoded.indices, len(hashed)).to_numpy()
    targets = np.append(hashed, keyless)[places]
    if batch.meta.given_ids:
        without = np.flatnonzero(places == len(hashed))
        ids = batch.ids()
        targets[without] = _hashed([ids[place] for place in without.tolist()], partitions)
    return targets


def _hashed(values: list[bytes], partitions: int) -> np.ndarray:
    hashes = np.fromiter(map(_hash, values), dtype=np.uint64, count=len(values))
    return (hashes % np.uint64(partitions)).astype(np.int64)
