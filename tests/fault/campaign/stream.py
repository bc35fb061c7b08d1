"""A small stream for the campaign: 12 users in four cells, a second per slot; the arguments of commands on it."""

from __future__ import annotations

import json
import time
from pathlib import Path

START = "2026-01-01T00:00:00Z"
CLOCK = ("--slot", "1s", "--start", START)
PEOPLE = ("--requirements", "users.csv", "--cells", "4")
JOURNAL = "run.journal"
OUT = "out.ndjson"
USERS = {str(user): (4 + 4 * (user % 2), 500_000_000 + 100_000_000 * (user % 3)) for user in range(12)}
WIDEST = 8


def write_stream(folder: Path, slots: int) -> None:
    """users.csv and events.csv."""
    rows = [f"{user},{window},0.{nano // 100_000_000}" for user, (window, nano) in USERS.items()]
    (folder / "users.csv").write_text("\n".join(["user,window,epsilon", *rows]) + "\n")
    events = [f"{moment(slot + 0.5)},{user},{(user + slot) % 4}" for slot in range(slots) for user in range(0, 12, 4)]
    (folder / "events.csv").write_text("\n".join(["time,user,cell", *events]) + "\n")


def publish(end: int, *more: str, out: str = OUT, people: bool = True) -> tuple[str, ...]:
    """Publish files through a slot."""
    registered = PEOPLE if people else ("--cells", "4")
    where = ("--journal", JOURNAL, "--out", out)
    return ("publish", "events.csv", *CLOCK, "--end", moment(end), *registered, *where, *more)


def live(*more: str, out: str = OUT) -> tuple[str, ...]:
    """Publish live lines, whose slots are closed by lines."""
    return (
        "publish",
        "-",
        *CLOCK,
        "--close-slots-by",
        "lines",
        *PEOPLE,
        "--journal",
        JOURNAL,
        "--out",
        out,
        *more,
    )


def lines(first: int, last: int) -> bytes:
    """Live lines of some slots, each closed, and some events of a slot that stays open."""
    texts = []
    for slot in range(first, last + 2):
        texts += [
            json.dumps({"time": moment(slot - 0.5), "user": str(user), "cell": (user + slot) % 4})
            for user in range(0, 12, 4)
        ]
        if slot <= last:
            texts.append(json.dumps({"close": moment(slot)}))
    return ("\n".join(texts) + "\n").encode()


def moment(second: float) -> str:
    """Seconds after the start as a time."""
    whole, part = divmod(round(second * 1_000_000), 1_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(1_767_225_600 + whole)) + (f".{part:06d}Z" if part else "Z")
