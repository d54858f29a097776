"""The first sentence of the page, and the proof that it rests on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from sealane.pipeline.lake.tables import Lake
from sealane.pipeline.proving import Proof
from sealane.pipeline.report.figures import Figures, Proven
from sealane.pipeline.report.proofs import AMOUNTS, keep_proof, last_proof, proven_by
from sealane.pipeline.report.verdict import verdict
from tests.unit.pipeline.report.figures_of_a_month import UNTIL, broken_month, month


def balance(partition: int, **amounts: int) -> dict[str, Any]:
    place = {"domain": "shop", "topic": "orders", "partition": partition, "subscription": "billing"}
    return {**place, **dict.fromkeys(AMOUNTS, 0), **amounts}


def problem(name: str) -> dict[str, Any]:
    known = {"domain": "shop", "topic": "orders", "partition": 0, "offset": 7, "id": None, "subscription": None}
    return {"problem": name, "detail": "why", **known}


def proven(*balances: dict[str, Any], problems: list[dict[str, Any]] | None = None) -> Figures:
    return replace(month(), proven=proven_by(Proof(list(balances), problems or []), made=UNTIL))


def test_all_is_well() -> None:
    found = verdict(proven(balance(0, published=10, acked=10)))
    assert (found.level, found.sentence) == ("good", "Every message was settled once")
    assert found.detail == "Proven for 1 subscription on 1 Apr 2026 00:00 UTC."


def test_what_is_in_flight_and_what_died_is_said() -> None:
    found = verdict(proven(balance(0, published=9, acked=6, in_flight=2), balance(1, published=1, dead_lettered=1)))
    assert (found.level, found.sentence) == ("good", "Every message was settled once, or is under way")
    assert "2 deliveries are in flight." in found.detail
    assert "1 delivery ended as a dead letter" in found.detail


def test_what_is_wrong_is_counted() -> None:
    found = verdict(broken_month())
    assert (found.level, found.sentence) == ("bad", "3 messages are missing and 1 message is there twice")
    late = verdict(proven(balance(0), problems=[problem("out of order")]))
    assert late.sentence == "1 message was handed out too late"


def test_without_a_proof_nothing_is_claimed() -> None:
    found = verdict(replace(month(), proven=None))
    assert found.level == "open"
    assert "sealane pipeline reconcile" in found.detail
    assert verdict(replace(month(), span=None)).level == "open"


def test_the_last_proof_is_kept_and_partitions_are_summed_up(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    assert last_proof(lake) is None
    proof = Proof(
        [balance(0, published=4, acked=4), balance(1, published=3, acked=2, missing=1)], [problem("missing")] * 70
    )
    keep_proof(lake, proof, made=UNTIL)
    found = last_proof(lake)
    assert isinstance(found, Proven)
    assert found == proven_by(proof, made=UNTIL)
    (row,) = found.balance
    assert (row.topic, row.published, row.acked, row.missing) == ("shop/orders", 7, 6, 1)
    assert (len(found.problems), found.counts) == (50, {"missing": 70})
    assert (found.problems[0].id, found.problems[0].subscription) == ("unknown", "any")
