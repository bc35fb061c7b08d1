"""A real browser: the system's Chromium, and pages that note what must not happen."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Playwright, Request, expect

from tests.support.commands import PATIENCE_S

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE_MS = 1000 * PATIENCE_S
DESK, PHONE = (1440, 1000), (390, 844)
Scheme = Literal["light", "dark"]

expect.set_options(timeout=PATIENCE_MS)


def launch(playwright: Playwright) -> Browser:
    """The system's browser."""
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    assert found is not None, "the pages are tested with Chromium: make chromium, or sudo apt-get install chromium"
    return playwright.chromium.launch(executable_path=found, args=list(_FLAGS), timeout=PATIENCE_MS)


class Watched:
    """A page, and what went wrong on it.

    Attributes:
        page: to be used.
        troubles: errors in the console, errors of scripts, requests to other hosts, dialogues.
        expected: parts of console errors that belong to what is tested, such as the status of a refusal.
    """

    def __init__(self, context: BrowserContext, host: str) -> None:
        self.page = context.new_page()
        self.troubles: list[str] = []
        self.expected: list[str] = []
        self._host = host
        page = self.page
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.troubles.append(f"{error}"))
        page.on("request", self._look)
        page.on("dialog", self._dismiss)

    def has_no_violations(self) -> None:
        """axe-core finds nothing to complain about: names, roles, contrast. What it puts into the page itself is its own."""
        self.check()
        found = Axe().run(self.page).response["violations"]
        assert not found, [(one["id"], [node["html"][:200] for node in one["nodes"]][:5]) for one in found]
        self.troubles.clear()

    def check(self) -> None:
        """Nothing went wrong."""
        found = [text for text in self.troubles if not any(part in text for part in self.expected)]
        assert not found, found

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.troubles.append(message.text)

    def _look(self, request: Request) -> None:
        url = urlsplit(request.url)
        if url.scheme not in ("data", "blob") and url.netloc != self._host:
            self.troubles.append(f"a request to {url.netloc}")

    def _dismiss(self, dialogue: Dialog) -> None:
        self.troubles.append(f"dialogue: {dialogue.message}")
        dialogue.dismiss()


@contextmanager
def watched(browser: Browser, url: str, *, size: tuple[int, int] = DESK, scheme: Scheme = "light") -> Iterator[Watched]:
    """A page at an address, in a session of its own; at the end nothing may have gone wrong."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme=scheme,
        timezone_id="Europe/Berlin",
        reduced_motion="reduce",
        has_touch=size[0] < 600,
    )
    context.set_default_timeout(PATIENCE_MS)
    try:
        seen = Watched(context, urlsplit(url).netloc)
        seen.page.goto(url)
        yield seen
        seen.check()
    finally:
        context.close()
