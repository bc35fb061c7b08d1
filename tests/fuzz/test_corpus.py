"""Every input that was worth keeping, checked again, without the fuzzer; and what is checked can fail."""

from __future__ import annotations

import dataclasses
import hmac
import itertools
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest

from tests.fuzz import (
    asking,
    configurations,
    delimited_lines,
    event_bodies,
    event_files,
    journal_bytes,
    json_lines,
    people_bodies,
    requirement_files,
    segment_bytes,
    sent_credentials,
    state_bytes,
    targets,
)
from tests.fuzz.oracles import refusals
from wevent.counting.roster import Counts
from wevent.errors import InvalidInput
from wevent.events.live_source import SlotBuffer
from wevent.service import routes_events
from wevent.streams import decoding, requirements_file
from wevent.streams.json_lines import ObjectDecoder
from wevent.verification import Report

MOST_BYTES = 120_000


@pytest.mark.parametrize("name", targets.MODULES)
def test_what_was_kept_breaks_nothing(name: str) -> None:
    target = targets.load(name)
    kept = {path.name: path.read_bytes() for path in sorted(target.kept.iterdir())}
    assert kept, "nothing is kept of it"
    for label, data in {**kept, **{f"seed {number}": seed for number, seed in enumerate(target.seeds)}}.items():
        try:
            target.check(data)
        except BaseException as error:
            error.add_note(f"{name}: {label}")
            raise


def test_the_corpus_is_small() -> None:
    files = [path for path in targets.CORPUS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= MOST_BYTES
    assert {path.parent.name for path in files} == {*targets.MODULES}


def test_a_message_is_one_sentence_with_nobody_in_it() -> None:
    for received in ("ann", "two\nlines", "a\x1b[31mcolour"):
        with pytest.raises(AssertionError), refusals("ann"):
            raise InvalidInput(f"The file has {received}.", "Correct it.", path=None)
    with pytest.raises(KeyError), refusals():
        raise KeyError("what is not wevent's own")


def swallowing(self: Any, lines: bytes) -> Any:
    """As if a quote that was not closed took the next line with it."""
    return DECODE(self, lines.replace(b'{"time":\n', b'{"time":'))


DECODE = ObjectDecoder.decode


def repeated(self: SlotBuffer, cells: int) -> Counts:
    counts = COUNT(self, cells)
    return Counts(3 * counts.matrix, counts.reasons)


COUNT = SlotBuffer.count


def first_only(body: bytes, kind: str) -> bytes:
    return body.partition(b"\n")[0] + b"\n"


def writing(path: Path) -> Report:
    path.write_bytes(path.read_bytes() + b"x")
    return Report()


def storing(method: str, path: str, role: str, sent: Any, *private: str, query: bytes = b"") -> Any:
    return ASK(method, path, role, sent, *private)


ASK = asking.ask


def changing(config: Path, given: Any) -> Any:
    return dataclasses.replace(LOAD_SETTINGS(config, given), notes=(str(next(DIFFERENT)),))


LOAD_SETTINGS = configurations.load_settings


def stopping(self: Any) -> Any:
    """As if a run ended at the first line that is no event."""
    if found := FIRST_MALFORMED(self):
        raise InvalidInput("A line is no event.", "Correct it.", path=None)
    return found


FIRST_MALFORMED = event_files.FileSource.first_malformed


def ageing(cls: Any, state: bytes, noise: Any = None) -> Any:
    publisher = RESTORE(state, noise)
    publisher._history.turnover += 1
    return publisher


RESTORE = state_bytes.Publisher.restore
DIFFERENT = itertools.count()
BROKEN: dict[str, tuple[Any, Any, str, Any]] = {
    "a line takes the next one with it": (json_lines, ObjectDecoder, "decode", swallowing),
    "a quote takes the next line with it": (
        delimited_lines,
        decoding,
        "line_ends",
        lambda lines: np.array([len(lines) - 1]),
    ),
    "counts that depend on memory": (
        event_files,
        event_files.FileSource,
        "totals",
        lambda self: {"events": next(DIFFERENT)},
    ),
    "a promise that nobody can keep": (requirement_files, requirements_file, "Requirement", lambda w, e: Kept((w, 1))),
    "a line with which the file is refused": (event_files, event_files.FileSource, "first_malformed", stopping),
    "settings that change": (configurations, configurations, "load_settings", changing),
    "an audit that writes": (journal_bytes, journal_bytes, "verify_journal", writing),
    "a state that changes": (state_bytes, state_bytes.Publisher, "restore", classmethod(ageing)),
    "a part of a batch": (event_bodies, routes_events, "event_lines", first_only),
    "a rehearsal that stores": (people_bodies, people_bodies, "ask", storing),
    "a credential that anybody has": (sent_credentials, hmac, "compare_digest", lambda *_: True),
    "users that are counted more than once": (segment_bytes, SlotBuffer, "count", repeated),
}
MORE_INPUTS = {"a credential that anybody has": (b"\x02\x1e0", b"\x02\x1e1", b"\x03\x5aA", b"\x03\x5aB")}


class Kept(NamedTuple):
    """What stands for a requirement."""

    key: tuple[int, int]


def check_all(module: Any, inputs: list[bytes]) -> None:
    for data in inputs:
        module.check(data)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_parser_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, owner, attribute, wrong = BROKEN[name]
    inputs = [*module.SEEDS, *MORE_INPUTS.get(name, ())]
    check_all(module, inputs)
    monkeypatch.setattr(owner, attribute, wrong)
    try:
        with pytest.raises((AssertionError, msgspec.DecodeError)):  # a wrong answer, or a crash
            check_all(module, inputs)
    finally:
        asking.service.cache_clear()


def test_every_target_has_been_broken() -> None:
    assert {module.__name__.rpartition(".")[2] for module, *_ in BROKEN.values()} == {*targets.MODULES.values()}
