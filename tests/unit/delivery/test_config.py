"""What a subscription may be asked for."""

from __future__ import annotations

import math

import pytest

from sealane.delivery.config import ATTEMPTS_MAX, LEASE_SECONDS_MAX, MODES, Retry, SubscriptionConfig, check_config
from sealane.errors import InvalidArgument


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_is_accepted(mode: str) -> None:
    check_config(SubscriptionConfig(mode=mode))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "config",
    [
        SubscriptionConfig(lease_seconds=LEASE_SECONDS_MAX),
        SubscriptionConfig(lease_seconds=0.001),
        SubscriptionConfig(retry=Retry(attempts_max=1)),
        SubscriptionConfig(retry=Retry(attempts_max=ATTEMPTS_MAX)),
        SubscriptionConfig(retry=Retry(delay_seconds=0, delay_seconds_max=0)),
        SubscriptionConfig(retry=Retry(kind="fixed", delay_seconds=3_600)),
    ],
)
def test_values_at_the_edge_are_accepted(config: SubscriptionConfig) -> None:
    check_config(config)


@pytest.mark.parametrize(
    ("config", "argument"),
    [
        (SubscriptionConfig(mode="shared"), "mode"),  # type: ignore[arg-type]
        (SubscriptionConfig(lease_seconds=0), "lease_seconds"),
        (SubscriptionConfig(lease_seconds=LEASE_SECONDS_MAX + 0.001), "lease_seconds"),
        (SubscriptionConfig(lease_seconds=math.nan), "lease_seconds"),
        (SubscriptionConfig(retry=Retry(kind="linear")), "retry.kind"),  # type: ignore[arg-type]
        (SubscriptionConfig(retry=Retry(attempts_max=0)), "retry.attempts_max"),
        (SubscriptionConfig(retry=Retry(attempts_max=ATTEMPTS_MAX + 1)), "retry.attempts_max"),
        (SubscriptionConfig(retry=Retry(delay_seconds=-1)), "retry.delay_seconds"),
        (SubscriptionConfig(retry=Retry(delay_seconds=math.nan)), "retry.delay_seconds"),
        (SubscriptionConfig(retry=Retry(delay_seconds_max=math.inf)), "retry.delay_seconds"),
        (SubscriptionConfig(retry=Retry(delay_seconds=10, delay_seconds_max=5)), "retry.delay_seconds_max"),
    ],
)
def test_values_that_cannot_work_are_refused_by_name(config: SubscriptionConfig, argument: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        check_config(config)
    assert refused.value.argument == argument
