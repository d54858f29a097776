"""Every setting and every limit is on docs/settings.md, with the default that the code really has."""

from __future__ import annotations

import pytest

from tests.architecture.settings_page import (
    PAGE,
    Value,
    documented,
    fixed_limits,
    settings_classes,
    settings_of,
    value_of,
)
from tests.architecture.source import expect_none, modules

FIXED_LIMITS = "sealane"
"""The section of limits that no setting changes."""


def is_same(real: Value, written: Value) -> bool:
    """Equal, where on is not 1."""
    return real == written and isinstance(real, bool) == isinstance(written, bool)


def differences(real: dict[str, Value], written: dict[str, Value]) -> list[str]:
    """What the page says that is not so, and what is so that the page does not say."""
    missing = [f"{name} = {real[name]!r} has no row with a reason" for name in real if name not in written]
    stale = [f"{name} does not exist any more" for name in written if name not in real]
    wrong = [
        f"{name} is {real[name]!r}, the page says {written[name]!r}"
        for name in real
        if name in written and not is_same(real[name], written[name])
    ]
    return missing + stale + wrong


def test_every_setting_is_documented_with_its_default() -> None:
    page = documented(PAGE.read_text(encoding="utf-8"))
    expect_none(
        f"{name}: {problem}"
        for name, settings_class in settings_classes().items()
        for problem in differences(settings_of(settings_class), page.get(name, {}))
    )


def test_every_fixed_limit_is_documented_with_its_value() -> None:
    page = documented(PAGE.read_text(encoding="utf-8"))
    real = {
        f"{module.name.removeprefix('sealane.')}.{name}": value
        for module in modules()
        if module.layer != "cli"  # what it shows at most is a matter of display, not a limit of the broker
        for name, value in fixed_limits(module).items()
    }
    expect_none(differences(real, page.get(FIXED_LIMITS, {})))


def test_the_page_has_no_section_for_something_that_is_gone() -> None:
    page = documented(PAGE.read_text(encoding="utf-8"))
    expect_none(sorted(set(page) - set(settings_classes()) - {FIXED_LIMITS}))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8 MiB", 8 * 1024 * 1024),
        ("100,000", 100_000),
        ("0.002 s", 0.002),
        ("12 h", 12 * 3600),
        ("on", True),
        ("none", None),
        ("`drop-oldest`", "drop-oldest"),
        ("3 parsecs", "3 parsecs"),
    ],
)
def test_a_default_on_the_page_is_read_as_its_value(text: str, value: Value) -> None:
    assert value_of(text) == value


def test_a_page_that_is_missing_a_row_or_has_an_old_value_is_found() -> None:
    rows = ["| `a_bytes` | 1 MiB | why |", "| `b` | on | why |", "| `c` | 3 |  |", "| `gone` | 1 | why |"]
    written = documented("\n".join(["## Storage: `x.Storage`", *rows]))["x.Storage"]

    assert differences({"a_bytes": 2**20, "b": True, "gone": 1}, written) == []
    assert differences({"a_bytes": 2**21, "b": 1, "c": 3}, written) == [
        "c = 3 has no row with a reason",
        "gone does not exist any more",
        "a_bytes is 2097152, the page says 1048576",
        "b is 1, the page says True",
    ]
