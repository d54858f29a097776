"""The plot of the pipeline, and the amounts of its works."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

from bench import pipeline_plot
from bench.figures import SEALANE
from bench.records import Record
from bench.report import Results
from bench.works import WORKS
from tests.unit.bench.planted import LATE, figure, run


def test_cost_and_state_are_drawn_by_size_and_nothing_of_nothing(tmp_path: Path) -> None:
    assert not pipeline_plot.draw(tmp_path / "none.svg", Results(WORKS, {}))
    parts = [f"{size}-{name}" for size in pipeline_plot.SIZES for _, name, _, _ in pipeline_plot.PANELS]
    assert set(parts) <= {part.name for part in WORKS["pipeline"].parts}
    record = Record({LATE: run()}, [figure("pipeline", part, SEALANE, (1.0, 2.0, 3.0)) for part in parts])
    assert pipeline_plot.draw(tmp_path / "pipeline.svg", Results(WORKS, {"lake": record}))
    assert ET.parse(tmp_path / "pipeline.svg").getroot().tag.endswith("svg")
    assert not (tmp_path / "none.svg").exists()


def test_backlogs_are_whole_batches_and_grow() -> None:
    for quick in (False, True):
        amounts = WORKS["pipeline"].amounts_for(quick)
        assert list(amounts["sizes"]) == sorted(amounts["sizes"])
        assert len(amounts["sizes"]) == len(pipeline_plot.SIZES)
        assert not any(count % amounts["batch"] for count in (*amounts["sizes"], amounts["warm_messages"]))
