"""Whose quota counts, what is left of it, and who shares it."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from sealane.engine.local import DiskFiles, LocalEngine, StorageSettings
from sealane.engine.memory import MemoryEngine
from sealane.errors import CorruptData, InvalidArgument, QuotaNotFound, RateLimited
from sealane.node.surroundings import of_this_machine
from sealane.security.principals import ADMIN, Principal
from sealane.security.quotas import quotas as module
from sealane.security.quotas.quotas import NO_LIMIT, SUBJECT_CHARS_MAX, Allowance, Quota, Quotas, Subject, subject_of
from sealane.security.settings import QuotaSettings
from tests.unit.security.identities import vault_of

BILLING = Principal("billing", "shop", kind="key")
STOCK = Principal("stock", "shop", kind="certificate")
OF_BILLING, OF_SHOP = Subject("principal", "billing"), Subject("domain", "shop")


def quotas_of(**settings: int) -> Quotas:
    return Quotas(vault_of(MemoryEngine(of_this_machine().clock)), QuotaSettings(**settings))


def refusal(allowance: Allowance, now: float = 0.0, **used: int) -> RateLimited:
    with pytest.raises(RateLimited) as caught:
        allowance.charge(now, **used)
    return caught.value


def test_without_a_quota_there_is_nothing_to_ask() -> None:
    assert not quotas_of().allowance(BILLING, 0).limited


def test_a_refusal_says_whose_quota_it_is_and_how_long_to_wait() -> None:
    allowance = quotas_of(principal_messages_per_second=10).allowance(BILLING, 0)
    allowance.charge(0, messages=20)

    error = refusal(allowance, messages=5)

    assert (error.subject, error.what, error.limit) == ("principal 'billing'", "messages", 10)
    assert error.retry_after_seconds == pytest.approx(0.5)
    allowance.charge(0.5, messages=5)


def test_the_longest_wait_is_told_and_nothing_is_taken_from_the_other_buckets() -> None:
    quotas = quotas_of(principal_messages_per_second=10, domain_bytes_per_second=100)
    allowance = quotas.allowance(BILLING, 0)
    allowance.charge(0, messages=1, bytes_count=200)

    error = refusal(allowance, messages=1, bytes_count=100)

    assert (error.subject, error.what) == ("domain 'shop'", "bytes")
    assert error.retry_after_seconds == pytest.approx(1.0)
    assert quotas.left(OF_BILLING, 0) == {"messages": 19.0}


def test_each_request_counts_as_one() -> None:
    allowance = quotas_of(principal_requests_per_second=1).allowance(BILLING, 0)
    allowance.charge(0)
    allowance.charge(0, messages=1_000)
    assert refusal(allowance).what == "requests"


def test_principals_of_a_domain_share_its_bucket_and_have_their_own() -> None:
    quotas = quotas_of(principal_messages_per_second=10, domain_messages_per_second=15)
    quotas.allowance(BILLING, 0).charge(0, messages=20)

    assert refusal(quotas.allowance(BILLING, 0), messages=1).subject == "principal 'billing'"
    stock = quotas.allowance(STOCK, 0)
    stock.charge(0, messages=10)
    assert refusal(stock, messages=1).subject == "domain 'shop'"


def test_coming_in_again_does_not_fill_the_bucket() -> None:
    quotas = quotas_of(principal_messages_per_second=10)
    allowance = quotas.allowance(BILLING, 0)
    allowance.charge(0, messages=20)
    del allowance
    gc.collect()

    assert refusal(quotas.allowance(BILLING, 0), messages=1).what == "messages"


async def test_whoever_is_local_has_only_what_was_said_of_it_by_name() -> None:
    quotas = quotas_of(principal_messages_per_second=1, domain_messages_per_second=1)
    allowance = quotas.allowance(ADMIN, 0)
    assert not allowance.limited
    assert quotas.connections_max(ADMIN) is None

    await quotas.set(Subject("principal", ADMIN.name), Quota(messages_per_second=5, connections_max=3), 0)

    assert allowance.limited
    assert quotas.connections_max(ADMIN) == 3
    allowance.charge(0, messages=10)
    assert refusal(allowance, messages=1).limit == 5


async def test_a_change_holds_for_open_sessions_and_keeps_what_was_used() -> None:
    quotas = quotas_of(principal_messages_per_second=10)
    allowance = quotas.allowance(BILLING, 0)
    allowance.charge(0, messages=20)

    await quotas.set(OF_BILLING, Quota(messages_per_second=100), 0)

    assert refusal(allowance, messages=10).retry_after_seconds == pytest.approx(0.1)
    allowance.charge(2, messages=200)


async def test_what_a_record_does_not_say_is_as_the_settings_say_and_zero_is_no_limit() -> None:
    quotas = quotas_of(principal_messages_per_second=10, principal_bytes_per_second=1_000)
    await quotas.set(OF_BILLING, Quota(messages_per_second=NO_LIMIT), 0)
    assert quotas.effective(OF_BILLING) == {"bytes": 1_000}

    await quotas.set(OF_BILLING, Quota(requests_per_second=7), 0)
    assert quotas.effective(OF_BILLING) == {"bytes": 1_000, "requests": 7}
    assert quotas.said(OF_BILLING) == Quota(messages_per_second=0, requests_per_second=7)


async def test_after_a_removal_the_settings_hold_again() -> None:
    quotas = quotas_of()
    allowance = quotas.allowance(BILLING, 0)
    await quotas.set(OF_BILLING, Quota(messages_per_second=1), 0)
    await quotas.set(OF_SHOP, Quota(messages_per_second=1), 0)
    assert [subject for subject, _ in quotas.all()] == [OF_SHOP, OF_BILLING]

    await quotas.remove(OF_BILLING, 0)
    await quotas.remove(OF_SHOP, 0)

    assert not allowance.limited
    assert quotas.all() == []
    with pytest.raises(QuotaNotFound, match=r"principal:billing"):
        await quotas.remove(OF_BILLING, 0)


@pytest.mark.parametrize(
    ("subject", "quota", "named"),
    [
        (OF_BILLING, Quota(), "quota"),
        (OF_BILLING, Quota(messages_per_second=-1), "messages_per_second"),
        (OF_SHOP, Quota(connections_max=1), "connections_max"),
    ],
)
async def test_a_quota_that_nothing_could_hold_is_refused(subject: Subject, quota: Quota, named: str) -> None:
    quotas = quotas_of()
    with pytest.raises(InvalidArgument) as caught:
        await quotas.set(subject, quota, 0)
    assert caught.value.argument == named
    assert quotas.all() == []


@pytest.mark.parametrize("key", ["topic:orders", "principal:", "domain", "principal:a\nb", "principal:" + 257 * "x"])
def test_a_subject_that_there_cannot_be_is_refused(key: str) -> None:
    with pytest.raises(InvalidArgument):
        subject_of(key)


def test_the_longest_name_of_a_subject_is_taken() -> None:
    name = "x" * SUBJECT_CHARS_MAX
    assert subject_of(f"principal:{name}") == Subject("principal", name)


def test_a_name_with_a_colon_is_one_name() -> None:
    assert subject_of("principal:external:anna") == Subject("principal", "external:anna")


def test_full_buckets_of_those_who_left_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BUCKETS_SWEPT_MIN", 10)
    quotas = quotas_of(principal_messages_per_second=10)
    quotas._sweep_at = 10
    staying = quotas.allowance(BILLING, 0)
    for number in range(1_000):
        quotas.allowance(Principal(f"guest{number}", kind="token"), number).charge(number, messages=1)

    assert len(quotas._buckets) < 30
    staying.charge(1_000, messages=20)
    assert refusal(quotas.allowance(BILLING, 1_000), 1_000, messages=1).subject == "principal 'billing'"


async def test_quotas_are_sealed_on_disk_and_there_after_a_restart(tmp_path: Path) -> None:
    surroundings = of_this_machine()

    async def opened() -> tuple[LocalEngine, Quotas]:
        engine = await LocalEngine.start(
            DiskFiles(tmp_path), settings=StorageSettings(), clock=surroundings.clock, entropy=surroundings.entropy
        )
        return engine, Quotas(vault_of(engine, engine.sealer), QuotaSettings())

    engine, quotas = await opened()
    await quotas.load()
    await quotas.set(OF_BILLING, Quota(messages_per_second=42), 0)
    (_, stored), *_ = await engine.scan("quota/")
    assert b"messages_per_second" not in stored.data
    await engine.close()

    engine, quotas = await opened()
    await quotas.load()
    assert quotas.effective(OF_BILLING) == {"messages": 42}
    key, value = (await engine.scan("quota/"))[0]
    await engine.put(key, bytes([value.data[0] ^ 1]) + value.data[1:], expected=value.version)
    with pytest.raises(CorruptData, match="changed or damaged"):
        await Quotas(vault_of(engine, engine.sealer), QuotaSettings()).load()
    await engine.close()
