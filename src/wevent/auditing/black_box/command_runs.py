"""Runs of `wevent publish` on files: what it prints, where it stops or hangs, its exit code, and the files that it leaves."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from wevent.auditing.black_box.command_process import LIMIT_S, CommandProcess, Ended
from wevent.auditing.black_box.record_pairs import CELLS, SLOT_S, FilePair, record_pairs, requirement_rows, time_of
from wevent.auditing.black_box.seen import HUNG, STOPPED, Seen
from wevent.auditing.black_box.stream_pairs import Pair
from wevent.core.arrays import FloatArray
from wevent.core.settings import option_kinds
from wevent.errors import InvalidOption

_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")
_PRIVATE = "private"  # the operator's line of run totals: the one exception of spec 1


class CommandRuns:
    """The command with a mechanism and options; a context, because it keeps a process and a folder.

    Args:
        mechanism: by its name, as every process knows it.
        options: of a publisher.
        module: what `python -m` runs.
        limit_s: how long a run may take; what takes longer is killed. Whether a run hangs is seen as its exit code is.
    """

    audit = "black box: command"
    batch = 4

    def __init__(
        self, mechanism: str, options: Mapping[str, Any], *, module: str = "wevent", limit_s: float = LIMIT_S
    ) -> None:
        self._mechanism, self._options, self._limit_s = mechanism, options, limit_s
        self._flags = ["--mechanism", mechanism, *_as_flags(options)]
        self._process = CommandProcess(module, limit_s=limit_s)

    def __enter__(self) -> Self:
        with ExitStack() as held:
            folder = tempfile.TemporaryDirectory(prefix="wevent-audit-", ignore_cleanup_errors=True)
            self._folder = Path(held.enter_context(folder))
            held.enter_context(self._process)
            self._held = held.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._held.__exit__(kind, error, traceback)

    def pairs(self) -> Iterator[FilePair]:
        """Neighbouring files.

        Raises:
            InvalidOption: if runs hang on both files of the first pair, which are plain: where every run hangs, all look the
                same.
        """
        for number, pair in enumerate(record_pairs(self._options)):
            if number == 0 and all(self.run(pair, stream, 1).marks["exit code"] == [HUNG] for stream in (1, 0)):
                raise InvalidOption(
                    f"{self._mechanism} to publish a small file",
                    f"a run that did not end within {self._limit_s:g} s",
                    "Try wevent publish by hand: nothing can be said of what never ends.",
                    option="mechanism",
                    value=self._mechanism,
                )
            yield pair

    def run(self, pair: Pair, stream: int, number: int) -> Seen:
        """That many runs on one of the two files, each with a journal of its own."""
        assert isinstance(pair, FilePair)
        values = np.full((number, pair.slots, pair.cells), np.nan)
        distances = np.full((number, pair.slots), np.nan)
        words: list[tuple[str, ...]] = []
        marks: dict[str, list[str]] = {
            name: [] for name in ("exit code", "lines", "shape of lines", "files", "remarks")
        }
        for place in range(number):
            with tempfile.TemporaryDirectory(dir=self._folder, ignore_cleanup_errors=True) as name:
                ended = self._one(Path(name), pair, stream)
                seen = _marks(Path(name), ended)
            words.append(_read(ended, values[place], distances[place]))
            for mark, text in seen.items():
                marks[mark].append(text)
        return Seen(values, distances, words, marks)

    def _one(self, folder: Path, pair: FilePair, stream: int) -> Ended:
        events = folder / f"events{pair.ending}"
        events.write_bytes(pair.files[stream])
        (folder / "users.csv").write_text(requirement_rows(), encoding="utf-8")
        arguments = ["publish", events.name, "--requirements", "users.csv", "--cells", ",".join(CELLS)]
        arguments += ["--slot", f"{SLOT_S}s", "--start", time_of(0), "--end", time_of(SLOT_S * pair.slots)]
        return self._process.call(folder, *arguments, "--journal", "run.journal", *self._flags)


def _read(ended: Ended, values: FloatArray, distances: FloatArray) -> tuple[str, ...]:
    """Fill in what the lines say; the outcome of every slot."""
    outcomes = [HUNG if ended.code is None else STOPPED] * len(values)
    for slot, line in enumerate(ended.out.splitlines()[: len(values)]):
        with suppress(ValueError, KeyError, TypeError):
            told = json.loads(line)
            outcomes[slot] = str(told["outcome"])
            if told["histogram"] is not None:
                values[slot] = told["histogram"]
            if told["dissimilarity"] is not None:
                distances[slot] = told["dissimilarity"]
    return tuple(outcomes)


def _marks(folder: Path, ended: Ended) -> dict[str, str]:
    """Everything about a run but the numbers that are noise."""
    lines = ended.out.splitlines()
    said = "\n".join(line for line in ended.err.splitlines() if _PRIVATE not in line)
    return {
        "exit code": HUNG if ended.code is None else str(ended.code),
        "lines": str(len(lines)),
        "shape of lines": " / ".join(_shape(line) for line in lines),
        "files": " ".join(sorted(file.name for file in folder.iterdir())),
        "remarks": said[-2000:],
    }


def _shape(line: str) -> str:
    """The names in a line: what there is, not how much."""
    try:
        told = json.loads(line)
    except ValueError:
        return _NUMBER.sub("#", line)[:200]
    return " ".join(told) if isinstance(told, dict) else type(told).__name__


def _as_flags(options: Mapping[str, Any]) -> list[str]:
    """Options of a publisher as the command takes them."""
    flags: list[str] = []
    for name, value in options.items():
        kind = option_kinds()[name]
        flag = f"--{name.replace('_', '-')}"
        if value is None:
            continue
        if kind.type is bool:
            flags.append(flag if value else f"--no-{name.replace('_', '-')}")
        elif isinstance(value, (tuple, list)):
            flags += [flag, ",".join(map(str, value))]
        else:
            flags += [flag, str(value)]
    return flags
