"""The report in a real browser: what a person sees, and what a hostile name cannot do."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sealane.pipeline.report.page import render, write_report
from tests.browser.opened import Scheme, opened
from tests.unit.pipeline.report.figures_of_a_month import HOSTILE, broken_month, hostile_month, month

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SECTIONS = ["Reconciliation", "Traffic", "Latency", "Backlog", "Errors", "Anomalies", "Dead letters", "Routes"]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("report")
    found = {"well": month(), "broken": broken_month(), "hostile": hostile_month()}
    for name, figures in found.items():
        write_report(folder / f"{name}.html", render(figures))
    return {name: folder / f"{name}.html" for name in found}


@pytest.mark.parametrize("scripts", [True, False])
def test_every_section_and_chart_is_seen_with_scripts_and_without(
    browser: Browser, pages: dict[str, Path], scripts: bool
) -> None:
    with opened(browser, pages["well"], scripts=scripts) as found:
        page = found.page
        assert page.locator("h1").inner_text() == "Every message was settled once, or is under way"
        assert page.locator("h2").all_inner_texts() == SECTIONS
        for plot in page.locator("svg.plot").all():
            box = plot.bounding_box()
            assert box is not None
            assert box["width"] > 600
            assert box["height"] > 150
        drawn = page.locator(".plot path.line, .plot path.bars")
        assert drawn.count() == 6 + 3 + 3 + 1
        assert all(path.bounding_box() for path in drawn.all())
        assert page.locator(".mark").count() == 4
        assert page.locator("th button").count() > 0 if scripts else page.locator("button").count() == 0


def test_nothing_leaves_and_nothing_is_complained_about(browser: Browser, pages: dict[str, Path]) -> None:
    with opened(browser, pages["well"]) as found:
        hover_over_every_chart(found.page)
        assert found.said == []
        assert found.asked == [pages["well"].as_uri()]


def test_the_policy_holds_for_scripts_styles_and_requests(browser: Browser, pages: dict[str, Path]) -> None:
    with opened(browser, pages["well"]) as found:
        found.page.evaluate(
            """async () => {
                const script = document.createElement("script");
                script.textContent = "document.title = 'owned'";
                document.body.append(script);
                const text = "<p id=p style='color: red' onclick='document.title=1'>x</p>";
                document.body.insertAdjacentHTML("beforeend", text);
                document.getElementById("p").click();
                await fetch("http://127.0.0.1:9/").catch(() => {});
            }"""
        )
        assert found.page.title().startswith("Sealane report")
        assert len([each for each in found.said if "Content Security Policy" in each]) >= 4
        assert found.asked == [pages["well"].as_uri()]


@pytest.mark.parametrize("scripts", [True, False])
def test_hostile_names_and_reasons_are_shown_and_do_nothing(
    browser: Browser, pages: dict[str, Path], scripts: bool
) -> None:
    with opened(browser, pages["hostile"], width=768, scripts=scripts) as found:
        page = found.page
        if scripts:
            hover_over_every_chart(page)
            page.locator("#traffic th button").first.click()
        assert page.title().startswith("Sealane report")
        assert found.said == []
        assert found.asked == [pages["hostile"].as_uri()]
        assert HOSTILE in page.locator("#traffic .legend").first.inner_text()
        assert (page.locator("script").count(), page.locator("img").count()) == (1, 0)


@pytest.mark.parametrize("width", [390, 768, 1280])
@pytest.mark.parametrize("name", ["well", "broken", "hostile"])
def test_the_page_is_no_wider_than_its_window(browser: Browser, pages: dict[str, Path], name: str, width: int) -> None:
    with opened(browser, pages[name], width=width) as found:
        page = found.page
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        # Texts on a time axis do not run into each other.
        for axis in page.locator("svg.times").all():
            boxes = axis.locator("text:visible").evaluate_all(
                "texts => texts.map(text => text.getBoundingClientRect()).map(box => [box.left, box.right])"
            )
            assert all(before[1] < after[0] for before, after in pairwise(boxes))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_missing_is_said_first_and_legible_by_day_and_night(
    browser: Browser, pages: dict[str, Path], scheme: Scheme
) -> None:
    with opened(browser, pages["broken"], scheme=scheme) as found:
        page = found.page
        assert page.locator("h1").inner_text() == "3 messages are missing and 1 message is there twice"
        assert page.locator("#reconciliation .wrong").all_inner_texts() == ["3"]
        for selector, behind in (("h1", ".verdict"), ("figcaption span", "section"), (".wrong", "section")):
            ink = colour(page, selector, "color")
            assert contrast(ink, colour(page, behind, "backgroundColor")) >= 4.5
        brightness = sum(colour(page, "body", "backgroundColor"))
        assert (brightness < 150) is (scheme == "dark")


def test_a_pointer_reads_out_a_chart_and_a_gap_says_so(browser: Browser, pages: dict[str, Path]) -> None:
    with opened(browser, pages["well"]) as found:
        page = found.page
        point_at(page, "#traffic svg.plot >> nth=0", 0.5)
        reading = page.locator("#traffic .reading")
        assert reading.is_visible()
        assert "17 Mar, 00:00" in reading.inner_text()
        assert [name in reading.inner_text() for name in ("shop/orders", "mail/outgoing")] == [True, True]
        point_at(page, "#latency svg.plot", 152.5 / 360)
        assert page.locator("#latency .reading").inner_text().endswith("nothing")
        assert not reading.is_visible()


def test_a_table_is_sorted_by_its_numbers_and_a_command_can_be_copied(browser: Browser, pages: dict[str, Path]) -> None:
    with opened(browser, pages["well"]) as found:
        page = found.page
        table = page.locator("#latency table")
        table.get_by_role("button", name="errors").click()
        errors = table.locator("tbody td:nth-child(4)")
        assert errors.all_inner_texts() == ["3,120", "1,771", "34", "15", "0", "0"]
        assert table.locator("th[aria-sort]").get_attribute("aria-sort") == "descending"
        table.get_by_role("button", name="errors").click()
        assert errors.first.inner_text() == "0"
        page.locator("#dead-letters .copy").first.click()
        assert page.evaluate("getSelection().toString()") == "sealane dlq redrive shop/orders billing"
        assert found.said == []


def test_it_prints_on_paper_without_its_buttons(browser: Browser, pages: dict[str, Path]) -> None:
    with opened(browser, pages["well"], scheme="dark") as found:
        page = found.page
        page.emulate_media(media="print")
        assert colour(page, "body", "backgroundColor") == (255, 255, 255)
        assert not page.locator("nav").is_visible()
        assert not page.locator(".copy").first.is_visible()
        assert page.pdf(format="A4").startswith(b"%PDF")


# --- a person at the page ---------------------------------------------------------------------------------------------


def point_at(page: Page, selector: str, part: float) -> None:
    plot = page.locator(selector)
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * part, box["y"] + box["height"] / 2)


def hover_over_every_chart(page: Page) -> None:
    for index in range(page.locator("svg.plot").count()):
        point_at(page, f"svg.plot >> nth={index}", 0.4)


def colour(page: Page, selector: str, name: str) -> tuple[int, int, int]:
    text: str = page.locator(selector).first.evaluate(f"element => getComputedStyle(element).{name}")
    red, green, blue = (int(part) for part in text.removeprefix("rgb(").removesuffix(")").split(","))
    return red, green, blue


def contrast(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    def luminance(parts: Any) -> float:
        shares = [part / 255 for part in parts]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in shares]
        return float(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)
