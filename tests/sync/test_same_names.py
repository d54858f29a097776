"""The blocking client has the names and options of the asynchronous one, so that knowing one is knowing both."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import sealane
from sealane.client.consumer import BatchConsumption, MessageConsumption
from sealane.client.sync import SyncBatchConsumption, SyncMessageConsumption

TWINS: list[tuple[type[Any], type[Any]]] = [
    (sealane.Lane, sealane.SyncLane),
    (sealane.Message, sealane.SyncMessage),
    (sealane.MessageBatch, sealane.SyncMessageBatch),
    (sealane.Producer, sealane.SyncProducer),
    (sealane.Transaction, sealane.SyncTransaction),
    (MessageConsumption, SyncMessageConsumption),
    (BatchConsumption, SyncBatchConsumption),
]

WITHIN_THE_PACKAGE = {
    sealane.Lane: {"abandon", "commit_transaction", "outgoing_for", "schema_of"},
    sealane.Producer: {"send_rows", "close"},
    MessageConsumption: {"abandon", "open", "shut", "next_opened", "settle_first"},
    BatchConsumption: {"abandon", "open", "shut", "next_batch"},
}
"""What only other parts of the client call."""

ONLY_BLOCKING = {
    sealane.SyncLane: {"open", "lane"},
    sealane.SyncMessageBatch: {"of"},
    SyncMessageConsumption: {"take"},
    SyncBatchConsumption: {"take"},
}

OPTIONS_WITHIN_THE_PACKAGE = {"hurried"}

RETURNS_A_TWIN = {"consume", "consume_batches", "producer", "transaction"}


def public(kind: type[Any]) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


@pytest.mark.parametrize(("awaited", "blocking"), TWINS, ids=lambda kind: kind.__name__)
def test_both_have_the_same_names(awaited: type[Any], blocking: type[Any]) -> None:
    names = public(awaited) - WITHIN_THE_PACKAGE.get(awaited, set())
    missing, extra = names - public(blocking), public(blocking) - names - ONLY_BLOCKING.get(blocking, set())
    assert not missing, f"add to {blocking.__name__}: {sorted(missing)}"
    # A property of the blocking one may be an attribute of the other.
    assert all(isinstance(getattr(blocking, name), property) for name in extra), sorted(extra)


@pytest.mark.parametrize(("awaited", "blocking"), TWINS, ids=lambda kind: kind.__name__)
def test_both_take_the_same_options(awaited: type[Any], blocking: type[Any]) -> None:
    for name in public(awaited) & public(blocking):
        ours, theirs = getattr(blocking, name), getattr(awaited, name)
        if not callable(ours):
            continue
        mine, other = inspect.signature(ours), inspect.signature(theirs)
        expected = {key: each for key, each in other.parameters.items() if key not in OPTIONS_WITHIN_THE_PACKAGE}
        assert dict(mine.parameters) == expected, name
        assert not inspect.iscoroutinefunction(ours), f"{name} must be called without await"
        if name not in RETURNS_A_TWIN:
            assert mine.return_annotation == other.return_annotation, name


@pytest.mark.parametrize("name", ["connect", "embedded"])
def test_both_are_opened_with_the_same_options(name: str) -> None:
    blocking, awaited = getattr(sealane, f"{name}_sync"), getattr(sealane, name)
    assert inspect.signature(blocking).parameters == inspect.signature(awaited).parameters
    assert blocking.__name__ == f"{name}_sync"
