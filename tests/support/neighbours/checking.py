"""Both sides of a pair run and compared; a pair that differs is made smaller and told in words."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tests.support.neighbours.pairs import Pair
from tests.support.neighbours.runs import Ended, command_runs, counted, in_this_process, library_run
from tests.support.neighbours.seen import Seen, differences, look

Run = Callable[[Pair, Path], list[Ended]]
"""Runs one side of a pair in an empty folder."""


def usual_run(pair: Pair, folder: Path) -> list[Ended]:
    """In this process: the command, or the library where the clock is injected."""
    if pair.way == "clock":
        return library_run(pair, folder)
    return command_runs(pair, folder, in_this_process, reports=("verify", "status", "releases"))


def observe(pair: Pair, folder: Path, run: Run = usual_run) -> Seen:
    """One side."""
    counted()
    folder.mkdir()
    try:
        ended = run(pair, folder)
        given = {"users.csv", "cells.txt", *(feed.name for feed in pair.feeds)}
        return look(ended, folder, given, counted())
    finally:
        for path in folder.parent.glob(f"{folder.name}*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def compare(pair: Pair, folder: Path, run: Run = usual_run) -> tuple[Seen, dict[str, str]]:
    """What is seen with the target's records, and in what it differs from what is seen without them."""
    with_target = observe(pair, folder / "run", run)
    return with_target, differences(pair, with_target, observe(pair.without_target(), folder / "run", run))


def main_difference(found: dict[str, str]) -> str:
    """What stands for all of the differences: a run that ends otherwise makes everything else different, too."""
    for name in ("exit code", "standard output", "bytes", "counts of others", "files", "standard error"):
        for one in found:
            if one.startswith(name):
                return one
    return min(found)


def shrunk(pair: Pair, folder: Path, run: Run = usual_run, tries: int = 40) -> Pair:
    """A smaller pair with the same main difference: records are dropped as long as it stays."""
    wanted = main_difference(compare(pair, folder, run)[1])

    def fails(candidate: Pair) -> bool:
        found = compare(candidate, folder, run)[1] if candidate.targets() else {}
        return bool(found) and main_difference(found) == wanted

    size = max(1, _records(pair) // 2)
    while tries > 0:
        smaller = None
        for start in range(0, _records(pair), size):
            candidate = _dropped(pair, start, start + size)
            tries -= 1
            if tries >= 0 and fails(candidate):
                smaller = candidate
                break
        if smaller is not None:
            pair = smaller
        elif size == 1:
            break
        else:
            size = size // 2
    return pair


def _records(pair: Pair) -> int:
    return sum(len(feed.records) for feed in pair.feeds)


def _dropped(pair: Pair, start: int, stop: int) -> Pair:
    """Without the records of these places, counted over all feeds."""
    feeds, place = [], 0
    for feed in pair.feeds:
        feeds.append(feed.only([not start <= place + index < stop for index in range(len(feed.records))]))
        place += len(feed.records)
    return replace(pair, feeds=tuple(feeds))


def told(pair: Pair, found: dict[str, str]) -> str:
    """The pair in words: how to repeat it, the settings, the inputs (the target's records marked), what differs."""
    lines = [f"pair {pair.seed}: WEVENT_PAIR_SEED={pair.seed} repeats it ({pair.way}, target {pair.world.target!r})"]
    settings = ", ".join(f"{name} = {value}" for name, value in sorted(pair.options.items()))
    users = zip(pair.world.users, pair.world.requirements, strict=True)
    lines.append(f"  settings: {settings}; {pair.world.slots} slots, cells {pair.world.cells}, ends {pair.ends}")
    lines.append(f"  users: {', '.join(f'{user}: {one}' for user, one in users)}; inputs {' '.join(pair.inputs)}")
    for feed in pair.feeds:
        kind = (
            " ".join(map(str, feed.types)) if feed.spelling.format == "parquet" else f"lines end with {feed.ending!r}"
        )
        lines.append(f"  {feed.name} ({', '.join(feed.spelling.order)}; {kind}; last line ended: {feed.ended})")
        lines += [f"    {'>' if one.target else ' '} {one.kind}: {_short(one.data)}" for one in feed.records]
    for name, what in found.items():
        lines.append(f"  {name} differs\n" + re.sub(r"^", "      ", what, flags=re.MULTILINE))
    return "\n".join(lines)


def _short(data: object) -> str:
    text = repr(data)
    return text if len(text) < 400 else f"{text[:200]} … {text[-100:]} ({len(text)} characters)"
