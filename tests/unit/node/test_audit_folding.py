"""Folding: a flood costs little, and nothing of it is lost."""

from __future__ import annotations

from sealane.node.audit_folding import FOLDS_MAX, Folds, Happening


def refusal(principal: str, address: str = "10.0.0.1") -> Happening:
    return Happening("forbidden", "refused", principal, address=address, resource="shop/orders")


def test_the_first_is_new_and_the_rest_are_counted() -> None:
    folds = Folds()
    assert folds.is_new(refusal("anna"), 0.0, 1.0)
    assert not any(folds.is_new(refusal("anna"), 0.5, 1.0) for _ in range(9))
    assert folds.is_new(refusal("bob"), 0.5, 1.0)
    assert folds.over(0.9) == []
    assert folds.over(1.0) == [refusal("anna").counted(9)]
    assert folds.is_new(refusal("anna"), 1.0, 1.0)


def test_what_happened_once_leaves_nothing_to_write() -> None:
    folds = Folds()
    folds.is_new(refusal("anna"), 0.0, 1.0)
    assert folds.over() == []
    assert len(folds) == 0


def test_strangers_do_not_decide_how_much_is_written() -> None:
    folds = Folds()
    new = [folds.is_new(refusal(f"guess-{number}", "10.0.0.1"), 0.0, 1.0) for number in range(FOLDS_MAX + 1_000)]
    assert sum(new) == FOLDS_MAX
    assert folds.over() == [
        Happening("forbidden", "refused", address="10.0.0.1", details=(("various", 1), ("count", 1_000)))
    ]


def test_not_even_from_many_addresses() -> None:
    folds = Folds()
    count = 5 * FOLDS_MAX
    written = sum(folds.is_new(refusal("x", f"10.0.{n // 250}.{n % 250}"), 0.0, 1.0) for n in range(count))
    folded = folds.over()
    assert written == FOLDS_MAX
    assert len(folded) <= FOLDS_MAX + 1
    assert written + sum(int(dict(each.details)["count"]) for each in folded) == count
