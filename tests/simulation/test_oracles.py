"""Each oracle on small histories: a good one that it lets pass, and bad ones that it does not."""

from __future__ import annotations

import pytest

from tests.simulation.history import (
    AckRefused,
    ClockJumped,
    Damaged,
    Dead,
    DeclaredLost,
    Drained,
    Dropped,
    Extended,
    Fetched,
    Flushed,
    Granted,
    Logged,
    LogRead,
    Measured,
    Message,
    PublishAcked,
    PublishRefused,
    Redriven,
    Reread,
    SessionEnded,
    Sought,
    Started,
    Stopped,
    Subscribed,
    TransactionAborted,
    TransactionCalled,
    TransactionCommitted,
)
from tests.simulation.oracles import ORACLES, VIOLATIONS_MAX, judge
from tests.simulation.small_histories import (
    SUBSCRIBED,
    ack,
    acked,
    at,
    broken,
    called,
    confirmed,
    granted,
    history,
    logged,
    nacked,
)


def test_an_ordinary_run_offends_no_oracle():
    assert not broken(
        Started(),
        SUBSCRIBED,
        called("a", "b"),
        PublishAcked("p", ("a", "b"), (at(0), at(1))),
        granted("a", 0, held_until=30.0),
        granted("b", 1, held_until=30.0),
        confirmed(0),
        Stopped("power"),
        Started(),
        granted("b", 1, held_until=60.0),
        confirmed(1),
        Drained("t", "s"),
        *logged("a", "b"),
    )


def test_every_oracle_has_a_bad_history_here():
    bad = {name.removeprefix("BAD_") for name in globals() if name.startswith("BAD_")}
    assert bad == {oracle.__name__.upper() for oracle in ORACLES}


@pytest.mark.parametrize("name", [oracle.__name__ for oracle in ORACLES])
def test_each_oracle_objects_to_its_bad_histories(name):
    for events in globals()[f"BAD_{name.upper()}"]:
        assert broken(*events) == {name}, events


BAD_NO_ACKNOWLEDGED_LOSS = [
    [called("a"), acked("a", 0), *logged(None)],
    [called("a"), acked("a", 0), *logged()],
    [called("a"), called("b"), acked("a", 0), *logged("b")],
    [called("a"), Flushed("p", "t", ("a",)), *logged()],
]


def test_a_publish_that_was_not_acknowledged_may_be_lost():
    assert not broken(called("a"), *logged())


def test_a_loss_that_the_broker_declared_after_damage_is_excused():
    assert not broken(called("a"), acked("a", 0), Damaged("wal/1", 7), DeclaredLost("t", 0, 0, 1), *logged(None))


def test_a_damaged_journal_excuses_what_was_forgotten_but_no_loss():
    damage = [Damaged("wal/1", 7), DeclaredLost("t", 0, 3, 4, journal=True)]
    assert not broken(called("a"), granted("a", 0), confirmed(0), *damage, granted("a", 0, attempt=2))
    assert broken(called("a"), acked("a", 0), *damage, *logged(None)) == {"no_acknowledged_loss"}


def test_what_retention_has_trimmed_is_not_lost():
    assert not broken(called("a"), acked("a", 0), LogRead("t", 0, 1, 1))


BAD_DAMAGE_IS_DECLARED_ONLY_AFTER_DAMAGE = [
    [called("a"), acked("a", 0), DeclaredLost("t", 0, 0, 1), *logged(None)],
]

BAD_NOTHING_INVENTED = [
    [granted("a", 0)],
    [called("a"), granted("a", 0, intact=False)],
    [called("a"), Logged(at(0), "a", intact=False), LogRead("t", 0, 0, 1)],
    [called("a"), PublishRefused(("a",), "full"), granted("a", 0)],
    [TransactionCalled("x", (Message("a"),)), TransactionAborted("x"), granted("a", 0)],
]


def test_a_message_refused_once_and_published_later_may_be_delivered():
    assert not broken(called("a"), PublishRefused(("a",), "full"), called("a"), granted("a", 0))


BAD_STORED_ONCE = [
    [called("a", once=True), called("a", once=True), acked("a", 0), *logged("a", "a")],
    [called("a"), acked("a", 0), *logged("a", "a")],
]


def test_a_message_published_twice_without_an_id_may_be_there_twice():
    assert not broken(called("a"), called("a"), acked("a", 1), *logged("a", "a"))


BAD_PRODUCER_ORDER = [
    [called("a"), acked("a", 1), called("b"), acked("b", 0), *logged("b", "a")],
]


def test_publishes_in_flight_together_may_land_in_any_order():
    assert not broken(called("a"), called("b"), acked("a", 1), acked("b", 0), *logged("b", "a"))
    assert not broken(called("a"), acked("a", 1), called("b", producer="q"), acked("b", 0, producer="q"))


TRANSACTION = TransactionCalled("x", (Message("a"), Message("b")))

BAD_TRANSACTIONS_ALL_OR_NOTHING = [
    [TRANSACTION, *logged("a")],
    [TRANSACTION, TransactionCommitted("x"), *logged()],
    [TRANSACTION, TransactionCommitted("x"), *logged("a", "b", "a", "b")],
]


def test_a_transaction_of_unknown_outcome_may_be_there_or_not():
    assert not broken(TRANSACTION, *logged("a", "b"))
    assert not broken(TRANSACTION, *logged())
    assert not broken(TRANSACTION, TransactionAborted("x"), *logged())


def test_an_aborted_transaction_that_is_there_offends():
    assert "transactions_all_or_nothing" in broken(TRANSACTION, TransactionAborted("x"), *logged("a", "b"))


BAD_NO_GRANT_AFTER_CONFIRMED_ACK = [
    [called("a"), granted("a", 0), confirmed(0), granted("a", 0, attempt=2)],
    [
        called("a"),
        granted("a", 0),
        TransactionCalled("x", (), (("s", at(0)),)),
        TransactionCommitted("x"),
        granted("a", 0, attempt=2),
    ],
]


def test_an_ack_that_was_not_confirmed_may_be_forgotten():
    assert not broken(called("a"), granted("a", 0), ack(0), granted("a", 0, attempt=2))


def test_a_seek_brings_messages_back():
    assert not broken(called("a"), granted("a", 0), confirmed(0), Sought("t", "s"), granted("a", 0))


def test_what_was_granted_before_the_confirmation_may_arrive_after_it():
    assert not broken(called("a"), granted("a", 0), confirmed(0), granted("a", 0, attempt=2, granted_at=1.5))


def test_another_subscription_has_acks_of_its_own():
    assert not broken(called("a"), granted("a", 0), confirmed(0), Granted("other", "c", at(0), "a"))


BAD_ONE_HOLDER = [
    [called("a"), granted("a", 0, held_until=30.0), granted("a", 0, session="d", attempt=2)],
    [
        called("a"),
        granted("a", 0, held_until=2.0),
        Extended("s", "c", (at(0),), 30.0),
        granted("a", 0, session="d", attempt=2),
    ],
    [
        called("a"),
        granted("a", 0, held_until=2.0),
        ClockJumped(0.0),
        granted("a", 0, session="d", attempt=2, held_until=30.0),
        confirmed(0, session="c"),
    ],
]


def test_a_lease_ends_by_its_deadline_a_nack_a_restart_or_a_jump_of_the_clock():
    again = granted("a", 0, session="d", attempt=2)
    assert not broken(called("a"), granted("a", 0, held_until=2.0), again)
    assert not broken(called("a"), granted("a", 0, held_until=30.0), nacked(0), again)
    assert not broken(called("a"), granted("a", 0, held_until=30.0), Started(), again)
    assert not broken(called("a"), granted("a", 0, held_until=30.0), ClockJumped(60.0), again)


def test_in_broadcast_everyone_holds_the_message():
    events = [called("a"), granted("a", 0, held_until=30.0), granted("a", 0, session="d", held_until=30.0)]
    assert "one_holder" not in broken(Subscribed("t", "s", mode="broadcast"), *events)


BAD_ORDER_PER_PARTITION = [
    [called("a", "b"), granted("b", 1), granted("a", 0)],
    [called("a"), granted("a", 0), granted("a", 0)],
]


def test_priorities_redeliveries_and_what_went_back_may_come_out_of_turn():
    assert not broken(called("a"), called("b", plain=False), granted("b", 1), granted("a", 0))
    assert not broken(called("a", "b"), granted("b", 1), granted("a", 0, attempt=2))
    assert not broken(called("a", "b"), granted("b", 1), SessionEnded("t", "s", "d"), granted("a", 0))
    assert not broken(called("a", "b"), granted("b", 1), Started(), granted("a", 0))
    sent_twice = [Fetched("s", "d", (at(0),)), Fetched("s", "c", (at(1),)), Fetched("s", "c", (at(0),))]
    assert not broken(called("a", "b"), *sent_twice, granted("b", 1), granted("a", 0))
    assert not broken(called("a", "b"), granted("b", 1), granted("a", 0, session="d"))


BAD_TIMES_HOLD = [
    [called("a", delay=2.0, plain=False), granted("a", 0)],
    [called("a", ttl=1.0, may_expire=True), Started(), Started(), Started(), granted("a", 0)],
]


def test_delay_and_expiry_are_not_judged_when_the_clock_has_jumped():
    for jumped in (ClockJumped(40), ClockJumped(-40)):
        assert not broken(jumped, called("a", delay=2.0, plain=False), granted("a", 0))
    assert not broken(called("a", delay=1.0, plain=False), granted("a", 0))
    assert not broken(called("a", ttl=1.0, may_expire=True), granted("a", 0))


def test_leases_are_over_when_a_partition_was_read_again():
    held = [SUBSCRIBED, called("a"), granted("a", 0, held_until=30.0)]
    assert not broken(*held, Reread("t", 0), granted("a", 0, session="d"))
    assert broken(*held, Reread("t", 1), granted("a", 0, session="d")) >= {"one_holder"}


EXCLUSIVE = Subscribed("t", "s", mode="exclusive")

BAD_EXCLUSIVE_HAS_ONE_READER = [
    [EXCLUSIVE, called("a", "b"), granted("a", 0), granted("b", 1, session="d")],
]


def test_an_exclusive_subscription_goes_to_the_next_reader_when_one_leaves_or_the_process_ends():
    for between in (SessionEnded("t", "s", "c"), Started()):
        assert not broken(EXCLUSIVE, called("a", "b"), granted("a", 0), between, granted("b", 1, session="d"))
    assert not broken(SUBSCRIBED, called("a", "b"), granted("a", 0), granted("b", 1, session="d"))


BAD_DEAD_LETTERS_ONCE = [
    [SUBSCRIBED, called("a"), Dead("s", at(0), 2), Dead("s", at(0), 2)],
]


ALL_BACK = Redriven("t", "s", all_of_them=True)

BAD_REDRIVEN_ONCE = [
    [SUBSCRIBED, called("a"), ALL_BACK, Dead("s", at(0), 2, "a"), *logged("a")],
    [called("a"), ALL_BACK, Dead("s", at(0), 2, "a"), Logged(at(1), "a", only="s"), Logged(at(2), "a", only="s")],
    [called("a"), granted("a", 1), Redriven("t", "other"), Logged(at(1), "a", only="other")],
]


def test_dead_letters_that_stay_dead_or_come_back_once_are_fine():
    assert not broken(called("a"), Dead("s", at(0), 2, "a"), *logged("a"))
    assert not broken(called("a"), ALL_BACK, Dead("s", at(0), 2, "a"), Logged(at(1), "a", only="s"), granted("a", 1))


def test_a_message_may_die_again_after_a_seek():
    assert not broken(SUBSCRIBED, called("a"), Dead("s", at(0), 2), Sought("t", "s"), Dead("s", at(0), 2))
    assert not broken(SUBSCRIBED, called("a"), Dead("s", at(0), 2), Dead("other", at(0), 2))


KEY_SHARED = Subscribed("t", "s", mode="key-shared")
KEYED = [KEY_SHARED, called("a", key="k"), acked("a", 0), called("b", key="k"), acked("b", 1)]

BAD_ORDER_PER_KEY = [
    [*KEYED, granted("b", 1)],
    [*KEYED, granted("a", 0, held_until=30.0), granted("b", 1, session="d")],
    [*KEYED, granted("a", 0, held_until=30.0), granted("b", 1), nacked(0), granted("b", 1, attempt=2)],
    [*KEYED, granted("a", 0, held_until=30.0), granted("b", 1), Started(), granted("b", 1)],
]


def test_a_key_moves_to_another_session_once_its_messages_are_settled_or_back():
    first, second = granted("a", 0, held_until=30.0), granted("b", 1, session="d")
    assert not broken(*KEYED, first, confirmed(0), second)
    assert not broken(*KEYED, granted("a", 0, held_until=5.5), second)
    assert not broken(*KEYED, first, nacked(0), granted("a", 0, session="d", attempt=2), second)
    assert not broken(*KEYED, first, nacked(0), second, Dead("s", at(0), 1))
    assert not broken(*KEYED, first, TransactionCalled("x", (), (("s", at(0)),)), second)
    assert not broken(*KEYED, first, Damaged("wal/1", 7), DeclaredLost("t", 0, 0, 1), second)


def test_different_keys_know_no_order_among_them():
    other = [called("c", key="other"), acked("c", 2)]
    assert not broken(*KEYED, *other, granted("c", 2, session="d"), granted("a", 0), granted("b", 1))


LIMITED = Subscribed("t", "s", attempts_max=2)

BAD_ATTEMPTS_WITHIN_LIMIT = [
    [LIMITED, called("a"), granted("a", 0, attempt=3)],
    [LIMITED, called("a"), granted("a", 0), granted("a", 0, attempt=2), granted("a", 0, attempt=2)],
    [LIMITED, called("a"), granted("a", 0, attempt=2), granted("a", 0, attempt=2)],
    [LIMITED, called("a"), granted("a", 0), Dead("s", at(0), 2), granted("a", 0, attempt=2)],
]


def test_each_later_life_may_add_one_attempt():
    lives = [Started(), granted("a", 0), granted("a", 0, attempt=2), Started(), granted("a", 0, attempt=2)]
    assert not broken(LIMITED, called("a"), *lives)
    assert broken(LIMITED, called("a"), *lives, Sought("t", "x"), granted("a", 0, attempt=3))


def test_while_a_seek_is_under_way_attempts_may_begin_again():
    sought = Sought("t", "s")
    again = granted("a", 0, session="d")
    assert not broken(LIMITED, called("a"), sought, granted("a", 0), again, sought, granted("a", 0))
    assert broken(LIMITED, called("a"), sought, sought, granted("a", 0), granted("a", 0))


BAD_EVERYTHING_SETTLES = [
    [SUBSCRIBED, called("a"), acked("a", 0), Drained("t", "s")],
    [SUBSCRIBED, called("a"), acked("a", 0), granted("a", 0), nacked(0), Drained("t", "s")],
    [
        SUBSCRIBED,
        called("a"),
        acked("a", 0),
        granted("a", 0),
        ack(0),
        AckRefused("s", "c", (at(0),)),
        Drained("t", "s"),
    ],
    [SUBSCRIBED, called("a"), acked("a", 0), granted("a", 0), ack(0), granted("a", 0, attempt=2), Drained("t", "s")],
    [SUBSCRIBED, called("a"), *logged("a"), Drained("t", "s")],
    [
        SUBSCRIBED,
        called("a"),
        acked("a", 0),
        granted("a", 0),
        TransactionCalled("x", (), (("s", at(0)),)),
        TransactionAborted("x"),
        Drained("t", "s"),
    ],
]


def test_a_message_may_end_in_many_ways():
    start = [SUBSCRIBED, called("a"), acked("a", 0)]
    assert not broken(*start, granted("a", 0), ack(0), Drained("t", "s"))
    assert not broken(*start, Dead("s", at(0), 16), Drained("t", "s"))
    again = [granted("a", 0), granted("a", 0, session="d", attempt=2)]
    refused = [ack(0, session="d"), ack(0), AckRefused("s", "c", (at(0),))]
    assert not broken(*start, *again, *refused, Drained("t", "s"))
    assert not broken(*start, Drained("t", "s", (at(0),)))
    assert not broken(*start, Dropped((at(0),)), Drained("t", "s"))
    assert not broken(SUBSCRIBED, called("a", may_expire=True), acked("a", 0), Drained("t", "s"))
    assert not broken(Subscribed("t", "s", only_key="k"), called("a"), acked("a", 0), Drained("t", "s"))
    assert not broken(called("a"), acked("a", 0), Subscribed("t", "s", from_start=False), Drained("t", "s"))
    assert not broken(Subscribed("t", "s", settles=False), called("a"), acked("a", 0), Drained("t", "s"))


BAD_FILTERS_HOLD = [
    [Subscribed("t", "s", only_key="k"), called("a", key="other"), granted("a", 0)],
]

BAD_MEMORY_BOUNDED = [
    [Measured("tail bytes", 101, 100)],
]


def test_memory_at_its_limit_is_fine():
    assert not broken(Measured("tail bytes", 100, 100))


def test_only_the_first_few_violations_of_a_kind_are_told():
    violations = judge(history(*(granted(f"m{n}", n) for n in range(VIOLATIONS_MAX + 3))))
    assert len(violations) == VIOLATIONS_MAX
    assert "m0 at t:0@0" in str(violations[0])
