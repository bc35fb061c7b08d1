"""What a run came to, in words: what is public, and the one line that is not."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from wevent.publishing.loop import Summary
from wevent.settings import Settings
from wevent.streams.source import in_words


def say(console: Console, text: str) -> None:
    """A sentence as it is: nothing in it is markup."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def report_run(console: Console, summary: Summary, settings: Settings) -> None:
    """What the run came to: nothing here depends on anybody's events."""
    if summary.turns is not None:
        text = _of_replica(summary.turns, summary.last)
    elif summary.last < summary.first:
        text = f"Nothing new: slot {summary.last} was the last one." if summary.last else "No slot was published."
    elif summary.last == summary.first:
        text = f"Published slot {summary.last}."
    else:
        text = f"Published slots {summary.first} to {summary.last}."
    if summary.sent_again:
        text += f" {summary.sent_again} releases were missing in the output and were sent again."
    if summary.interrupted:
        text += f" Stopped as asked; everything is stored in {settings.journal}. Run the same command again to resume."
    say(console, text)


def _of_replica(turns: Sequence[tuple[int, int]], last: int) -> str:
    """What one of several replicas did, and how far all of them came."""
    if not turns:
        return f"Published no slot itself: slot {last} was the last one."
    spans = [f"{first} to {through}" for first, through in turns]
    text = f"Published slots {' and '.join(filter(None, (', '.join(spans[:-1]), spans[-1])))}."
    return text if last <= turns[-1][1] else f"{text[:-1]} as the writer, then stood by: slot {last} was the last one."


def report_private(console: Console, totals: dict[str, int], malformed: list[str]) -> None:
    """The one line that depends on events: totals of the whole run, for the operator's eyes. It is always there."""
    counts = in_words(totals)
    where = f"; the first malformed: {'; '.join(malformed)}" if malformed else ""
    text = f"Events not counted in this run (private: do not publish these numbers): {counts}{where}."
    say(console, text)
