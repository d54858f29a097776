"""Charts of amounts beside each other: bars in the rows of a table, and the hours of a week."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sealane.pipeline.report.markup import Markup, element, empty, share
from sealane.pipeline.report.numbers import count, exactly

SHADES = 6
"""Of the hours of a week: as many as can be told apart."""
SLIVER = 0.012
"""Of a bar: what its smallest part takes at least."""
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
HOURS = 24


def bar(parts: Iterable[tuple[str, float, str]], whole: float) -> Markup:
    """One bar of several parts: of each its style, its amount, and its words. The bar is full at `whole`."""
    # One message in a million is to be seen too; the others make room for it.
    known = [(style, max(amount / whole, SLIVER), text) for style, amount, text in parts if amount > 0 and whole > 0]
    fit = 1 / max(1.0, sum(width for _, width, _ in known))
    drawn, at = [], 0.0
    for style, width, text in known:
        rect = empty("rect", x=share(at), width=share(width * fit), height="100%", class_=style)
        drawn.append(element("g", element("title", text) if text else None, rect))
        at += width * fit
    return element("svg", *drawn, class_="bar", aria_hidden="true")


def week(counts: Sequence[Sequence[int]]) -> Markup:
    """The hours of the week, the darker the more; of each its number when a pointer is over it."""
    largest = max((amount for day in counts for amount in day), default=0)
    cells = [
        element(
            "rect",
            element("title", f"{WEEKDAYS[day]} {hour:02}:00 – {exactly(amount)} messages"),
            x=share(hour / HOURS),
            y=share(day / len(WEEKDAYS)),
            width=share(1 / HOURS),
            height=share(1 / len(WEEKDAYS)),
            class_=f"hour h{shade(amount, largest)}",
        )
        for day, row in enumerate(counts)
        for hour, amount in enumerate(row)
    ]
    days = (
        element("text", name, x="100%", y=share((day + 0.5) / 7), dx=-8, dy="0.32em", text_anchor="end")
        for day, name in enumerate(WEEKDAYS)
    )
    hours = (
        element("text", f"{hour:02}:00", x=share(hour / HOURS), y=16, class_="second" if hour % 6 else None)
        for hour in range(0, HOURS, 3)
    )
    return element(
        "figure",
        element("figcaption", element("b", "Hours of the week"), " ", element("span", "messages published, UTC")),
        element("ul", *_shades(largest), class_="legend shades"),
        element(
            "div",
            element("svg", *days, class_="values", aria_hidden="true"),
            element("svg", *cells, class_="plot", role="img", aria_label="Messages by weekday and hour"),
            element("svg", *hours, class_="times", aria_hidden="true"),
            class_="frame week",
        ),
        class_="chart",
    )


def shade(amount: int, largest: int) -> int:
    """0 for none at all, and up to `SHADES` for the most."""
    return 0 if amount <= 0 else min(SHADES, 1 + amount * SHADES // (largest + 1))


def _shades(largest: int) -> list[Markup]:
    swatches = (element("i", class_=f"swatch h{number}") for number in range(SHADES + 1))
    return [element("li", "none ", *swatches, f" {count(largest)}")]
