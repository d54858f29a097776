"""Plots: drawn where there are numbers, the same for the same numbers, and with the numbers in them."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

from bench import plots
from bench.report import Results
from bench.works import WORKS
from tests.unit.bench.planted import page, results


def test_every_plot_that_there_are_numbers_for_is_drawn(tmp_path: Path) -> None:
    drawn = plots.draw_all(tmp_path, results())
    assert [plot.path.name for plot in drawn] == ["throughput.svg", "latency.svg", "growth.svg", "memory.svg"]
    for plot in drawn:
        assert ET.parse(plot.path).getroot().tag.endswith("svg")


def test_nothing_is_drawn_of_nothing(tmp_path: Path) -> None:
    assert plots.draw_all(tmp_path, Results(WORKS, {})) == []
    assert list(tmp_path.iterdir()) == []


def test_the_same_numbers_are_the_same_bytes(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        plots.draw_all(tmp_path / folder, results())
    for plot in (tmp_path / "one").iterdir():
        text = page(plot)
        assert text == page(tmp_path / "two" / plot.name)
        assert "dc:date" not in text


def test_other_numbers_are_another_picture(tmp_path: Path) -> None:
    plots.throughput(tmp_path / "one.svg", results())
    fewer = results()
    fewer.groups["peers"].figures.pop(1)
    plots.throughput(tmp_path / "two.svg", fewer)
    assert page(tmp_path / "one.svg") != page(tmp_path / "two.svg")


def test_a_plot_without_peers_needs_none(tmp_path: Path) -> None:
    alone = Results(WORKS, {group: record for group, record in results().groups.items() if group != "peers"})
    assert [plot.path.name for plot in plots.draw_all(tmp_path, alone)] == ["latency.svg", "growth.svg", "memory.svg"]
