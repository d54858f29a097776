"""The page: everything in one file, which loads nothing and runs nothing but its own few lines."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from pathlib import Path

from sealane.pipeline.report.figures import Figures, Span
from sealane.pipeline.report.markup import Markup, element
from sealane.pipeline.report.numbers import count, length, milliseconds, moment, several, size_bytes
from sealane.pipeline.report.sections import sections
from sealane.pipeline.report.verdict import Verdict, verdict
from sealane.whole_files import PRIVATE, replace_file

SIGNS = {"good": "✓", "bad": "!", "open": "?"}


def render(figures: Figures) -> str:
    """HTML of its own: it works from a disk, without a network, and without JavaScript. Names and reasons, which are
    anybody's words, are text in it and nothing else; its policy lets no script run but its own.
    """
    style, script = _own("page.css"), _own("page.js")
    shown = sections(figures)
    body = element(
        "body",
        _header(figures, verdict(figures)),
        element("main", _tiles(figures), _contents(shown), *(_section(*each) for each in shown)),
        element("footer", element("p", f"Made by Sealane on {moment(figures.made)} UTC. All times are UTC.")),
        element("script", script),
    )
    head = element(
        "head",
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{_policy(style, script)}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<meta name="color-scheme" content="light dark">'),
        element("title", f"Sealane report, {_spanned(figures.span)}"),
        element("style", style),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def write_report(path: Path, html: str) -> None:
    """Whole or not at all, for its owner alone: it tells names, and why messages died."""
    replace_file(path, html.encode(), PRIVATE)


def _own(name: str) -> Markup:
    return Markup(files(__package__).joinpath(name).read_text(encoding="utf-8"))


def _policy(style: str, script: str) -> str:
    """What may be done here: show what is in the page, with this style and this script."""
    return f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'"


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _header(figures: Figures, found: Verdict) -> Markup:
    span = figures.span
    about = f"{_spanned(span)} · {length(span.seconds)}" if span else "no messages yet"
    return element(
        "header",
        element("p", element("b", "Sealane"), f" report · {about}", class_="about"),
        element(
            "div",
            element("span", SIGNS[found.level], class_="sign", aria_hidden="true"),
            element("div", element("h1", found.sentence), element("p", found.detail)),
            class_=f"verdict {found.level}",
        ),
    )


def _tiles(figures: Figures) -> Markup | None:
    traffic, deliveries = figures.traffic, figures.deliveries
    if traffic is None:
        return None
    found = [("published", count(traffic.published), size_bytes(traffic.size_bytes))]
    if deliveries is not None:
        left = _in_flight(figures)
        p95 = deliveries.latency_p95_ms
        found += [
            ("settled", count(deliveries.settled), several(len(deliveries.readers), "subscription")),
            ("in flight", "–" if left is None else count(left), "not settled at the end"),
            ("dead letters", count(deliveries.dead), _share(deliveries.dead, deliveries.settled)),
            ("latency p95", "–" if p95 is None else milliseconds(p95), "published to settled"),
        ]
    if figures.anomalies is not None:
        found.append(("anomalies", count(figures.anomalies_in_all), "out of the ordinary"))
    tiles = (
        element("div", element("dt", name), element("dd", element("b", value), element("span", note)))
        for name, value, note in found
    )
    return element("dl", *tiles, class_="tiles")


def _in_flight(figures: Figures) -> int | None:
    """By the proof, if there is one; else by what subscriptions have not settled."""
    if figures.proven is not None:
        return sum(row.in_flight for row in figures.proven.balance)
    if figures.deliveries is None:
        return None
    return sum(reader.depth or 0 for reader in figures.deliveries.readers)


def _share(part: int, whole: int) -> str:
    return "none" if not part else f"one of {count(max(whole, part) / part)}"


def _contents(shown: list[tuple[str, Markup]]) -> Markup | None:
    if not shown:
        return None
    links = (element("a", title, href=f"#{_anchor(title)}") for title, _ in shown)
    return element("nav", *links, aria_label="Sections")


def _section(title: str, content: Markup) -> Markup:
    anchor = _anchor(title)
    return element("section", element("h2", title), content, id=anchor)


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")


def _spanned(span: Span | None) -> str:
    if span is None:
        return "no messages"
    since, until = span.since, span.until
    if since.date() == until.date():
        shown = "%H:%M" if span.seconds >= 600 else "%H:%M:%S"
        return f"{since.day} {since:%b %Y}, {since:{shown}} – {until:{shown}} UTC"
    return f"{moment(since)} – {moment(until)} UTC"
