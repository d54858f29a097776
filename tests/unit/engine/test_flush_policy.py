"""Where a group is written: on the loop as long as that costs less than handing it over."""

from __future__ import annotations

from typing import Literal

import pytest

from sealane.engine.local.flush_policy import INLINE_COMMITS_MAX, SHORT_SECONDS_MAX, TRY_AGAIN_AFTER, FlushPolicy

SMALL_BYTES = 500
QUICK = SHORT_SECONDS_MAX / 2
SLOW = SHORT_SECONDS_MAX * 2
"""Longer than a hand-over, and not too long for the loop if nobody else waits."""


def policy(commit: Literal["auto", "inline", "thread"] = "auto") -> FlushPolicy:
    return FlushPolicy(commit, inline_bytes_max=1_000, inline_seconds_max=0.002)


def after(*seconds: float, commits: int = 1, inline: bool = True) -> FlushPolicy:
    """A policy that has seen small groups that took so long."""
    made = policy()
    for each in seconds:
        made.saw(commits, SMALL_BYTES, each, inline=inline)
    return made


def test_a_lone_small_commit_is_written_on_the_loop() -> None:
    assert policy().inline(1, SMALL_BYTES)


def test_a_large_group_is_not() -> None:
    assert policy().inline(1, 1_000)
    assert not policy().inline(1, 1_001)


def test_where_the_disk_is_quick_several_commits_are_too() -> None:
    assert after(*[QUICK] * 10, commits=64).inline(64, SMALL_BYTES)


def test_where_it_takes_longer_than_a_hand_over_several_commits_go_to_the_thread() -> None:
    made = after(*[SLOW] * 10)
    assert made.inline(1, SMALL_BYTES)
    assert not made.inline(int(INLINE_COMMITS_MAX) + 1, SMALL_BYTES)


def test_and_after_busy_groups_even_a_lone_commit_does_until_it_is_quiet_again() -> None:
    made = after(*[SLOW] * 10, commits=64)
    assert not made.inline(1, SMALL_BYTES)
    for _ in range(2 * TRY_AGAIN_AFTER):
        made.saw(1, SMALL_BYTES, SLOW, inline=made.inline(1, SMALL_BYTES))
    assert made.inline(1, SMALL_BYTES)


def test_a_disk_that_takes_long_once_in_a_while_is_still_a_quick_one() -> None:
    made = after(*[QUICK] * 20, 0.050, *[QUICK] * 20)
    assert made.inline(64, SMALL_BYTES)


def test_a_disk_that_became_slow_is_kept_off_the_loop() -> None:
    assert not after(*[0.010] * 10).inline(1, SMALL_BYTES)


def test_what_the_thread_took_does_not_count_as_what_the_loop_would_take() -> None:
    made = after(*[QUICK] * 10)
    for _ in range(100):
        made.saw(3, SMALL_BYTES, SLOW, inline=False)
    assert made.inline(3, SMALL_BYTES)


def test_the_loop_tries_again_now_and_then_and_finds_out_that_the_disk_is_quick_by_now() -> None:
    made = after(*[SLOW] * 20, commits=3)
    tried = 0
    for _ in range(40 * TRY_AGAIN_AFTER):
        inline = made.inline(3, SMALL_BYTES)
        tried += inline
        made.saw(3, SMALL_BYTES, QUICK, inline=inline)
    assert made.inline(3, SMALL_BYTES)
    assert tried > TRY_AGAIN_AFTER


def test_and_does_not_try_what_would_hold_everybody_up() -> None:
    made = after(*[0.010] * 10)
    for _ in range(10 * TRY_AGAIN_AFTER):
        assert not made.inline(3, SMALL_BYTES)
        made.saw(3, SMALL_BYTES, 0.010, inline=False)


def test_a_large_group_says_nothing_of_small_ones() -> None:
    made = policy()
    for _ in range(10):
        made.saw(1, 1_000_000, 0.010, inline=False)
    assert made.inline(1, SMALL_BYTES)


@pytest.mark.parametrize(("commit", "expected"), [("inline", True), ("thread", False)])
def test_a_fixed_choice_is_kept(commit: Literal["inline", "thread"], expected: bool) -> None:
    made = policy(commit)
    made.saw(100, 1_000_000, 1.0, inline=expected)
    assert made.inline(100, 1_000_000) is expected
