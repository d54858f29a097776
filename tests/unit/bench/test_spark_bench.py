"""What the measurements of Spark stand on, without Spark: turns, orders, payloads, and what is said where it is not."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from bench import whole_run
from bench.figures import SEALANE
from bench.process_tree import processor_seconds
from bench.records import Record
from bench.report import Results
from bench.running import Sealane, measure_beside
from bench.spark import plot, sessions
from bench.spark.order import SparkOrder, Topic
from bench.spark.stored import unique_payloads
from bench.spark.turns import Job, take_turns
from bench.whole_run import Choice
from bench.work import Reading
from bench.works import WORKS
from tests.unit.bench.planted import LATE, Silent, figure, run, work

BURNS = "import sys\nfor _ in range(3_000_000): pass\nprint('burnt', flush=True)\nsys.stdin.read()"


def test_jobs_take_turns_there_and_back_and_rounds_that_warm_up_are_not_told_of() -> None:
    log: list[str] = []
    jobs = {name: Job(partial(log.append, name), 1_000, partial(log.append, f"-{name} ")) for name in "ab"}
    found = take_turns(jobs, rounds=2, warm_rounds=1)
    assert "".join(log) == "a-a b-b b-b a-a a-a b-b "
    assert {name: len(rates) for name, rates in found.rates.items()} == {"a": 2, "b": 2}
    assert len(found.foreign) == 2
    assert all(0 <= share <= 1 for share in found.foreign)


def test_what_is_put_in_order_after_a_job_is_not_timed() -> None:
    moments: list[float] = []

    def clear() -> None:
        moments.append(time.perf_counter())
        time.sleep(0.05)
        moments.append(time.perf_counter())

    rates = take_turns({"quick": Job(lambda: None, 1, clear)}, rounds=1, warm_rounds=0).rates["quick"]
    assert 1 / rates[0] < moments[1] - moments[0]


def test_processor_time_of_descendants_counts_while_they_run() -> None:
    before = processor_seconds(os.getpid())

    def since() -> float:
        return round(processor_seconds(os.getpid()) - before, 2)  # The kernel counts in hundredths.

    with subprocess.Popen(
        [sys.executable, "-c", BURNS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "burnt\n"
        alone = processor_seconds(child.pid)
        assert alone > 0.01
        assert since() >= alone
    assert since() >= alone, "one that has ended and was waited for counts too"


def test_an_order_is_the_same_at_the_other_end_of_the_command_line() -> None:
    order = SparkOrder({"tls": Topic("sealanes://[::1]:7070", "a topic", "/some/profile")}, "/place", 5, 3, 1, 100, 2)
    *_, work, text = order.command("read_topics")
    assert work == "read_topics"
    assert SparkOrder.read(text) == order
    assert order.topics["tls"].options == {
        "url": "sealanes://[::1]:7070",
        "topic": "a topic",
        "profile": "/some/profile",
    }
    assert "profile" not in Topic("sealane://h:1", "t").options


def test_no_payload_is_like_another() -> None:
    payloads = unique_payloads(1_000, 100)
    payloads.validate(full=True)
    assert payloads.null_count == 0
    assert {len(each) for each in payloads.to_pylist()} == {100}
    assert len(set(payloads.to_pylist())) == 1_000


def test_without_java_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "find_spec", lambda name: object())
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "apt-get install" in (sessions.missing() or "")
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "apt-get install" in (sessions.missing() or "")
    java = tmp_path / "java"
    java.touch(0o755)
    assert sessions.missing() is None


def test_without_pyspark_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "find_spec", lambda name: None)
    assert "pip install" in (sessions.missing() or "")


def test_works_that_miss_something_are_skipped_with_one_line_and_the_others_are_measured(tmp_path: Path) -> None:
    def never(path: Path, amounts: object) -> Reading:
        raise AssertionError("what cannot run here is not tried")

    reason = "there is no Java: install one"
    works = [
        *(work(name=name, measure=never, missing=lambda: reason) for name in ("spark-a", "spark-b")),
        work(measure=lambda path, amounts: Reading({"rate": 200.0})),
    ]
    with (tmp_path / "said").open("w+", encoding="utf-8") as said:
        console = Console(file=said, width=200)
        choice = Choice(works, None, 1, True, tmp_path, tmp_path / "results", "make bench")
        assert whole_run.run(choice, console) == 0, "nothing failed that could have been measured"
        said.seek(0)
        text = said.read()
    assert text.count(reason) == 1
    assert "200 msg/s" in text


def test_a_work_that_watches_others_by_itself_tells_it_round_by_round(tmp_path: Path) -> None:
    reading = Reading({}, rounds={"rate": [1.0, 2.0]}, foreign=[0.25, 0.5])
    watched = work(measure=lambda path, amounts: reading, rounds_max=1)
    outcome = measure_beside(watched, [Sealane(tmp_path)], rounds=3, quick=False, run="now", watcher=Silent())
    (told,) = outcome.figures
    assert (told.system, told.rounds, told.foreign) == (SEALANE, (1.0, 2.0), (0.25, 0.5))


def test_what_was_measured_is_drawn_and_nothing_of_nothing(tmp_path: Path) -> None:
    assert not plot.draw(tmp_path / "none.svg", Results(WORKS, {}))
    parts = [(work, part) for _, bars in plot.PANELS for _, work, part in bars]
    assert all(part in {each.name for each in WORKS[work].parts} for work, part in parts)
    record = Record({LATE: run()}, [figure(work, part, SEALANE, (1e6, 2e6, 3e6)) for work, part in parts])
    assert plot.draw(tmp_path / "spark.svg", Results(WORKS, {"spark": record}))
    assert ET.parse(tmp_path / "spark.svg").getroot().tag.endswith("svg")
    assert not (tmp_path / "none.svg").exists()
