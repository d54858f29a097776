"""What is remembered of runs, and the pages that are made of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import front_page, records, report
from bench.figures import SEALANE
from bench.ratios import best_durable, ratio
from bench.records import Failure, Record
from bench.works import WORKS
from tests.unit.bench.planted import EARLY, LATE, figure, page, results, run, stated


def early_record() -> Record:
    figures = [
        figure("latency", "received-p50", SEALANE, (1.0,), run=EARLY),
        figure("latency", "received-p99", SEALANE, (2.0,), run=EARLY),
        figure("latency", "received-p50", "quick", (3.0,), run=EARLY),
        figure("latency-memory", "received-p50", SEALANE, (0.5,), run=EARLY),
    ]
    return Record({EARLY: run(EARLY)}, figures)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    for group, record in results().groups.items():
        records.write(tmp_path / f"{group}.json", record)
        assert records.read(tmp_path / f"{group}.json") == record


def test_numbers_of_a_list_are_on_one_line(tmp_path: Path) -> None:
    records.write(tmp_path / "it.json", early_record())
    text = page(tmp_path / "it.json")
    assert '"rounds": [1.0],' in text
    assert json.loads(text)["version"] == records.VERSION


def test_a_file_of_another_version_is_as_none(tmp_path: Path) -> None:
    (tmp_path / "it.json").write_text('{"command": "make bench", "figures": []}')
    assert records.read(tmp_path / "it.json") == Record() == records.read(tmp_path / "none.json")


def test_measuring_a_part_again_leaves_the_rest() -> None:
    news = Record({LATE: run()}, [figure("latency", "received-p50", SEALANE, (9.0,))])
    merged = early_record().with_news(news)
    found = {(each.work, each.part, each.system): (each.value, each.run) for each in merged.figures}
    assert found == {
        ("latency", "received-p50", SEALANE): (9.0, LATE),
        ("latency", "received-p50", "quick"): (3.0, EARLY),
        ("latency-memory", "received-p50", SEALANE): (0.5, EARLY),
    }, "a percentile that was not measured again is not beside one that was"
    assert set(merged.runs) == {EARLY, LATE}


def test_a_run_of_which_nothing_is_left_is_forgotten() -> None:
    news = Record({LATE: run()}, [figure("latency", "received-p50", SEALANE, (9.0,))])
    old = Record({EARLY: run(EARLY)}, [figure("latency", "received-p50", SEALANE, (1.0,), run=EARLY)])
    assert set(old.with_news(news).runs) == {LATE}


def test_a_failure_takes_the_place_of_a_figure_and_a_figure_that_of_a_failure() -> None:
    measured = Record({EARLY: run(EARLY)}, [figure("latency", "received-p50", SEALANE, (1.0,), run=EARLY)])
    failed = Record({LATE: run()}, [], [Failure("latency", SEALANE, "broken", LATE)])
    assert (measured.with_news(failed).figures, measured.with_news(failed).failures) == ([], failed.failures)
    assert (failed.with_news(measured).figures, failed.with_news(measured).failures) == (measured.figures, [])


def test_works_that_are_no_more_are_forgotten() -> None:
    record = Record({LATE: run()}, [figure("carrier-pigeon", "rate", SEALANE, (1.0,))])
    assert record.without_unknown(WORKS).figures == []


def test_a_ratio_is_by_pairs_of_rounds_and_by_medians() -> None:
    found = ratio(figure("w", "p", SEALANE, (10, 40, 90)), figure("w", "p", "peer", (10, 20, 30)))
    assert found.by_rounds == (1.0, 2.0, 3.0)
    assert found.median_by_rounds == found.of_medians == found.value == 2.0


def test_a_ratio_of_times_is_above_one_where_sealane_takes_less() -> None:
    times = {"less_is_better": True}
    found = ratio(figure("w", "p", SEALANE, (1, 2, 3), **times), figure("w", "p", "peer", (4, 8, 12), **times))
    assert found.value == 4.0


def test_rounds_of_different_runs_are_no_pairs() -> None:
    found = ratio(figure("w", "p", SEALANE, (10, 20, 30)), figure("w", "p", "peer", (1, 2, 3), run=EARLY))
    assert (found.by_rounds, found.median_by_rounds, found.value) == ((), None, 10.0)


def test_the_best_durable_peer_has_a_disk() -> None:
    systems = [stated("quick", "Quick"), stated("slow", "Slow"), stated("ceiling", "No Disk", durable=False)]
    figures = [figure("w", "p", name, (value,)) for name, value in (("quick", 2), ("slow", 1), ("ceiling", 9))]
    best = best_durable([*figures, figure("w", "p", SEALANE, (99,))], systems)
    assert best is not None
    assert best.system == "quick"
    assert best_durable(figures[2:], systems) is None


@pytest.fixture
def front(tmp_path: Path) -> str:
    return page(front_page.write(tmp_path, results(), []))


def test_the_front_page_has_sealane_first_then_the_peers_by_their_pace_and_the_missing_last(front: str) -> None:
    rows = [line.split("|")[1].strip() for line in front.splitlines() if line.startswith("| ")][1:6]
    assert rows == ["**Sealane**", "No Disk", "Quick Streams", "Slow Queue", "Gone MQ"]
    assert "skipped: Gone MQ: its server is missing; run: sudo apt-get install gone" in front


def test_the_front_page_judges_ratios_to_the_best_durable_peer(front: str) -> None:
    lines = [line for line in front.splitlines() if "| Quick Streams |" in line and "≥" in line]
    assert ["8.33 ×" in lines[0], "8.89 ×" in lines[0], "≥ 8.00 ×" in lines[0], "reached" in lines[0]] == [True] * 4
    assert ["2.00 ×" in lines[1], "≥ 3.00 ×" in lines[1], "**short**" in lines[1]] == [True] * 3


def test_the_front_page_tells_what_failed_and_why(front: str) -> None:
    assert "wire-blocking on Sealane, 2026-02-03 04:05:06: ClientFailed: it ended … ValueError: no such thing" in front


def test_the_front_page_tells_durability_settings_versions_and_machine(front: str) -> None:
    assert "| Quick Streams | synced each second | pipelines of 500 | quick 1.2 |" in front
    assert "| cpu | 2 × abacus |" in front
    assert "2026-01-02 03:04:05 to 2026-02-03 04:05:06" in front


def test_a_page_of_a_group_has_rounds_reach_verdict_disturbance_and_moment(tmp_path: Path) -> None:
    report.write_groups(tmp_path, results())
    (row,) = [line for line in page(tmp_path / "wire.md").splitlines() if "wire-batches rate" in line]
    assert [cell.strip() for cell in row.strip("|").split("|")] == [
        "wire-batches rate",
        "1,600,000 msg/s",
        "≥ 1,200,000",
        "reached",
        "1,500,000, 1,600,000, 1,700,000",
        "1% to 2%",
        LATE,
    ]
    assert "Quick Streams" in page(tmp_path / "peers.md")


@pytest.mark.parametrize(
    ("foreign", "told"), [((), ""), ((0.01, 0.01), "1%"), ((0.0, 0.04), "0% to 4%"), ((0.0, 0.3), "**0% to 30%**")]
)
def test_a_disturbed_figure_is_marked(foreign: tuple[float, ...], told: str) -> None:
    assert report.disturbance(foreign) == told


def test_pages_are_made_of_all_files_that_are_there(tmp_path: Path) -> None:
    for group, record in results().groups.items():
        records.write(tmp_path / f"{group}.json", record)
    read = report.read(tmp_path, WORKS)
    assert read.figures == results().figures
    assert [each.name for each in read.peers] == [each.name for each in results().peers]


def test_the_front_page_says_in_short_what_an_acknowledgement_means() -> None:
    assert front_page.in_short("fsync before each reply, one for all; slow") == "fsync before each reply"
    assert front_page.in_short("none: nothing is stored") == "none"
