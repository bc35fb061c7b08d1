"""Pictures of the pages for the documentation: `python -m tests.service.screenshots [FOLDER]`.

An invented city of 2,000 people is published for eight hours of minutes, then served, and each page is taken in the
system's Chromium. The folder is docs/images unless told.
"""

from __future__ import annotations

import io
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.service.browsing import DESK, PHONE, Scheme, launch, watched
from tests.service.served import Served
from tests.support.commands import call
from wevent.core.requirements import Levels
from wevent.experiments.datasets.city import DISTRICTS, City

_PEOPLE, _MINUTES = 2_000, 480
_COLOURS = 256  # a palette of so many is smaller by far and looks the same


def main() -> None:
    """Make all of them."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images")
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        time.sleep(max(0, datetime.now(UTC).second - 20) and 61 - datetime.now(UTC).second)  # within one minute
        served, crowd = _city(Path(place))
        served.run()
        try:
            browser = launch(playwright)
            for name, picture in _pictures(browser, served).items():
                served.send(crowd)  # the city goes on
                (folder / f"service-{name}.png").write_bytes(_small(picture()))
                print(f"service-{name}.png")
            browser.close()
        finally:
            served.stop()


def _pictures(browser: Browser, served: Served) -> dict[str, Callable[[], bytes]]:
    def shot(
        path: str, size: tuple[int, int], scheme: Scheme, act: Callable[[Page], None], *, whole: bool = False
    ) -> Callable[[], bytes]:
        def take() -> bytes:
            with watched(browser, path, size=size, scheme=scheme) as seen:
                act(seen.page)
                seen.page.wait_for_timeout(1000)
                return seen.page.screenshot(full_page=whole)

        return take

    def administer(page: Page) -> None:
        page.get_by_label("Admin token").fill(served.token("admin"))
        page.keyboard.press("Enter")
        expect(page.locator("#ready")).to_have_text("Well")
        page.mouse.move(5, 5)

    tall = (DESK[0], 1400)
    return {
        "live": shot(served.url, tall, "light", _live),
        "live-dark": shot(served.url, tall, "dark", _pointed),
        "live-phone": shot(served.url, (PHONE[0], 1400), "light", _live),
        "choose": shot(served.page("700"), (DESK[0], 1100), "light", _choose),
        "choose-phone": shot(served.page("700"), (PHONE[0], 1400), "dark", _choose),
        "admin": shot(f"{served.url}/admin", (DESK[0], 1100), "light", administer),
    }


def _live(page: Page) -> None:
    expect(page.locator("#state-text")).to_have_text("Live")
    page.get_by_role("button", name="8 hours").click()
    expect(page.locator(".panel svg.main-svg").first).to_be_visible()


def _pointed(page: Page) -> None:
    _live(page)
    box = page.locator("#heat").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.62, box["y"] + 70)


def _choose(page: Page) -> None:
    page.locator("input[name=privacy][value=High]").check()
    page.locator("input[name=window][value=Small]").check()
    expect(page.locator("#times li")).not_to_have_count(0)


def _city(folder: Path) -> tuple[Served, list[tuple[str, str]]]:
    """Eight hours of the invented city up to now, published; and who was where at the end."""
    served = Served(folder, cells=DISTRICTS, slot="1min", ago=timedelta(minutes=_MINUTES), levels=Levels.default())
    generator = np.random.default_rng(1)
    start = served.began
    crowd: list[tuple[str, str]] = []
    with (folder / "events.csv").open("w", encoding="utf-8") as file:
        file.write("time,user,cell\n")
        for minute, (present, district) in enumerate(City(_PEOPLE, _MINUTES).walk(generator)):
            moment = (start + timedelta(minutes=minute, seconds=30)).isoformat()
            crowd = [(str(user), DISTRICTS[place]) for user, place in zip(present, district, strict=True)]
            file.writelines(f"{moment},{user},{cell}\n" for user, cell in crowd)
    words = Levels.default()
    privacy, window = (generator.choice(list(found), _PEOPLE) for found in (words.privacy, words.window))
    rows = (f"{user},{privacy[user]}/{window[user]}\n" for user in range(_PEOPLE))
    (folder / "users.csv").write_text("user,level\n" + "".join(rows), encoding="utf-8")
    end = datetime.now(UTC).replace(second=0, microsecond=0)
    done = call(folder, "publish", "events.csv", "--config", "wevent.toml", "--end", f"{end:%Y-%m-%dT%H:%M:%SZ}")
    assert done.code == 0, done
    return served, crowd


def _small(picture: bytes) -> bytes:
    """The same picture in fewer bytes."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image = image.quantize(_COLOURS, kmeans=2, dither=Image.Dither.NONE)
    out = io.BytesIO()
    image.save(out, "PNG", optimize=True)
    return out.getvalue()


if __name__ == "__main__":
    main()
