"""What follows from a receiver's answer."""

from __future__ import annotations

import pytest

from sealane.node.webhooks.verdicts import RETRY_AFTER_SECONDS_MAX, Answer, judge, retry_after_seconds

NOW = 1_445_412_480.0
"""Wed, 21 Oct 2015 07:28:00 GMT."""


@pytest.mark.parametrize(
    ("status", "does", "outcome"),
    [
        (200, "ack", "2xx"),
        (204, "ack", "2xx"),
        (299, "ack", "2xx"),
        (301, "nack", "3xx"),
        (302, "nack", "3xx"),
        (304, "nack", "3xx"),
        (400, "nack", "4xx"),
        (404, "nack", "4xx"),
        (410, "stop", "4xx"),
        (429, "nack", "4xx"),
        (500, "nack", "5xx"),
        (503, "nack", "5xx"),
        (599, "nack", "5xx"),
        (999, "nack", "5xx"),
    ],
)
def test_only_2xx_is_an_ack(status: int, does: str, outcome: str) -> None:
    verdict = judge(Answer(status), NOW)
    assert (verdict.does, verdict.outcome, verdict.delay_seconds) == (does, outcome, None)
    assert does == "ack" or str(status) in verdict.reason


@pytest.mark.parametrize(("status", "delay"), [(429, 120), (503, 120), (500, None), (200, None), (404, None)])
def test_retry_after_counts_where_the_receiver_asks_to_wait(status: int, delay: float | None) -> None:
    assert judge(Answer(status, "120"), NOW).delay_seconds == delay


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("0", 0),
        (" 30 ", 30),
        ("Wed, 21 Oct 2015 07:28:30 GMT", 30),
        ("Wed, 21 Oct 2015 07:27:00 GMT", 0),
        ("Wed, 21 Oct 2015 07:28:30 -0000", 30),
        ("Fri, 31 Dec 9999 23:59:59 GMT", RETRY_AFTER_SECONDS_MAX),
        (str(int(RETRY_AFTER_SECONDS_MAX) + 1), RETRY_AFTER_SECONDS_MAX),
        ("9" * 5_000, RETRY_AFTER_SECONDS_MAX),
        (None, None),
        ("", None),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("²", None),
        ("Wed, 99 Oct 2015 99:28:00 GMT", None),
    ],
)
def test_retry_after_is_read_in_both_forms_and_bounded(header: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(header, NOW) == seconds
