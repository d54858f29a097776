"""What a consumer of the cipher door holds is found by the message's id and by its lease."""

from __future__ import annotations

from pyroaring import BitMap64

from sealane.doors.cipher.confirmed import CONFIRMED_REMEMBERED_MAX, Confirmed
from sealane.doors.cipher.holdings import Holdings, Place


def held(**ids: Place) -> Holdings:
    holdings = Holdings()
    for message_id, place in ids.items():
        holdings.add(message_id, place)
    return holdings


def test_a_message_is_held_until_it_is_forgotten() -> None:
    holdings = held(a=Place(0, 7, 10), b=Place(0, 7, 11))

    assert holdings.places("a") == [Place(0, 7, 10)]
    assert holdings.forget(Place(0, 7, 10))
    assert not holdings.forget(Place(0, 7, 10))
    assert holdings.places("a") == []
    assert (len(holdings), holdings.message_ids()) == (1, ["b"])


def test_messages_with_one_id_are_held_each() -> None:
    holdings = held(a=Place(0, 7, 10))
    holdings.add("a", Place(1, 3, 2))

    assert holdings.places("a") == [Place(0, 7, 10), Place(1, 3, 2)]
    holdings.forget(Place(0, 7, 10))
    assert (holdings.places("a"), len(holdings)) == ([Place(1, 3, 2)], 1)


def test_what_is_revoked_of_a_lease_is_told_and_the_rest_stays() -> None:
    holdings = held(a=Place(0, 7, 10), b=Place(0, 7, 11), c=Place(0, 8, 12))

    assert holdings.revoke(0, 7, BitMap64([11, 12, 13])) == ["b"]
    assert holdings.revoke(0, 99, BitMap64([10])) == []
    assert holdings.message_ids() == ["a", "c"]


def test_leases_that_have_ended_without_a_word_are_found_by_looking() -> None:
    holdings = held(a=Place(0, 7, 10), b=Place(0, 7, 11), c=Place(1, 8, 12))

    assert holdings.tidy(lambda partition, lease: partition == 1) == 2
    assert holdings.message_ids() == ["c"]


def test_all_of_it_is_given_back_by_lease() -> None:
    holdings = held(a=Place(0, 7, 10), b=Place(0, 7, 11), c=Place(1, 8, 12))

    assert holdings.take_all() == [(0, 7, BitMap64([10, 11])), (1, 8, BitMap64([12]))]
    assert (len(holdings), holdings.message_ids(), holdings.take_all()) == (0, [], [])


def test_only_the_last_confirmed_ids_are_remembered() -> None:
    confirmed = Confirmed()
    for number in range(CONFIRMED_REMEMBERED_MAX):
        confirmed.remember(str(number), "default/q")
    confirmed.remember("0", "default/other")
    confirmed.remember("new", "default/q")

    assert confirmed.topic_of("1") is None
    assert (confirmed.topic_of("0"), confirmed.topic_of("2")) == ("default/other", "default/q")
