"""Charts over time, as inline SVG: lines with a band, and stacked bars.

The drawing is stretched to the width of the page while its texts and strokes keep their size, so one chart serves a
phone, a screen and paper. What is shown when a pointer is over it lies beside it as data; see page.js.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sealane.pipeline.report.figures import OTHERS, Series, Span
from sealane.pipeline.report.markup import Markup, element, empty, joined, share
from sealane.pipeline.report.numbers import Shown, count, milliseconds, percent
from sealane.pipeline.report.scales import Scale, dates_of, scale_from_zero, scale_of_latencies

SIDE = 1000
"""Of the drawing, both ways, before it is stretched."""
MARK_SHARE_LEAST = 0.003
"""How wide a mark is at least: a short anomaly in a long month is to be seen too."""
GAPS_UNTIL = 80
"""Bars have gaps between them as long as they are wide enough for that."""

UNITS: dict[str, Shown] = {"count": count, "ms": milliseconds, "percent": percent}
"""By the names that page.js knows."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A stretch of time that is to be looked at."""

    began: datetime
    ended: datetime
    text: str


@dataclass(frozen=True, slots=True)
class Heading:
    title: str
    note: str = ""
    """What a value is, and of how long."""
    unit: str = "count"


def stacked_bars(heading: Heading, span: Span, series: Sequence[Series], marks: Iterable[Mark] = ()) -> Markup:
    """What parts add up to, one bar a step."""
    sums = [sum(each.values[step] or 0 for each in series) for step in range(span.steps)]
    scale = scale_from_zero(sums)
    below = [0.0] * span.steps
    paths = []
    for index, each in enumerate(series):
        above = [base + (value or 0) for base, value in zip(below, each.values, strict=True)]
        paths.append(_path(_bars(below, above, scale), f"bars {colour(each, index)}", each.name))
        below = above
    return _chart(heading, span, scale, series, joined(paths), marks)


def lines(heading: Heading, span: Span, series: Sequence[Series], marks: Iterable[Mark] = ()) -> Markup:
    """Amounts beside each other, from zero."""
    scale = scale_from_zero(_known(series))
    return _chart(heading, span, scale, series, _drawn(series, scale), marks)


def lines_with_band(heading: Heading, span: Span, series: Sequence[Series], marks: Iterable[Mark] = ()) -> Markup:
    """Latencies: a band from the first series to the last one, and a line for each."""
    scale = scale_of_latencies(_known(series))
    band = _path(_band(series[0].values, series[-1].values, scale), "band s0", f"{series[0].name} to {series[-1].name}")
    return _chart(heading, span, scale, series, joined([band, _drawn(series, scale)]), marks)


def colour(series: Series, index: int) -> str:
    """The class that gives it its colour."""
    return "rest" if series.name == OTHERS else f"s{index}"


def legend(names: Iterable[tuple[str, str]]) -> Markup:
    """Of classes and names."""
    items = (element("li", element("i", class_=f"swatch {style}"), name) for style, name in names)
    return element("ul", *items, class_="legend")


# --- shapes -----------------------------------------------------------------------------------------------------------


def _bars(below: Sequence[float], above: Sequence[float], scale: Scale) -> str:
    steps = len(above)
    width = SIDE / steps
    gap = width * 0.12 if steps <= GAPS_UNTIL else 0
    return "".join(
        f"M{step * width + gap:.1f} {_y(low, scale)}V{_y(high, scale)}H{(step + 1) * width - gap:.1f}V{_y(low, scale)}Z"
        for step, (low, high) in enumerate(zip(below, above, strict=True))
        if high > low
    )


def _drawn(series: Sequence[Series], scale: Scale) -> Markup:
    paths = []
    for index, each in enumerate(series):
        style = colour(each, index)
        paths.append(_path(_line(each.values, scale), f"line {style}", each.name))
        paths.append(_path(_dots(each.values, scale), f"line dot {style}", each.name))
    return joined(paths)


def _line(values: Sequence[float | None], scale: Scale) -> str:
    found = []
    for run in _runs(values):
        if len(run) > 1:
            found.append("M" + "L".join(f"{_x(step, len(values))} {_y(value, scale)}" for step, value in run))
    return "".join(found)


def _dots(values: Sequence[float | None], scale: Scale) -> str:
    """Points that stand alone: lines without a length, whose ends are round."""
    lone = (run[0] for run in _runs(values) if len(run) == 1)
    return "".join(f"M{_x(step, len(values))} {_y(value, scale)}h.1" for step, value in lone)


def _band(low: Sequence[float | None], high: Sequence[float | None], scale: Scale) -> str:
    found = []
    for run in _runs(high):
        lows = ((step, low[step]) for step, _ in reversed(run))
        edge = [f"{_x(step, len(high))} {_y(value, scale)}" for step, value in run]
        edge += [f"{_x(step, len(high))} {_y(value, scale)}" for step, value in lows if value is not None]
        found.append(f"M{'L'.join(edge)}Z")
    return "".join(found)


def _runs(values: Sequence[float | None]) -> Iterator[list[tuple[int, float]]]:
    """Neighbours of which there is something to tell: a line ends where there is nothing."""
    run: list[tuple[int, float]] = []
    for step, value in enumerate(values):
        if value is not None:
            run.append((step, value))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _x(step: int, steps: int) -> str:
    return f"{(step + 0.5) / steps * SIDE:.1f}"


def _y(value: float, scale: Scale) -> str:
    return f"{(1 - scale.place(value)) * SIDE:.1f}"


def _path(shape: str, style: str, title: str) -> Markup | None:
    if not shape:
        return None
    return element("path", element("title", title), d=shape, class_=style)


def _known(series: Iterable[Series]) -> list[float]:
    return [value for each in series for value in each.values if value is not None]


# --- what is around them ----------------------------------------------------------------------------------------------


def _chart(
    heading: Heading, span: Span, scale: Scale, series: Sequence[Series], drawing: Markup, marks: Iterable[Mark]
) -> Markup:
    shown = UNITS[heading.unit]
    note = f"{heading.note}, logarithmic" if scale.is_logarithmic else heading.note
    caption = element("figcaption", element("b", heading.title), " ", element("span", note))
    names = [(colour(each, index), each.name) for index, each in enumerate(series)]
    marked = [_mark(mark, span) for mark in marks]
    plot = element(
        "svg",
        *(empty("line", x1=0, x2="100%", y1=at, y2=at, class_="grid") for at in _heights(scale)),
        element("svg", drawing, viewBox=f"0 0 {SIDE} {SIDE}", preserveAspectRatio="none", width="100%", height="100%"),
        *marked,
        empty("line", y1=0, y2="100%", class_="cursor"),
        class_="plot",
        role="img",
        aria_label=f"{heading.title}: {', '.join(each.name for each in series)}",
    )
    if marked:
        names.append(("marked", "anomaly"))
    return element(
        "figure",
        caption,
        # One series that is what the title says needs no name.
        legend(names) if names != [("s0", heading.title.lower())] else None,
        element("div", _value_axis(scale, shown), plot, _time_axis(span), class_="frame"),
        class_="chart",
        data_points=_points(heading.unit, span, series),
    )


def _heights(scale: Scale) -> list[str]:
    return [share(1 - scale.place(tick)) for tick in scale.ticks]


def _value_axis(scale: Scale, shown: Shown) -> Markup:
    texts = (
        element("text", shown(tick), x="100%", y=at, dx=-8, dy="0.32em", text_anchor="end")
        for tick, at in zip(scale.ticks, _heights(scale), strict=True)
    )
    return element("svg", *texts, class_="values", aria_hidden="true")


def _time_axis(span: Span) -> Markup:
    texts = []
    for index, tick in enumerate(dates_of(span)):
        place = span.place(tick.time)
        anchor = "start" if place < 0.03 else "end" if place > 0.97 else "middle"
        style = "second" if index % 2 else None
        texts.append(element("text", tick.text, x=share(place), y=16, text_anchor=anchor, class_=style))
        texts.append(empty("line", x1=share(place), x2=share(place), y1=0, y2=4))
    return element("svg", *texts, class_="times", aria_hidden="true")


def _mark(mark: Mark, span: Span) -> Markup:
    begin, end = span.place(mark.began), span.place(mark.ended)
    width = max(end - begin, MARK_SHARE_LEAST)
    at = {"x": share(min(begin, 1 - width)), "width": share(width)}
    return element(
        "g",
        element("title", mark.text),
        empty("rect", y=0, height="100%", class_="mark", **at),
        empty("rect", y=0, height=4, class_="mark-top", **at),
    )


def _points(unit: str, span: Span, series: Iterable[Series]) -> str:
    """What page.js reads out: milliseconds since 1970, and values to four digits."""
    found = {
        "unit": unit,
        "since": round(span.since.timestamp() * 1000),
        "step": span.step_seconds * 1000,
        "series": [
            {"name": each.name, "style": colour(each, index), "values": [_rounded(value) for value in each.values]}
            for index, each in enumerate(series)
        ],
    }
    return json.dumps(found, separators=(",", ":"))


def _rounded(value: float | None) -> float | None:
    if value is None or value == int(value):
        return None if value is None else int(value)
    return float(f"{value:.4g}")
