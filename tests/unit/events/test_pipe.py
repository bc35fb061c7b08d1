"""Live lines: what closes a slot, what is late, what is too early."""

import json
from typing import Any

import pytest

from tests.support.live_events import MemoryStore, pipe_source
from tests.support.streams import DAY, SECOND, ScriptedInbox, Wall, nonzero, plain, roster, settings
from wevent.errors import InvalidEvents
from wevent.events import live_source
from wevent.events.live_source import LiveSource, SlotBuffer
from wevent.settings.values import format_time
from wevent.streams import SlotClock, declared_clock
from wevent.streams.json_lines import ObjectDecoder
from wevent.streams.times import TimeReader

CLOCK = SlotClock(DAY, 60 * SECOND)
NOBODY = [[0, 0, 0, 0], [0, 0, 0, 0]]


def line(second: float, user: Any = 1, cell: Any = 0) -> bytes:
    event = {"time": format_time(DAY + round(second * SECOND)), "user": user, "cell": cell}
    return json.dumps(event).encode() + b"\n"


def close(second: float) -> bytes:
    return json.dumps({"close": format_time(DAY + round(second * SECOND))}).encode() + b"\n"


def live(
    *script: Any,
    start: float = 0,
    leave_open: bool = False,
    last: int | None = None,
    store: MemoryStore | None = None,
    **others: Any,
) -> LiveSource:
    wall = Wall(DAY + round(start * SECOND))
    inbox = ScriptedInbox(script, wall, leave_open=leave_open)
    return pipe_source(settings(**others), CLOCK, last, inbox=inbox, now_us=wall, store=store)


def counts(source: LiveSource, most: int = 99, first: int = 1) -> list[Any]:
    return [matrix for _, matrix, _ in plain(source.count(roster(), first, most))]


def test_slots_close_by_the_wall_clock_after_the_grace() -> None:
    source = live(line(10), 59, line(50, 1, 1), 64.0, line(59, 2, 2), 65.0, line(58, 3), grace_us=5 * SECOND)
    counted = source.count(roster(), 1, 1)
    assert next(counted).counts.matrix.tolist() == [[0, 1, 0, 0], [0, 0, 1, 0]]
    assert list(source.count(roster(), 2, 1)) == []  # the input ended before slot 2 did
    assert nonzero(source) == {"events": 4, "late": 1}


def test_slots_without_events_close_on_time_too() -> None:
    assert counts(live(leave_open=True), 3) == [NOBODY] * 3


def test_an_event_from_the_future_is_rejected_and_moves_nothing() -> None:
    source = live(line(10), line(3600, 2), line(70, 3), 60.0)
    assert counts(source) == [[[1, 0, 0, 0], [0, 0, 0, 0]]]
    assert nonzero(source) == {"events": 3, "rejected": 2, "after": 2}


def test_close_lines_close_slots() -> None:
    source = live(
        line(10) + line(70, 2) + close(60) + line(20, 3) + line(70, 4, 3) + close(240), close_slots_by="lines"
    )
    assert counts(source) == [[[1, 0, 0, 0], [0, 0, 0, 0]], [[0, 0, 0, 0], [0, 0, 0, 1]], NOBODY, NOBODY]
    assert nonzero(source) == {"events": 4, "rejected": 1, "after": 1, "late": 1}


def test_with_a_grace_events_may_be_ahead_of_the_close_lines() -> None:
    source = live(line(70, 2) + line(10) + close(60) + close(120), close_slots_by="lines", grace_us=60 * SECOND)
    assert counts(source) == [[[1, 0, 0, 0], [0, 0, 0, 0]], [[0, 0, 0, 0], [1, 0, 0, 0]]]


def test_a_close_line_in_the_middle_of_a_piece_or_cut_in_two() -> None:
    text = line(10) + close(60) + line(70, 2, 1) + close(120) + line(130)
    whole = counts(live(text, close_slots_by="lines"))
    assert len(whole) == 2
    for cut in range(1, len(text)):
        assert counts(live(text[:cut], text[cut:], close_slots_by="lines")) == whole


def test_an_earlier_close_line_changes_nothing_and_an_event_cannot_close() -> None:
    disguised = json.dumps({"time": format_time(DAY), "user": 1, "cell": 0, "close": format_time(DAY + 600 * SECOND)})
    source = live(close(60) + close(0) + disguised.encode() + b"\n", close_slots_by="lines")
    assert counts(source) == [NOBODY]
    assert source.totals()["late"] == 1


def test_without_the_setting_close_lines_are_malformed() -> None:
    source = live(close(600), 60.0)
    assert counts(source) == [NOBODY]
    assert source.totals()["malformed"] == 1


def test_a_wall_clock_that_jumps_back_reopens_nothing() -> None:
    source = live(line(10), 61, line(65, 2, 2), -3600, line(70, 3, 3), line(20, 4, 3), 120.0)
    assert counts(source) == [[[1, 0, 0, 0], [0, 0, 0, 0]], [[0, 0, 0, 1], [0, 0, 1, 0]]]
    assert source.totals()["late"] == 1


def test_a_wall_clock_that_jumps_ahead_closes_every_slot_in_order() -> None:
    source = live(line(10), 600.0, line(590, 2, 2))
    assert [slot for slot, _, _ in plain(source.count(roster(), 1, 99))] == list(range(1, 11))


def test_malformed_lines_are_counted_and_the_first_three_shown_by_number() -> None:
    bad = [
        b"{secret\n",
        b'{"time": "2026-01-01T00:00:01", "user": 1, "cell": 0}\n',
        b"[]\n",
        b'{"user": 1}\n',
        b"\xff\n",
    ]
    source = live(line(1), line(2) + b"".join(bad) + line(3, 2, 2), 60.0)
    assert counts(source) == [[[1, 0, 0, 0], [0, 0, 1, 0]]]
    assert source.totals()["malformed"] == len(bad)
    assert [place.split()[1] for place in source.first_malformed()] == ["3", "4", "5"]
    assert not any("secret" in place for place in source.first_malformed())


def test_strict_stops() -> None:
    with pytest.raises(InvalidEvents, match="line 2") as caught:
        counts(live(line(1) + b"{secret\n", 60.0, strict=True))
    assert "secret" not in str(caught.value)


def test_a_last_line_without_its_end_counts() -> None:
    source = live(line(1).rstrip(), b"", 60.0)
    assert list(source.count(roster(), 1, 1)) == []
    assert source.totals()["events"] == 1


def test_events_of_an_open_slot_are_counted_by_the_next_run() -> None:
    store = MemoryStore()
    first = live(line(10) + line(40, 2, 2) + line(50, "x") + line(20, "4", 77), close_slots_by="lines", store=store)
    assert counts(first) == []
    second = live(line(45, 1, 3) + close(60), close_slots_by="lines", store=store)
    assert plain(second.count(roster(), 1, 9)) == [(1, [[0, 0, 0, 1], [0, 0, 1, 0]], 1)]


def test_events_under_other_cells_are_found_by_their_labels_and_those_of_another_clock_are_not_counted() -> None:
    store = MemoryStore()
    assert (
        counts(live(line(10, cell="a") + line(40, 2, "b"), close_slots_by="lines", cells=["a", "b"], store=store)) == []
    )
    assert counts(live(close(60), close_slots_by="lines", cells=["c", "b"], store=store)) == [[[0, 0], [0, 1]]]
    inbox, wall = ScriptedInbox((close(60),), Wall(DAY)), Wall(DAY)
    half = SlotClock(DAY, 30 * SECOND)
    other = pipe_source(
        settings(close_slots_by="lines", cells=["a", "b"]), half, None, inbox=inbox, now_us=wall, store=store
    )
    assert counts(other) == [[[0, 0], [0, 0]]] * 2


def test_events_of_released_slots_are_dropped() -> None:
    store = MemoryStore()
    assert counts(live(line(10), close_slots_by="lines", store=store)) == []
    second = live(line(10) + close(120), close_slots_by="lines", store=store)
    second.resume({"slot": 1, "time_unit": "s"})
    assert not store.records
    assert counts(second, first=2) == [NOBODY]
    assert second.totals()["late"] == 1


def test_stop_ends_the_wait() -> None:
    source = live(leave_open=True)
    source.stop()
    assert counts(source) == []


def test_the_declared_end_ends_a_live_stream() -> None:
    assert len(counts(live(leave_open=True, last=2))) == 2


def test_a_new_roster_counts_the_slot_that_closes_next() -> None:
    source = live(line(10, 9) + close(60) + line(70, 9) + close(120), close_slots_by="lines")
    assert plain(source.count(roster(), 1, 1))[0][2] == 1
    assert plain(source.count(roster([9, 10]), 2, 1)) == [(2, [[1, 0, 0, 0], [0, 0, 0, 0]], 0)]


def test_numbers_as_times_labels_as_text() -> None:
    times = TimeReader(None, "ms")
    decoder = ObjectDecoder({"time": "t", "user": "u", "cell": "c"}, settings(cells=["north", "1"]).cells, times)
    lines = b'{"t": 1767225600000, "u": 5, "c": "north"}\n{"t": 1767225600000.5, "u": "x", "c": 1}\n'
    batch = decoder.decode(lines).batch
    assert batch.times.tolist() == [DAY, DAY + 500]
    assert batch.users.values() == [5, "x"]
    assert batch.cells.tolist() == [0, 1]
    far = decoder.decode(b'{"t": 1e300, "u": 5, "c": 1}\n{"t": ' + b"9" * 400 + b', "u": 5, "c": 1}\n').batch
    assert (far.times > 2**61).all()


def test_a_buffer_forgets_what_cannot_count(monkeypatch: pytest.MonkeyPatch) -> None:
    plain_buffer = SlotBuffer(1, roster())
    monkeypatch.setattr(live_source, "_COMPACT_ABOVE", 10)
    kept = SlotBuffer(1, roster())
    decoder = ObjectDecoder(settings().columns, settings().cells, TimeReader(None, "s"))
    for second in range(200):
        batch = decoder.decode(line(second % 59, second % 7, second % 6)).batch
        kept.add(batch)
        plain_buffer.add(batch)
        assert sum(len(part.times) for part in kept._parts) <= 2 * 10
    assert kept.count(4).matrix.tolist() == plain_buffer.count(4).matrix.tolist()


def test_the_live_clock_starts_now_or_where_the_journal_says() -> None:
    chosen = settings(start_us=None)
    assert declared_clock(chosen, now_us=lambda: DAY + 61 * SECOND) == (SlotClock(DAY + 60 * SECOND, 60 * SECOND), None)
    assert declared_clock(chosen, CLOCK) == (CLOCK, None)
