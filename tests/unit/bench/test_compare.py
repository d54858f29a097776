"""Whether a change made it faster: what the interval says of planted differences, and of none."""

from __future__ import annotations

import math
import random
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from bench import compare
from bench.significance import PAIRS_MIN, Interval, interval, rank_sums_to_cut
from bench.trees import ROOT, NoSuchTree, tree
from bench.work import Part
from tests.unit.bench.planted import work


def measured(seed: int, rounds: int, times: float, noise: float = 0.05) -> tuple[list[float], list[float]]:
    """Pairs that share the machine's pace of their moment, and have noise of their own."""
    chance = random.Random(seed)
    pace = [chance.lognormvariate(13, 0.3) for _ in range(rounds)]
    return (
        [each * chance.lognormvariate(0, noise) for each in pace],
        [each * times * chance.lognormvariate(0, noise) for each in pace],
    )


@pytest.mark.parametrize("times", [1.25, 0.8])
def test_a_planted_difference_is_seen_almost_always(times: float) -> None:
    found = [interval(*measured(seed, 10, times)) for seed in range(200)]
    sure = [each.low > 1 if times > 1 else each.high < 1 for each in found]
    assert sum(sure) >= 198
    assert sum(each.low <= times <= each.high for each in found) >= 180


def test_no_difference_is_taken_for_one_in_at_most_a_twentieth_of_all_cases() -> None:
    found = [interval(*measured(seed, 10, 1.0)) for seed in range(2_000)]
    wrong = sum(not each.low <= 1 <= each.high for each in found)
    assert 40 <= wrong <= 130, "an interval of 95 % is wrong about once in twenty, and not never"


def test_one_round_that_was_disturbed_changes_nothing() -> None:
    before, after = measured(3, 10, 1.0)
    calm = interval(before, after)
    after[4] /= 50
    assert interval(before, after).low <= 1 <= interval(before, after).high
    assert interval(before, after).ratio == pytest.approx(calm.ratio, rel=0.05)


@pytest.mark.parametrize(("pairs", "cut"), [(6, 0), (8, 3), (10, 8), (15, 25), (20, 52)])
def test_the_cut_is_that_of_the_published_tables(pairs: int, cut: int) -> None:
    assert rank_sums_to_cut(pairs) == cut


def test_the_cut_is_that_of_counting_all_cases() -> None:
    sums = [sum(rank for rank, sign in enumerate(signs, 1) if sign) for signs in product((0, 1), repeat=9)]
    cut = rank_sums_to_cut(9)
    assert sum(each <= cut for each in sums) <= 0.025 * len(sums) < sum(each <= cut + 1 for each in sums)


def test_too_few_pairs_are_refused() -> None:
    with pytest.raises(ValueError, match="too few"):
        interval([1.0] * (PAIRS_MIN - 1), [2.0] * (PAIRS_MIN - 1))
    assert interval([1.0] * PAIRS_MIN, [2.0] * PAIRS_MIN).ratio == pytest.approx(2.0)
    with pytest.raises(ValueError, match="no pairs"):
        interval([1.0] * 10, [1.0] * 9)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Interval(1.12, 1.08, 1.17), "faster by 12 % (95 %: 8.0 to 17)"),
        (Interval(0.88, 0.83, 0.93), "slower by 12 % (95 %: 7.0 to 17)"),
        (Interval(1.0, 0.97, 1.04), "no difference seen (95 %: −3.0 to +4.0 %)"),
        (Interval(1.0, 1.0, 1.0), "no difference seen (95 %: +0.0 to +0.0 %)"),
    ],
)
def test_the_verdict_is_in_words(found: Interval, words: str) -> None:
    assert found.verdict == words


def test_less_time_is_faster() -> None:
    slow, quick = [{"p50": 2.0}] * 6, [{"p50": 1.0}] * 6
    timed = work(parts=(Part("p50", "time", "ms", less_is_better=True),))
    (found,) = compare.summed_up(timed, {}, slow, quick, 0.0)
    assert found.speed.ratio == pytest.approx(2.0)
    assert found.verdict.startswith("faster by 100 %")


def test_values_that_have_no_ratio_are_left_out() -> None:
    assert compare.summed_up(work(), {"count": 1}, [{"rate": 0.0}] * 6, [{"rate": 1.0}] * 6, 0.0) == []


def planted_tree(directory: Path) -> Path:
    package = directory / "src" / "sealane"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("PLANTED = True\n")
    return directory


def test_processes_import_the_tree_that_is_measured_though_another_is_installed(tmp_path: Path) -> None:
    (tmp_path / "held").mkdir()
    with tree(str(planted_tree(tmp_path / "checkout")), tmp_path / "held") as code:
        # As a node is started: by a process that was itself started with this environment.
        inner = (
            "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import sealane; print(sealane.PLANTED)'])"
        )
        said = subprocess.run(
            [sys.executable, "-c", inner], cwd=ROOT, env=code.environment(), capture_output=True, text=True, check=True
        )
        assert said.stdout == "True\n"
        assert code.has(str(code.source / "sealane"))
        assert not code.has(str(ROOT / "src" / "sealane"))


def test_a_copy_does_not_change_when_its_checkout_does(tmp_path: Path) -> None:
    checkout = planted_tree(tmp_path / "checkout")
    (tmp_path / "held").mkdir()
    with tree(str(checkout), tmp_path / "held") as code:
        (checkout / "src" / "sealane" / "__init__.py").write_text("raise ValueError\n")
        assert (code.source / "sealane" / "__init__.py").read_text() == "PLANTED = True\n"


def test_a_name_that_is_nothing_is_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(NoSuchTree, match="'no-such-thing' is no revision"), tree("no-such-thing", tmp_path):
        pass


def test_a_round_that_ran_other_code_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "held").mkdir()
    said = f'{{"values": {{"rate": 1.0}}, "packages": ["{ROOT / "src" / "sealane"}"]}}'
    script = ["-c", f"print({said!r})"]
    monkeypatch.setattr(compare, "python", lambda *_: [sys.executable, *script])
    with (
        tree(str(planted_tree(tmp_path / "checkout")), tmp_path / "held") as code,
        pytest.raises(compare.RoundFailed, match=r"ran .*/src/sealane, not "),
    ):
        compare.measured(work(), code, True, tmp_path)


def test_a_round_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "held").mkdir()
    monkeypatch.setattr(compare, "python", lambda *_: [sys.executable, "-c", "raise ValueError('broken')"])
    with (
        tree(str(planted_tree(tmp_path / "checkout")), tmp_path / "held") as code,
        pytest.raises(compare.RoundFailed, match="ValueError: broken"),
    ):
        compare.measured(work(), code, True, tmp_path)


def test_the_interval_is_symmetric_in_its_two_sides() -> None:
    before, after = measured(11, 12, 1.1)
    there, back = interval(before, after), interval(after, before)
    assert math.isclose(there.low * back.high, 1.0)
    assert math.isclose(there.ratio * back.ratio, 1.0)
