from __future__ import annotations

import pytest

from sealane.errors import InvalidName
from sealane.message import Limits, check_name, split_topic

LIMITS = Limits()


@pytest.mark.parametrize("name", ["orders", "a", "A.b_c-9", "...", "9", "x" * 128, "orders.billing.dead"])
def test_letters_digits_dots_underscores_and_dashes_make_a_name(name: str) -> None:
    check_name("topic", name, LIMITS)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "ä", "a\n", "x" * 129, "_system", "a\0", "٣"])
def test_other_names_are_refused_with_their_kind(name: str) -> None:
    with pytest.raises(InvalidName) as caught:
        check_name("subscription", name, LIMITS)
    assert caught.value.kind == "subscription"


def test_a_name_that_is_not_text_is_refused() -> None:
    with pytest.raises(InvalidName, match="text"):
        check_name("topic", b"orders", LIMITS)  # type: ignore[arg-type]


def test_the_system_may_use_names_that_start_with_an_underscore() -> None:
    check_name("topic", "_audit", LIMITS, system=True)


def test_the_refusal_of_a_long_name_gives_the_limit_and_stays_short() -> None:
    with pytest.raises(InvalidName, match="129 characters, the limit is 128") as caught:
        check_name("topic", "x" * 129, LIMITS)
    assert len(str(caught.value)) < 300


def test_a_topic_is_in_its_domain_or_in_the_default_one() -> None:
    assert split_topic("sales/orders") == ("sales", "orders")
    assert split_topic("orders") == ("default", "orders")
    assert split_topic("orders", "sales") == ("sales", "orders")
