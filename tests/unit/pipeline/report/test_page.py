"""The page: whole, self-contained, and harmless whatever names and reasons are."""

from __future__ import annotations

import base64
import hashlib
import re
import stat
from dataclasses import replace
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from sealane.pipeline.report.figures import DeadLetters, Figures, Span
from sealane.pipeline.report.page import render, write_report
from tests.unit.pipeline.report.figures_of_a_month import SINCE, UNTIL, hostile_month, month

VOID = {"meta"}


class Read(HTMLParser):
    """Elements and attributes as a browser would have them; fails where one is not closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self._open: list[str] = []
        self.feed(html)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag


@pytest.fixture(scope="module")
def html() -> str:
    return render(month())


def test_every_section_has_its_heading_and_the_contents_lead_to_it(html: str) -> None:
    titles = re.findall(r"<h2>([^<]*)</h2>", html)
    assert titles == [
        "Reconciliation",
        "Traffic",
        "Latency",
        "Backlog",
        "Errors",
        "Anomalies",
        "Dead letters",
        "Routes",
    ]
    found = Read(html)
    anchors = {value for _, name, value in found.attributes if name == "id"}
    links = {value.removeprefix("#") for tag, name, value in found.attributes if (tag, name) == ("a", "href")}
    assert links == anchors
    assert found.names.count("h1") == 1


def test_nothing_is_loaded_from_anywhere(html: str) -> None:
    found = Read(html)
    assert not {"img", "link", "iframe", "object", "image", "use"} & set(found.names)
    addresses = [value for _, name, value in found.attributes if name in ("src", "href", "srcset", "action")]
    assert [address for address in addresses if not address.startswith("#")] == []
    assert "url(" not in html
    assert "@import" not in html


def test_the_policy_allows_the_pages_own_style_and_script_and_nothing_else(html: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy
    assert policy[1].startswith("default-src 'none'; ")
    assert "unsafe" not in policy[1]
    for name in ("style", "script"):
        (text,) = re.findall(f"<{name}>(.*?)</{name}>", html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy[1]


def test_hostile_names_and_reasons_are_text() -> None:
    plain, hostile = Read(render(month())), Read(render(hostile_month()))
    assert set(hostile.names) <= set(plain.names)
    assert hostile.names.count("script") == 1
    assert {name for _, name, _ in hostile.attributes} <= {name for _, name, _ in plain.attributes}


def test_a_redrive_command_can_be_pasted_whatever_the_names_are() -> None:
    letters = DeadLetters("shop/a;rm -rf ~", "b$(id)", "nack", "", 1, SINCE, UNTIL)
    assert letters.redrive == "sealane dlq redrive 'shop/a;rm -rf ~' 'b$(id)'"


@pytest.mark.parametrize(
    ("gone", "sentence"),
    [
        ("proven", "No proof was made yet"),
        ("deliveries", "No delivery was settled yet"),
        ("anomalies", "Nothing was looked at for anomalies yet"),
        ("dead_letters", "Dead letters are known once"),
        ("routes", "No weights were learnt yet"),
        ("traffic", "No message was taken in yet"),
    ],
)
def test_a_table_that_is_not_there_leaves_a_sentence_and_a_command(gone: str, sentence: str) -> None:
    without: dict[str, Any] = {gone: None}
    page = render(replace(month(), **without))
    assert sentence in page
    assert re.search(rf"{sentence}[^<]*<code class=\"command\">sealane pipeline", page)


def test_a_time_in_which_nothing_happened_has_sentences_instead_of_charts() -> None:
    figures = month()
    assert figures.traffic
    assert figures.deliveries
    page = render(
        replace(
            figures,
            traffic=replace(figures.traffic, published=0, topics=(), by_topic=()),
            deliveries=replace(figures.deliveries, depth=()),
            anomalies=(),
            dead_letters=(),
        )
    )
    for sentence in ("Nothing was published in this time", "Nothing was out of the ordinary", "No message died"):
        assert sentence in page


def test_a_short_span_is_told_to_the_second() -> None:
    short = Span.between(SINCE, SINCE + timedelta(seconds=57))
    page = render(Figures(UNTIL, short, None, None, None, None, 0, None, None))
    assert "2 Mar 2026, 00:00:00 – 00:00:57 UTC" in page


def test_an_empty_lake_has_a_page_too() -> None:
    page = render(Figures(UNTIL, None, None, None, None, None, 0, None, None))
    assert "There is nothing to tell yet" in page
    assert "<section" not in page


def test_a_month_is_a_small_file(html: str) -> None:
    assert len(html.encode()) < 400_000


def test_it_is_written_whole_and_for_its_owner_alone(tmp_path: Path, html: str) -> None:
    path = tmp_path / "report.html"
    path.write_text("the one before")
    write_report(path, html)
    assert path.read_text(encoding="utf-8") == html
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


# --- colours ----------------------------------------------------------------------------------------------------------


def colours(html: str) -> dict[str, dict[str, str]]:
    """Of light and dark, by their names."""
    light, dark = re.findall(r":root \{(.*?)\}", html, re.DOTALL)[:2]
    found = {name: dict(re.findall(r"--([\w-]+): (#\w{6})", text)) for name, text in (("light", light), ("dark", dark))}
    return {"light": found["light"], "dark": found["light"] | found["dark"]}


def contrast(one: str, other: str) -> float:
    """As WCAG defines it."""

    def luminance(colour: str) -> float:
        parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_text_and_lines_stand_out_from_what_is_behind_them(html: str, mode: str) -> None:
    of = colours(html)[mode]
    texts = [(ink, ground) for ink in ("ink", "quiet", "accent", "bad") for ground in ("page", "panel")]
    texts += [("ink", f"{level}-soft") for level in ("good", "bad", "open")]
    texts += [("panel", level) for level in ("good", "bad", "open")]
    assert {
        pair: contrast(of[pair[0]], of[pair[1]]) for pair in texts if contrast(of[pair[0]], of[pair[1]]) < 4.5
    } == {}
    drawn = ["s0", "s1", "s2", "s3", "s4", "s5", "rest", "missing"]
    assert {name: contrast(of[name], of["panel"]) for name in drawn if contrast(of[name], of["panel"]) < 3} == {}
