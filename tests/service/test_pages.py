"""The pages in a real browser, served by the real process."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.service.browsing import DESK, PHONE, Scheme, launch, watched
from tests.service.served import CELLS, Crowd, Served
from tests.support.commands import wait_for

pytestmark = pytest.mark.slow
ROWS = 60  # of the table
ONE_CELL = "/?cells=University"  # unless told, the page shows the largest cells: on a busy machine others
_BOTH: tuple[Scheme, ...] = ("light", "dark")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        found = launch(playwright)
        yield found
        found.close()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A public service of six cells, to which events are sent all the time."""
    served = Served(tmp_path_factory.mktemp("city")).run()
    with Crowd(served):
        served.wait_for_slot(3)
        yield served
    served.stop()


def latest_slot(page: Page) -> int:
    found = re.search(r"slot ([\d,]+)", page.locator("#latest-note").inner_text())
    assert found is not None
    return int(found[1].replace(",", ""))


def table_slots(page: Page) -> list[int]:
    """The slots of the table, newest first."""
    texts: list[str] = page.locator("#numbers tbody th").all_inner_texts()
    return [int(text.replace(",", "")) for text in texts]


def pick(page: Page, kind: str, word: str) -> None:
    page.locator(f"input[name={kind}][value={word}]").check()


def fits(page: Page) -> None:
    """Nothing sticks out at the side."""
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


# The live page


def test_releases_come_in_while_events_arrive(browser: Browser, service: Served) -> None:
    with watched(browser, service.url + ONE_CELL) as seen:
        page = seen.page
        expect(page.locator("#state-text")).to_have_text("Live")
        expect(page.get_by_role("heading", level=1)).to_have_text("city")
        expect(page.locator(".panel svg.main-svg").first).to_be_visible()
        page.locator("#heat").scroll_into_view_if_needed()  # what is out of sight is not drawn
        expect(page.locator("#heat image")).to_have_count(1)
        first = latest_slot(page)
        wait_for(lambda: latest_slot(page) >= first + 2, "two more releases")
        page.get_by_role("button", name="Pause").click()
        shown = latest_slot(page)
        value = page.locator(".panel", has_text="University").locator(".panel-value").inner_text()
        (released,) = service.ask(f"/v1/releases?from={shown}&to={shown}")["releases"]
        expected = released["histogram"][0]
        assert float(value) == pytest.approx(expected, rel=0.005, abs=0.005)
        page.wait_for_timeout(1500)
        assert latest_slot(page) == shown  # it stays as long as the reader wants


def test_budgets_and_people_are_told(browser: Browser, service: Served) -> None:
    with watched(browser, service.url) as seen:
        rows = seen.page.locator("#budget tr")
        expect(rows).to_have_count(len(service.ask("/v1/ledger")["classes"]))
        expect(rows.first).to_contain_text("High/Small")
        expect(rows.first).to_contain_text("of 0.5")
        expect(seen.page.locator("#people")).not_to_have_text("–")


def test_a_restart_is_caught_up_with(browser: Browser, tmp_path: Path) -> None:
    served = Served(tmp_path).run()
    try:
        served.wait_for_slot(2)
        with watched(browser, served.url) as seen:
            page = seen.page
            seen.expected += ["ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET"]
            page.get_by_text("The same numbers as a table").click()
            expect(page.locator("#state-text")).to_have_text("Live")
            served.stop()
            expect(page.locator("#state")).to_have_attribute("data-state", "waiting")
            before = latest_slot(page)
            page.wait_for_timeout(2000)
            served.run()
            expect(page.locator("#state-text")).to_have_text("Live")
            served.wait_for_slot(before + 4)
            wait_for(lambda: table_slots(page)[:1] >= [before + 4], f"slot {before + 4}")
            slots = table_slots(page)
            assert slots == list(range(slots[0], max(0, slots[0] - ROWS), -1))  # those of the break too
    finally:
        served.stop()


def test_what_is_downloaded_is_what_was_released(browser: Browser, service: Served) -> None:
    with watched(browser, service.url) as seen:
        page = seen.page
        page.get_by_label("Cells", exact=True).select_option("chosen")
        for kind in ("CSV", "NDJSON", "Parquet"):
            with page.expect_download() as caught:
                page.get_by_role("button", name=kind, exact=True).click()
            file = Path(caught.value.path())
            assert file.stat().st_size > 0
            if kind == "CSV":
                head, first, *_ = file.read_text(encoding="utf-8").splitlines()
                assert head.startswith("slot,start,end,cell,value")
                assert first.split(",")[3] in CELLS
        expect(page.locator("#downloaded")).to_contain_text("parquet is in your downloads")
        with page.expect_download() as caught:
            page.get_by_role("button", name="Privacy statement").click()
        assert "promise" in Path(caught.value.path()).read_text(encoding="utf-8")


def test_charts_are_read_with_the_keys(browser: Browser, service: Served) -> None:
    with watched(browser, service.url + ONE_CELL) as seen:
        page = seen.page
        chart = page.get_by_role("slider", name="University over time")
        chart.focus()
        page.keyboard.press("ArrowLeft")
        there = int(chart.get_attribute("aria-valuenow") or 0)
        expect(chart).to_have_attribute("aria-valuetext", re.compile(rf"slot {there}: .*(measured|estimated)"))
        page.keyboard.press("Home")
        first = chart.get_attribute("aria-valuenow")
        assert first == chart.get_attribute("aria-valuemin")
        expect(page.locator("#pointed")).to_contain_text(f"slot {first}")
        page.keyboard.press("Escape")
        expect(page.locator("#pointed")).to_be_empty()
        heat = page.get_by_role("slider", name="All cells over time")
        heat.focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        expect(heat).to_have_attribute("aria-valuetext", re.compile("^Market, "))
        expect(page.locator("#said")).to_contain_text("Market")


def test_who_may_not_read_is_asked_for_a_token(browser: Browser, tmp_path: Path) -> None:
    served = Served(tmp_path, public=False).run()
    try:
        with watched(browser, served.url) as seen:
            page = seen.page
            seen.expected += ["401"]
            expect(page.get_by_role("heading", name="These releases are not public")).to_be_visible()
            seen.has_no_violations()
            page.get_by_label("Read token").fill("wev_00000000_" + "0" * 64)
            page.keyboard.press("Enter")
            expect(page.get_by_role("alert")).to_be_visible()
            page.get_by_label("Read token").fill(served.token("read"))
            page.keyboard.press("Enter")
            expect(page.locator("#state-text")).to_have_text("Live")
            page.reload()
            expect(page.locator("#state-text")).to_have_text("Live")
            assert page.evaluate("Object.keys(localStorage).length") == 0
    finally:
        served.stop()


HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "<b>bold</b> &amp; <a href='javascript:alert(3)'>link</a>",
    "$\\frac{1}{2}$",
    "‮txet sdrawkcab",
)


def test_labels_are_text_whatever_they_say(browser: Browser, tmp_path: Path) -> None:
    cells = (*HOSTILE, *(f"Cell {number}" for number in range(115)))
    served = Served(tmp_path, cells=cells).run()
    try:
        with Crowd(served):
            served.wait_for_slot(3)
            with watched(browser, served.url) as seen:
                page = seen.page
                expect(page.locator("#cell-list li")).to_have_count(len(cells))
                search = page.get_by_label("Find a cell")
                for hostile in HOSTILE[:3]:
                    search.fill(hostile)
                    expect(page.locator("#cell-list li")).to_have_count(1)
                    if not page.locator("#cell-list input").is_checked():
                        page.locator("#cell-list input").check()
                    expect(page.get_by_role("heading", level=3, name=hostile, exact=True)).to_be_visible()
                search.fill("cell 11")
                expect(page.locator("#cell-list li")).to_have_count(6)
                page.locator("#heat").scroll_into_view_if_needed()
                expect(page.locator("#heat image")).to_have_count(1)
                labels = " ".join(page.locator("#heat .ytick").all_text_contents())
                assert "<img src=x" in labels
                assert page.locator("main img, main a[href^='javascript'], #heat tspan[style]").count() == 0
                page.reload()  # the address remembers the cells
                expect(page.get_by_role("heading", level=3, name=HOSTILE[1], exact=True)).to_be_visible()
    finally:
        served.stop()


# The page where a person chooses


def choose(page: Page, level: str) -> None:
    privacy, window = level.split("/")
    pick(page, "privacy", privacy)
    pick(page, "window", window)
    page.get_by_role("button", name=f"Choose {level}").click()
    expect(page.locator("#done")).to_have_text(f"Saved: {level}.")


def test_a_change_a_second_one_and_a_change_back(browser: Browser, service: Served) -> None:
    enrol = service.token("enrol")

    def held() -> dict[str, Any]:
        found: dict[str, Any] = service.ask("/v1/users/person-2/requirement", enrol)
        return found

    with watched(browser, service.page("person-2")) as seen:  # holds High/Large
        page = seen.page
        expect(page.locator("#now")).to_contain_text("You are counted under this promise")
        assert page.url == f"{service.url}/choose"  # the link's token is in no address
        pick(page, "privacy", "Low")
        expect(page.get_by_role("heading", name="What Low/Large means")).to_be_visible()
        expect(page.locator("#promise")).to_contain_text("within any 12 seconds")
        expect(page.locator("#odds")).to_contain_text("89 % at most")
        expect(page.locator("#times")).to_contain_text(
            re.compile(r"From .* on.*any 12 seconds lose at most 2 .*Until .*your earlier choice protects you as well")
        )
        ends = 0
        for level, window in (("Low/Large", 12), ("Low/Small", 12), ("High/Large", 4)):  # `window`: of the one before
            choose(page, level)
            expect(page.get_by_role("button", name="This is your choice now")).to_have_attribute(
                "aria-disabled", "true"
            )
            expect(page.locator("#pause-part")).to_be_hidden()
            expect(page.locator("#now")).to_contain_text("your earlier choice protects you as well")
            wait_for(lambda: not held()["queued"], "a change that takes effect")
            found = held()
            assert found["requirement"]["level"] == level
            ends = max(ends, found["in_force_from"] - 1 + window)
            assert found["earlier_until"] in (ends, None)  # None: a slow machine was slower than the window
            expect(page.locator("#memberships")).to_contain_text(re.compile(rf"{level}.*held from"))
        expect(page.locator("#now")).not_to_contain_text("earlier choice")


def test_a_pause_before_a_change(browser: Browser, service: Served) -> None:
    with watched(browser, service.page("person-11")) as seen:  # holds High/Large
        page = seen.page
        seen.expected += ["404"]  # nobody is registered under the link in the pause
        pick(page, "privacy", "Low")
        pick(page, "window", "Small")
        expect(page.locator("#pause-words")).to_contain_text("choose Low/Small from")
        page.get_by_role("button", name="Pause first").click()
        expect(page.locator("#done")).to_contain_text("Paused from")
        expect(page.get_by_role("button", name="Choose Low/Small")).to_be_focused()
        expect(page.locator("#pause-part")).to_be_hidden()
        expect(page.locator("#memberships")).to_contain_text("over since")
        page.reload()  # the tab remembers
        expect(page.locator("#now")).to_contain_text("Paused")
        expect(page.get_by_role("button", name="Choose Low/Small")).to_be_visible()
        (row,) = service.ask("/v1/users/person-11", service.token("enrol"))["earlier"]
        free = row["last"] + 4  # the first slot that shares no window with the last one that was counted
        expect(page.locator("#now")).to_contain_text(re.compile(rf"Choose Low/Small from .*\(slot {free}\) on"))
        service.wait_for_slot(free)
        page.reload()
        expect(page.locator("#when")).to_contain_text("The pause is over: no period of 4 seconds contains anything")
        choose(page, "Low/Small")
        expect(page.locator("#now")).to_contain_text("You are counted under this promise")
        assert page.evaluate("Object.keys(sessionStorage)") == ["wevent-link"]
        assert service.ask("/v1/users/person-11/requirement", service.token("enrol"))["in_force_from"] >= free


def test_leaving_and_erasing_are_one_click_each(browser: Browser, service: Served) -> None:
    link = service.page("person-1")
    with watched(browser, link) as seen:
        page = seen.page
        seen.expected += ["404"]  # nobody is registered under the link then
        with page.expect_response(lambda answer: answer.request.method == "DELETE") as leaving:
            page.get_by_role("button", name="Leave now").click()
        over = leaving.value.json()["kept_until"] + 1  # it is kept through that slot
        expect(page.locator("#left")).to_contain_text(re.compile(rf"You have left, .*kept until .*\(slot {over}\)"))
        expect(page.locator("#memberships")).to_contain_text("over since")  # once it is, without being asked
        expect(page.locator("#now")).to_contain_text("Not in the statistics")
        pick(page, "window", "Large")
        pick(page, "privacy", "High")
        page.get_by_role("button", name="Choose High/Large").click()
        expect(page.locator("#now")).to_contain_text("High/Large")
        page.get_by_role("button", name="Erase now").click()
        expect(page.get_by_role("heading", name="Your id is erased")).to_be_focused()
        assert page.evaluate("Object.keys(sessionStorage).length") == 0
    with watched(browser, link) as seen:
        seen.expected += ["401"]
        expect(seen.page.get_by_role("heading", name="This link no longer works")).to_be_visible()
        seen.has_no_violations()


def test_links_that_are_over_are_explained(browser: Browser, service: Served) -> None:
    link = service.page("person-3")
    with watched(browser, link) as seen:
        page = seen.page
        expect(page.locator("#now")).to_contain_text("You are counted")
        service.tokens.end_links("person-3")
        seen.expected += ["401"]
        page.reload()
        expect(page.get_by_role("heading", name="This link no longer works")).to_be_visible()
        expect(page.get_by_role("button", name="Choose")).to_have_count(0)
    with watched(browser, f"{service.url}/choose") as seen:
        expect(seen.page.get_by_role("heading", name="To choose, open your personal link")).to_be_visible()


def test_a_choice_is_made_with_the_keys_alone(browser: Browser, service: Served) -> None:
    with watched(browser, service.page("person-4")) as seen:  # holds Medium/Medium
        page = seen.page
        expect(page.locator("#now")).to_contain_text("Medium/Medium")
        for _ in range(30):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.name === 'privacy'"):
                break
        page.keyboard.press("ArrowUp")  # from Medium to High
        page.keyboard.press("Tab")
        page.keyboard.press("ArrowDown")  # from Medium to Large
        expect(page.get_by_role("button", name="Choose High/Large")).to_be_visible()
        page.keyboard.press("Tab")
        expect(page.get_by_role("button", name="Choose High/Large")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("#done")).to_contain_text("Saved: High/Large")
        stops = []
        for _ in range(5):
            page.keyboard.press("Tab")
            stops.append(page.evaluate("document.activeElement.id || document.activeElement.className"))
        assert [stop for stop in stops if stop in ("leave", "erase", "export", "end-link")] == [
            "leave",
            "erase",
            "export",
            "end-link",
        ]


def test_what_is_held_is_handed_over(browser: Browser, service: Served) -> None:
    with watched(browser, service.page("person-5")) as seen:
        page = seen.page
        expect(page.locator("#memberships")).to_contain_text("Medium/Large")
        with page.expect_download() as caught:
            page.get_by_role("button", name="Download all of it").click()
        assert '"memberships"' in Path(caught.value.path()).read_text(encoding="utf-8")
        page.get_by_role("button", name="Done? End this link").click()
        expect(page.get_by_role("heading", name="This link has ended")).to_be_visible()


# The administrator's page


def test_an_administrator_sees_the_state(browser: Browser, service: Served) -> None:
    with watched(browser, f"{service.url}/admin") as seen:
        page = seen.page
        seen.expected += ["401", "403"]
        for wrong, told in (
            (service.token("read"), "not of the role"),
            ("wev_no", "unknown, has expired or was revoked"),
        ):
            page.get_by_label("Admin token").fill(wrong)
            page.keyboard.press("Enter")
            expect(page.get_by_role("alert")).to_contain_text(told)
        page.get_by_label("Admin token").fill(service.token("admin"))
        page.keyboard.press("Enter")
        expect(page.locator("#ready")).to_have_text("Well")
        expect(page.locator("#levels tr")).to_have_count(9)
        expect(page.locator("#ledger tr")).not_to_have_count(0)
        page.get_by_role("button", name="Forget token").click()
        expect(page.get_by_label("Admin token")).to_be_visible()
        assert page.evaluate("Object.keys(sessionStorage).length") == 0


# All of them


@pytest.mark.parametrize("scheme", _BOTH)
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_labels_and_contrast(browser: Browser, service: Served, size: tuple[int, int], scheme: Scheme) -> None:
    with watched(browser, service.url, size=size, scheme=scheme) as seen:
        expect(seen.page.locator(".panel svg.main-svg").first).to_be_visible()
        seen.page.get_by_text("The same numbers as a table").click()
        seen.has_no_violations()
        fits(seen.page)
        seen.page.goto(service.page("person-6"))
        expect(seen.page.locator("#now")).to_be_visible()
        pick(seen.page, "privacy", "High")
        expect(seen.page.locator("#times li")).not_to_have_count(0)
        seen.has_no_violations()
        fits(seen.page)
        seen.page.goto(f"{service.url}/admin")
        seen.has_no_violations()
        seen.page.get_by_label("Admin token").fill(service.token("admin"))
        seen.page.keyboard.press("Enter")
        expect(seen.page.locator("#ready")).to_have_text("Well")
        seen.has_no_violations()
        fits(seen.page)


def test_the_store_keeps_what_it_has_room_for(browser: Browser, service: Served) -> None:
    """However many releases come in; and events may be cut anywhere on their way."""
    with watched(browser, f"{service.url}/choose") as seen:
        told = seen.page.evaluate(
            """async (text) => {
              const { Releases } = await import("/static/store.js");
              const { EventReader } = await import("/static/release_stream.js");
              const store = new Releases(2000);
              const size = store.values.length;
              const numbers = new Array(2000).fill(1);
              for (let slot = 1; slot <= 3000; slot += 1) {
                store.add({ slot, outcome: "fresh", measured: slot, histogram: numbers, low: null, high: null });
              }
              const { first, last } = store.range(500);
              const reader = new EventReader();
              const found = [...text].flatMap((sign) => reader.read(sign));
              return { same: store.values.length === size, rows: store.rows.length, first, last, gone: store.at(1), found };
            }""",
            ': hello\r\n\r\nid: 7\nevent: release\ndata: {"a":\ndata: 1}\n\n: x\n\ndata: plain\r\n\r\n',
        )
    assert told["same"]
    assert told["rows"] == told["last"] - told["first"] + 1 == 125
    assert told["gone"] is None
    assert [(one["id"], one["type"], one["data"]) for one in told["found"]] == [
        ("7", "release", '{"a":\n1}'),
        (None, "message", "plain"),
    ]
