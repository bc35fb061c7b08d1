"""Which slot somebody means who writes its number, or a time."""

from __future__ import annotations

from wevent.errors import InvalidOption
from wevent.journal.contents import Head
from wevent.streams.clock import SlotClock, parse_time

FAR = 1 << 62
"""No slot has a number beyond, nor could a journal look for it."""


def slot_meant(head: Head, said: str, option: str, *, shown: str | None = None) -> int:
    """The slot that a number or a time means; of `to`, a time is where the slots end.

    Args:
        head: of the journal.
        said: what was written.
        option: `from` or `to`.
        shown: how the option is written, for messages; None: as it is called.

    Raises:
        InvalidOption: if it is no slot's number, nor a time where slots have times.
        InvalidSettings: if it is no time.
    """
    shown = shown or option
    plain = said.isascii() and said.isdecimal()
    if plain and len(said) <= 4000 and int(said):
        return min(int(said), FAR)
    terms = head.pinned
    if plain or terms is None or terms.slot_length_us is None:
        wanted = "a slot's number, 1 or above" + (", or a time" if plain else "")
        raise InvalidOption(wanted, f"{shown} {said}", "Slots are numbered from 1 on.", option=option, value=said)
    clock, time_us = SlotClock(terms.origin_us, terms.length_us), parse_time(said, shown, 0)
    before = clock.slot_of(time_us - 1)  # the last slot that starts before
    return before if option == "to" else max(1, before + 1)


def refuse_backwards(first: int, last: int, begin: str, end: str, *, shown: str = "") -> None:
    """Refuse a last slot before the first one.

    Args:
        first, last: the slots.
        begin, end: as they were written.
        shown: what stands before the names of the options.

    Raises:
        InvalidOption: if it is.
    """
    if last < first:
        raise InvalidOption(
            "a last slot that is not before the first",
            f"{shown}from {begin} {shown}to {end}",
            "Swap them.",
            option="to",
            value=end,
        )
