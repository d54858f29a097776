"""Charts draw what the figures say, and nothing where they say nothing."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from html import unescape

from sealane.pipeline.report.bars import bar, shade
from sealane.pipeline.report.charts import Heading, Mark, lines, lines_with_band, stacked_bars
from sealane.pipeline.report.figures import OTHERS, Series, Span

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
SPAN = Span(NOON, NOON + timedelta(minutes=4), 60)


def shapes(drawn: str) -> list[str]:
    return re.findall(r'<path d="([^"]*)"', drawn)


def test_a_line_ends_where_there_is_nothing_and_a_lone_point_is_a_dot() -> None:
    drawn = lines(Heading("Depth"), SPAN, [Series("a", (1, 2, None, 2))])
    assert shapes(drawn) == ["M125.0 500.0L375.0 0.0", "M875.0 0.0h.1"]


def test_bars_stand_on_each_other_and_nothing_is_no_bar() -> None:
    drawn = stacked_bars(Heading("Traffic"), SPAN, [Series("a", (1, 0, None, 1)), Series(OTHERS, (1, 2, 0, 0))])
    first, second = shapes(drawn)
    assert (first.count("M"), second.count("M")) == (2, 2)
    assert [part.split("V")[1].split("H")[0] for part in first.split("M")[1:]] == ["500.0", "500.0"]
    assert [part.split("V")[1].split("H")[0] for part in second.split("M")[1:]] == ["0.0", "0.0"]
    assert 'class="bars rest"' in drawn


def test_a_band_goes_from_the_lowest_line_to_the_highest_and_leaves_gaps() -> None:
    low, high = Series("p50", (1, 1, None, 1)), Series("p99", (2, 2, None, 2))
    band = shapes(lines_with_band(Heading("Latency", unit="ms"), SPAN, [low, high]))[0]
    assert band.split("Z")[0] == "M125.0 0.0L375.0 0.0L375.0 500.0L125.0 500.0"
    assert band.count("M") == 2


def test_what_a_pointer_reads_lies_beside_the_chart() -> None:
    drawn = lines(Heading("Depth"), SPAN, [Series('"><b>', (1, None, 2.5, 123456.789))])
    found = re.search(r'data-points="([^"]*)"', drawn)
    assert found
    points = json.loads(unescape(found[1]))
    assert (points["since"], points["step"]) == (NOON.timestamp() * 1000, 60_000)
    assert points["series"] == [{"name": '"><b>', "style": "s0", "values": [1, None, 2.5, 123500.0]}]
    assert "<b>" not in drawn.replace("<b>Depth</b>", "")


def test_a_mark_lies_where_the_anomaly_was_and_can_be_seen_however_short_it_is() -> None:
    marks = [Mark(NOON + timedelta(minutes=1), NOON + timedelta(minutes=2), "silence"), Mark(NOON, NOON, "short")]
    drawn = lines(Heading("Depth"), SPAN, [Series("a", (1, 2, 3, 4))], marks)
    assert '<title>silence</title><rect y="0" height="100%" class="mark" x="25%" width="25%"/>' in drawn
    assert 'x="0%" width="0.3%"' in drawn
    assert "anomaly</li>" in drawn


def test_one_in_a_million_is_still_seen_and_the_bar_is_not_too_long() -> None:
    drawn = bar([("s0", 999_999, "acked"), ("missing", 1, "missing")], 1_000_000)
    widths = [float(width) for width in re.findall(r'width="([\d.]+)%"', drawn)]
    assert min(widths) > 1
    assert round(sum(widths), 1) == 100
    assert "<rect" not in bar([("s0", 0, "acked")], 0)


def test_shades_go_from_none_to_the_most() -> None:
    assert [shade(count, 600) for count in (0, 1, 300, 600)] == [0, 1, 3, 6]
