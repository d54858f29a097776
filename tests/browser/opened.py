"""A page that is open in the browser, and all that it said and asked for on the way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

Scheme = Literal["light", "dark"]


@dataclass
class Opened:
    page: Page
    said: list[str] = field(default_factory=list)
    """Errors and warnings of the console, and exceptions. What a policy blocks is among them."""
    asked: list[str] = field(default_factory=list)
    """Addresses of all requests."""


@contextmanager
def opened(
    browser: Browser, path: Path, *, width: int = 1280, scheme: Scheme = "light", scripts: bool = True
) -> Iterator[Opened]:
    """The file in a window of this width, in a context that nothing else has used."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=scripts
    )
    try:
        found = Opened(context.new_page())
        found.page.on("console", lambda message: found.said.append(f"{message.type}: {message.text}"))
        found.page.on("pageerror", lambda error: found.said.append(str(error)))
        found.page.on("request", lambda request: found.asked.append(request.url))
        found.page.goto(path.as_uri())
        yield found
    finally:
        context.close()
