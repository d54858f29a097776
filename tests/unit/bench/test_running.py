"""Rounds: their order, what becomes of failures, and what is chosen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench import __main__ as command_line
from bench import whole_run
from bench.figures import SEALANE, at_percent
from bench.running import Sealane, measure_beside, told
from bench.whole_run import chosen_works
from bench.works import BESIDE_PEERS, GROUPS, WORKS
from tests.unit.bench.planted import PlantedSystem, Silent, work


def measure(*systems: PlantedSystem, rounds: int, **fields: Any):
    watcher = Silent()
    outcome = measure_beside(work(**fields), systems, rounds=rounds, quick=False, run="now", watcher=watcher)
    return outcome, watcher


def test_rounds_go_over_all_systems_there_and_back() -> None:
    log: list[str] = []
    systems = [PlantedSystem(name, [1.0] * 4, log) for name in ("a", "b", "c")]
    measure(*systems, rounds=4)
    assert "".join(log) == "abccbaabccba"


def test_a_figure_is_the_median_of_its_rounds_and_keeps_them_all() -> None:
    outcome, _ = measure(PlantedSystem(SEALANE, [5.0, 1.0, 90.0]), rounds=3)
    (figure,) = outcome.figures
    assert (figure.value, figure.rounds) == (5.0, (5.0, 1.0, 90.0))
    assert (figure.name, figure.reach, figure.reached) == ("1,000 messages", 100.0, False)
    assert len(figure.foreign) == 3
    assert all(0 <= share <= 1 for share in figure.foreign)
    assert at_percent(figure.samples, 100) == 91.0


def test_a_peer_has_no_reach() -> None:
    outcome, _ = measure(PlantedSystem("peer", [5.0]), rounds=1)
    assert outcome.figures[0].reach is None


def test_a_system_that_fails_is_told_of_and_the_others_go_on() -> None:
    bad, good = PlantedSystem("bad", [1.0, OSError("no more room")]), PlantedSystem("good", [1.0, 2.0, 3.0])
    outcome, watcher = measure(bad, good, rounds=3)
    assert [figure.system for figure in outcome.figures] == ["good"]
    (failure,) = outcome.failures
    assert failure.system == "bad"
    assert "no more room" in failure.error
    assert "planted.py:" in failure.error
    assert bad.rounds == 2, "what has failed is not tried again"
    assert watcher.ended == 6, "a display that counts steps comes to its end"


def test_a_work_has_no_more_rounds_than_it_allows() -> None:
    outcome, _ = measure(PlantedSystem(SEALANE, [1.0, 2.0, 3.0]), rounds=3, rounds_max=2)
    assert outcome.figures[0].rounds == (1.0, 2.0)


def test_an_interruption_is_no_failure() -> None:
    class Interrupted(PlantedSystem):
        def measure(self, work, amounts):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(Interrupted(SEALANE, []), rounds=1)


def test_sealane_is_measured_in_an_empty_directory_that_goes_afterwards(tmp_path: Path) -> None:
    seen: list[Path] = []

    def measured(path: Path, amounts: object):
        assert list(path.iterdir()) == []
        (path / "data").write_text("much")
        seen.append(path)
        raise ValueError("in the middle")

    with pytest.raises(ValueError, match="in the middle"):
        Sealane(tmp_path).measure(work(measure=measured), {})
    assert seen[0].parent == tmp_path
    assert list(tmp_path.iterdir()) == []


def test_a_long_error_is_told_by_its_beginning_and_its_end() -> None:
    text = told(ValueError("begin" + "x" * 100_000 + "end"))
    assert text.startswith("ValueError: begin")
    assert text.endswith("end")
    assert len(text) < 5_000


def test_works_are_chosen_by_name_and_group_and_each_once() -> None:
    chosen = [each.name for each in chosen_works(["latency", "wire-1k", "latency-memory"])]
    assert chosen == ["latency", "latency-memory", "wire-1k"]
    assert chosen_works(["peers"]) == list(BESIDE_PEERS)
    with pytest.raises(KeyError):
        chosen_works(["nothing"])


def test_every_work_can_say_what_it_is() -> None:
    assert not set(GROUPS) & (set(WORKS) - {"fan-out", "crowd", "latency", "secrecy", "start-up"}), (
        "a name means one thing"
    )
    for each in WORKS.values():
        for quick in (False, True):
            titles = [each.titled(part, each.amounts_for(quick)) for part in each.parts]
            assert len(set(titles)) == len(titles)
            assert all("{" not in title for title in titles)
        assert set(each.quick) <= set(each.amounts)


@pytest.mark.parametrize(
    ("arguments", "peers"),
    [
        ([], []),
        (["--only", "peers"], []),
        (["--only", "latency"], None),
        (["--only", "latency", "--peers"], []),
        (["--only", "latency", "--peers", "zeromq"], ["zeromq"]),
        (["--only", "peers", "--no-peers"], None),
    ],
)
def test_peers_take_part_in_everything_and_where_they_are_asked_for(
    arguments: list[str], peers: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[whole_run.Choice] = []

    def run(choice: whole_run.Choice, console: object) -> int:
        asked.append(choice)
        return 1

    monkeypatch.setattr(whole_run, "run", run)
    assert command_line.main(arguments) == 1, "the exit code is the run's"
    assert asked[0].peers == peers
