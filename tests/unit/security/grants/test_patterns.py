"""Patterns of resources: what they take in, and that nothing in them but `*` has a meaning."""

from __future__ import annotations

import re
import time

import pytest

from sealane.errors import InvalidArgument
from sealane.security.grants.patterns import PATTERN_PART_CHARS_MAX, check_pattern, contains, takes_in


@pytest.mark.parametrize(
    ("pattern", "resource", "expected"),
    [
        ("shop/orders", "shop/orders", True),
        ("shop/orders", "shop/orders2", False),
        ("shop/*", "shop/orders", True),
        ("shop/*", "bank/orders", False),
        ("shop/or*rs", "shop/orders", True),
        ("*/orders", "bank/orders", True),
        ("s*p/o*", "shop/orders", True),
        ("~/*", "home/orders", True),
        ("~/*", "shop/orders", False),
        ("*/*", "_system/audit", False),
        ("_system/audit", "_system/audit", True),
        ("_s*/audit", "_system/audit", True),
        ("shop/*", "shop/_inner", False),
        ("shop/_*", "shop/_inner", True),
    ],
)
def test_a_pattern_takes_in_what_it_says(pattern: str, resource: str, expected: bool) -> None:
    assert takes_in(pattern, resource, "home") is expected


def test_a_star_takes_in_the_systems_only_where_that_is_asked_for() -> None:
    assert takes_in("*/*", "_system/audit", "home", system_domains=True)
    assert takes_in("shop/*", "shop/_inner", "home", system_names=True)


@pytest.mark.parametrize("own", ["_system", "~"])
def test_nobody_owns_the_domain_of_the_system_or_of_everyone(own: str) -> None:
    assert not takes_in("~/*", f"{own}/audit", own, system_domains=True)


@pytest.mark.parametrize(
    "hostile", ["shop/orders.*", "shop/[a-z]+", "shop/(a|b)", "shop/.", "shop/a?", "shop/^orders$", "shop/\\w"]
)
def test_an_expression_in_a_pattern_is_refused_or_means_its_characters(hostile: str) -> None:
    assert not takes_in(hostile, "shop/ordersX", "home")
    assert takes_in(hostile.replace("*", ""), hostile.replace("*", ""), "home")


def test_a_star_in_a_name_that_is_asked_for_is_a_character_like_others() -> None:
    assert not takes_in("shop/orders", "shop/*", "home")
    assert not takes_in("shop/orders", "*/orders", "home")


def test_a_newline_does_not_end_a_name() -> None:
    assert not takes_in("shop/orders", "shop/orders\n", "home")
    assert not takes_in("shop/orders", "shop/orders\nshop/other", "home")


def test_a_pattern_of_many_stars_is_decided_at_once() -> None:
    hostile = "shop/" + "a*" * 63 + "b"
    began = time.process_time()
    assert not takes_in(hostile, "shop/" + "a" * 128, "home")
    assert time.process_time() - began < 1.0


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("orders", "no slash"),
        ("shop/orders/eu", "more than one slash"),
        ("/orders", "empty domain"),
        ("shop/", "empty name"),
        ("shop/ord ers", "another character in its name"),
        ("sh~p/orders", "another character in its domain"),
        ("shop/~", "another character in its name"),
        ("shop/[a-z]", "another character in its name"),
        ("shop/ordérs", "another character in its name"),
        ("shop/" + "x" * (PATTERN_PART_CHARS_MAX + 1), "129 characters, the limit is 128"),
    ],
)
def test_what_is_no_pattern_is_refused_with_its_reason(pattern: str, problem: str) -> None:
    with pytest.raises(InvalidArgument, match=re.escape(problem)):
        check_pattern(pattern)


@pytest.mark.parametrize("pattern", ["shop/orders", "~/*", "*/*", "_system/audit", "a.b-c_1/x" + "x" * 127])
def test_what_is_a_pattern_is_taken(pattern: str) -> None:
    check_pattern(pattern)


@pytest.mark.parametrize(
    ("outer", "inner", "expected"),
    [
        ("shop/*", "shop/orders", True),
        ("shop/*", "shop/o*", True),
        ("shop/*", "shop/*", True),
        ("shop/o*", "shop/*", False),
        ("shop/o*s", "shop/orders*", False),
        ("shop/*", "*/*", False),
        ("shop/*", "s*/orders", False),
        ("shop/*", "~/orders", False),
        ("~/*", "~/orders", False),
        ("~/*", "shop/orders", True),
        ("*/*", "~/orders", True),
        ("*/orders", "*/orders", True),
    ],
)
def test_a_pattern_contains_another_only_if_it_takes_in_all_that_could_be(
    outer: str, inner: str, expected: bool
) -> None:
    assert contains(outer, inner, own_domain="shop") is expected
