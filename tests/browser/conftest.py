"""A real browser: Debian's Chromium, driven by Playwright. It reaches no network."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHROMIUM = "/usr/bin/chromium"
CHROMIUM_INSTALL = "apt-get install --no-install-recommends chromium"
PLAYWRIGHT_INSTALL = "pip install playwright"

ARGUMENTS = (
    # Tests in a container run as root, where Chromium's sandbox does not start.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="module")
def browser(require_service: Callable[[str, bool, str], None]) -> Iterator[Browser]:
    """One for all tests of a file; each opens pages in a context of its own.

    No longer: while Playwright is open, an event loop runs in this thread, in which other tests make blocking calls.
    """
    require_service("Playwright", find_spec("playwright") is not None, PLAYWRIGHT_INSTALL)
    require_service("Chromium", shutil.which(CHROMIUM) is not None, CHROMIUM_INSTALL)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield browser
        browser.close()
