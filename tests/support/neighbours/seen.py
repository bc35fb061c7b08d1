"""All that can be seen of a run, and in what two of them differ."""

from __future__ import annotations

import json
import re
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from tests.support.neighbours.pairs import Pair
from tests.support.neighbours.runs import Ended
from tests.support.stored_slots import FIELDS

PRIVATE = "(private"  # marks the one line that an operator must not pass on
PUBLIC = {
    "blobs": "*",
    "epochs": "number, first, terms",
    "head": "committed, emitted, first, copied",
    "state": "*",
    "members": "user, window, nano, level, first, last",
    "changes": "*",
}
"""Columns of a journal that are functions of settings, registry and past outputs; so is every field of a slot."""
NAMED = {"populations": ("population",), "charges": ("probe", "publication"), "histograms": ("histogram",)}


@dataclass
class Seen:
    """What a run shows, by name; and what the mechanism was given, which nobody sees."""

    shown: dict[str, Any] = field(default_factory=dict)
    counts: list[tuple[int, Any]] = field(default_factory=list)


def look(ended: list[Ended], folder: Path, given: set[str], counts: list[tuple[int, Any]]) -> Seen:
    """Everything but noise, times of day, and identities."""
    shown: dict[str, Any] = {}
    for number, one in enumerate(ended):
        shown[f"exit code of run {number}"] = one.code
        shown[f"standard output of run {number}"] = one.out
        shown[f"standard error of run {number}"] = _said(one.err)
    made = {path.name: path for path in sorted(folder.rglob("*")) if path.name not in given}
    made = {
        name: path for name, path in made.items() if path.parent.name != "run.journal.events"
    }  # sealed, of open slots
    shown["files"] = [(name, oct(path.stat().st_mode)) for name, path in made.items()]
    for name, path in made.items():
        if name.startswith("out."):
            shown[f"bytes of {name}"] = path.read_bytes()
    if (folder / "run.journal").exists():
        shown |= _journal(folder / "run.journal")
    return Seen(shown, counts)


def _said(err: bytes) -> list[str]:
    """Standard error but for times of day; of the private line only that it is there."""
    lines = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}", "<time>", err.decode("utf-8", "replace")).splitlines()
    return ["<the private line>" if PRIVATE in line else line for line in lines]


def _journal(path: Path) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    connection = sqlite3.connect(path)
    try:
        tables = [
            row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")
        ]
        for table in tables:
            shown[f"rows of {table}"] = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            if table in PUBLIC:
                rows = connection.execute(f"SELECT {PUBLIC[table]} FROM {table} ORDER BY 1").fetchall()
                shown[f"content of {table}"] = rows
        if "slots" in tables:
            shown |= _slots(connection)
        if "facts" in tables:
            shown["facts"] = connection.execute("SELECT name FROM facts ORDER BY name").fetchall()
    finally:
        connection.close()
    return shown


def _slots(connection: sqlite3.Connection) -> dict[str, Any]:
    """Return every slot, and what the slots name, one after the other."""
    payloads = connection.execute("SELECT payload FROM slots ORDER BY slot").fetchall()
    entries = [dict(zip(FIELDS, msgspec.msgpack.decode(payload), strict=True)) for (payload,) in payloads]
    blobs = dict(connection.execute("SELECT hash, data FROM blobs"))
    shown: dict[str, Any] = {"content of slots": entries}
    for name, fields in NAMED.items():
        shown[f"content of {name}"] = [blobs[entry[key]] for entry in entries for key in fields if entry[key]]
    return shown


def differences(pair: Pair, one: Seen, other: Seen) -> dict[str, str]:
    """What differs between the run with the target's records and the one without, by name."""
    found = {}
    for name in sorted({*one.shown, *other.shown}):
        here, there = one.shown.get(name), other.shown.get(name)
        if here != there:
            found[name] = f"with: {_short(here)}\nwithout: {_short(there)}"
    return found | _sensitivity(pair, one, other)


def _short(value: Any) -> str:
    text = (
        value.decode("utf-8", "replace")
        if isinstance(value, bytes)
        else "\n  ".join(map(str, value))
        if isinstance(value, list)
        else str(value)
    )
    return text if len(text) < 3_000 else text[:1_000] + " … " + text[-1_500:]


def _sensitivity(pair: Pair, one: Seen, other: Seen) -> dict[str, str]:
    """One user moves the counts of a slot by at most k, in the row of their class; a stranger may push out another."""
    slots = [slot for slot, _ in one.counts]
    if slots != [slot for slot, _ in other.counts]:
        return {"counted slots": f"with: {slots}\nwithout: {[slot for slot, _ in other.counts]}"}
    populations = one.shown.get("content of populations")
    if not slots or not populations:
        return {}
    classes = [tuple(row[:2]) for row in json.loads(populations[-1])["classes"]]
    limit, row = pair.options["max_cells_per_user"], _row(pair, classes)
    unknown = _unknown_row(pair, classes)
    for (slot, here), (_, there) in zip(one.counts, other.counts, strict=True):
        moved = here - there
        for number in range(len(classes)):
            most = (limit if number == row else 0) + (2 * limit * len(pair.targets()) if number == unknown else 0)
            if abs(moved[number]).sum() > most or (number != unknown and (moved[number] < 0).any()):
                where = f"slot {slot}, class {classes[number]}"
                return {"counts of others": f"{where}\nwith: {here.tolist()}\nwithout: {there.tolist()}"}
    return {}


def _row(pair: Pair, classes: list[Any]) -> int | None:
    if pair.world.target not in pair.world.users:
        return None
    window, epsilon = pair.world.requirements[pair.world.users.index(pair.world.target)]
    return classes.index((window, round(epsilon * 1e9)))


def _unknown_row(pair: Pair, classes: list[Any]) -> int | None:
    """Strangers are in the class of the widest window and the smallest epsilon, or half of it (spec 10)."""
    if not pair.options["unknown_users"]:
        return None
    return classes.index((max(window for window, _ in classes), min(nano for _, nano in classes)))
