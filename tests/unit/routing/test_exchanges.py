from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sealane.errors import FormatTooNew, InvalidArgument
from sealane.routing.exchanges import BINDINGS_MAX, ROUTING_KEY_BYTES_MAX, Binding, Exchange, _matches

words = st.sampled_from(["a", "b", "", "*", "#", "a+"])
keys = st.lists(words, min_size=1, max_size=6).map(".".join)


def reference(pattern: list[str], key: list[str]) -> bool:
    """The definition itself, word by word."""
    if not pattern:
        return not key
    if pattern[0] == "#":
        return any(reference(pattern[1:], key[taken:]) for taken in range(len(key) + 1))
    return bool(key) and pattern[0] in ("*", key[0]) and reference(pattern[1:], key[1:])


@settings(max_examples=1000)
@given(keys, keys)
def test_a_topic_pattern_matches_as_defined(pattern: str, key: str) -> None:
    routed = Exchange("topic").bind(pattern, "t").route(key)
    assert bool(routed) == reference(pattern.split("."), key.split("."))


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("orders.eu", ["orders.eu"], ["orders", "orders.eu.new", "orders.uk", ""]),
        ("orders.*", ["orders.eu", "orders."], ["orders", "orders.eu.new"]),
        ("orders.#", ["orders", "orders.eu", "orders.eu.new"], ["order", "x.orders"]),
        ("#", ["", "a", "a.b.c"], []),
        ("*", ["", "a"], ["a.b"]),
        ("#.new", ["new", "orders.new", "orders.eu.new"], ["new.orders", "renew"]),
        ("a.#.z", ["a.z", "a.b.z", "a.z.z"], ["a", "z", "a.b"]),
        ("*.#", ["a", "a.b"], []),
        ("a.+", ["a.+"], ["a.aa", "a.b"]),
        ("[a-z].$", ["[a-z].$"], ["a.", "a.$"]),
    ],
)
def test_star_is_one_word_hash_is_any_number_and_nothing_else_is_special(
    pattern: str, matching: list[str], other: list[str]
) -> None:
    exchange = Exchange("topic").bind(pattern, "t")
    assert [key for key in matching if exchange.route(key) != ("t",)] == []
    assert [key for key in other if exchange.route(key)] == []


def test_a_pattern_of_many_hashes_takes_steps_in_proportion_to_its_length() -> None:
    steps = 0

    class Word(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            nonlocal steps
            steps += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    pattern = [Word(word) for word in ["#", "a"] * 100 + ["b"]]
    assert not _matches(pattern, ["a"] * 400)
    assert steps < 20 * len(pattern) * 400


def test_a_direct_exchange_routes_by_the_very_key() -> None:
    exchange = Exchange("direct").bind("red", "warm").bind("blue", "cold").bind("*", "star")
    assert exchange.route("red") == ("warm",)
    assert exchange.route("green") == ()
    assert exchange.route("*") == ("star",)


def test_a_fanout_exchange_routes_to_all_whatever_the_key() -> None:
    exchange = Exchange("fanout").bind("", "b").bind("", "a")
    assert exchange.route("anything") == ("b", "a")


def test_topics_come_in_the_order_of_binding_and_once() -> None:
    exchange = Exchange("topic").bind("a.*", "two").bind("#", "one").bind("a.b", "two")
    assert exchange.route("a.b") == ("two", "one")


def test_binding_twice_is_binding_once_and_unbinding_takes_it_away() -> None:
    exchange = Exchange("direct").bind("k", "t")
    assert exchange.bind("k", "t") is exchange
    assert exchange.unbind("k", "other") is exchange
    assert exchange.unbind("k", "t").route("k") == ()
    assert exchange.route("k") == ("t",)


def test_an_exchange_without_bindings_routes_nothing() -> None:
    for kind in ("direct", "topic", "fanout"):
        assert Exchange(kind).route("a") == ()


@given(st.sampled_from(["direct", "topic", "fanout"]), st.lists(st.tuples(keys, st.text(max_size=5))))
def test_an_exchange_comes_back_from_its_bytes(kind: Any, bindings: list[tuple[str, str]]) -> None:
    exchange = Exchange(kind, tuple(Binding(*binding) for binding in bindings))
    assert Exchange.from_bytes(exchange.to_bytes()) == exchange


@given(st.binary(max_size=60))
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises((InvalidArgument, FormatTooNew)):
        Exchange.from_bytes(data)


def test_bytes_of_a_kind_that_does_not_exist_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="enum"):
        Exchange.from_bytes(msgspec.msgpack.encode((1, ("headers", ()))))


def test_bytes_that_are_not_utf_8_are_refused() -> None:
    with pytest.raises(InvalidArgument):
        Exchange.from_bytes(b"\x92\x01\x92\xa6direct\x91\x92\xa1\xff\xa1a")


def test_bytes_of_a_newer_version_ask_for_an_upgrade() -> None:
    with pytest.raises(FormatTooNew):
        Exchange.from_bytes(msgspec.msgpack.encode((2, {"anything": 1})))


def test_keys_and_patterns_may_be_as_long_as_the_limit_and_no_longer() -> None:
    fitting = "é" * (ROUTING_KEY_BYTES_MAX // 2)
    assert Exchange("topic").bind(fitting, "t").route(fitting) == ("t",)
    with pytest.raises(InvalidArgument, match=re.escape("1,025 bytes, the limit is 1,024")):
        Exchange("topic").bind(fitting + "x", "t")
    with pytest.raises(InvalidArgument, match="routing_key"):
        Exchange("topic").route(fitting + "x")


@pytest.mark.parametrize("key", [b"a", None, 5, "\ud800"])
def test_what_is_not_text_is_no_routing_key(key: Any) -> None:
    with pytest.raises(InvalidArgument, match="routing_key"):
        Exchange("fanout").route(key)


def test_bindings_have_a_limit() -> None:
    full = Exchange("direct", tuple(Binding(str(number), "t") for number in range(BINDINGS_MAX)))
    with pytest.raises(InvalidArgument, match="10,000"):
        full.bind("one more", "t")
    assert full.bind("0", "t") is full
    assert full.unbind("0", "t").bind("one more", "t").route("one more") == ("t",)


def test_an_exchange_is_a_value() -> None:
    with pytest.raises(AttributeError):
        Exchange("direct").kind = "topic"  # type: ignore[misc]
