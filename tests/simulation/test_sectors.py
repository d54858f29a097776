"""The sparse bookkeeping of a file against the plain one: two whole copies."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from tests.simulation.sectors import Sectors

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 3000), st.integers(1, 1500)),
        st.tuples(st.just("truncate"), st.integers(0, 4000)),
        st.tuples(st.just("sync")),
    ),
    max_size=30,
)


@given(STEPS, st.integers(0, 1000))
def test_the_disk_holds_what_was_last_synced_and_a_power_loss_mixes_only_that_with_what_was_written(steps, seed):
    sectors = Sectors()
    cached, durable = bytearray(), b""
    for number, step in enumerate(steps, start=1):
        if step[0] == "write":
            _, position, length = step
            cached.extend(bytes(max(0, position - len(cached))))
            cached[position : position + length] = bytes([number]) * length
            sectors.write(position, bytes([number]) * length)
        elif step[0] == "truncate":
            del cached[step[1] :]
            cached.extend(bytes(step[1] - len(cached)))
            sectors.truncate(step[1])
        else:
            durable = bytes(cached)
            sectors.sync()
        assert sectors.cached == cached
        assert sectors._on_disk() == durable
    assert not sectors.clean or bytes(cached) == durable
    sectors.lose_power(random.Random(seed))
    assert sectors.clean
    for position, byte in enumerate(sectors.cached):
        before = durable[position : position + 1] or b"\0"
        after = bytes(cached[position : position + 1]) or b"\0"
        assert bytes([byte]) in (before, after, b"\0" if position >= min(len(durable), len(cached)) else before)
