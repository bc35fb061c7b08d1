"""The requirements file: who asks for what, as levels or as numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wevent.core.requirements import Levels, Requirement
from wevent.counting.spelling import Spelled
from wevent.errors import InvalidInput, InvalidRequirement, WeventError
from wevent.people.membership import KeyColumn
from wevent.settings.loading import REQUIREMENTS_COLUMNS as COLUMNS
from wevent.settings.values import WindowReader
from wevent.streams.files.asked_rows import AskedRows, Kind, frame_rows, read_rows, spelled_ids
from wevent.streams.files.frames import column_names, frame_name, load_frame
from wevent.streams.files.inputs import FRAME, InputFile, other_delimiter
from wevent.streams.files.sql import connect
from wevent.streams.files.text_tables import load_rows, open_file, place_of_row
from wevent.streams.records.outlines import listed_columns


class Requirements(NamedTuple):
    """Who asks for what, a row per user.

    Attributes:
        users: ids, int64 if every one is a plain whole number, else text.
        keys: (window in slots, nano-epsilons) of each.
        words: the level each asked for, such as "High/Small", None for numbers; None if nobody used words.
        notes: a sentence for each duration that was rounded up to whole slots.
        digest: digest of the contents, empty if it was not computed.
    """

    users: npt.NDArray[np.int64] | Spelled
    keys: KeyColumn
    words: list[str | None] | None
    notes: tuple[str, ...] = ()
    digest: bytes = b""


def read_requirements(
    path: str | Path,
    levels: Levels | None = None,
    *,
    slot_us: int | None = None,
    columns: Mapping[str, str] | None = None,
) -> Requirements:
    """What a file with `user,level`, `user,privacy,window` or `user,window,epsilon` asks for, a row each.

    A file may have columns of several kinds: each row then fills in those of one. Numbers beside a level must be its own.

    Args:
        path: CSV, TSV, NDJSON (also with .gz) or Parquet. Ids are taken as they are, spaces included, as in events.
        levels: what the words stand for; None: the default ones.
        slot_us: how long a slot is, for windows that are written as durations; None: they are refused.
        columns: what `COLUMNS` are called in the file, as far as they have other names.

    Raises:
        InvalidInput: for a missing file, a missing column, no rows, or a row with an empty field.
        InvalidRequirement: for a window, epsilon or level that no promise can be built on, naming the line.
        InvalidRoster: for a user listed twice.
    """
    file = open_file(str(path))
    roles: list[str] = []
    asked = read_rows(file, _chosen(str(path), columns or {}, roles))
    return _meant(asked, file, _Reading(levels or Levels.default(), WindowReader(slot_us), tuple(roles[1:])))


def requirements_of_frame(
    frame: Any,
    levels: Levels | None = None,
    *,
    slot_us: int | None = None,
    columns: Mapping[str, str] | None = None,
) -> Requirements:
    """What a data frame asks for: rows, columns and errors as of `read_requirements`."""
    name, roles = frame_name(frame), list[str]()
    choose = _chosen(name, columns or {}, roles)
    table = load_frame(frame, choose(column_names(frame)))
    reading = _Reading(levels or Levels.default(), WindowReader(slot_us), tuple(roles[1:]))
    return _meant(frame_rows(table, choose), InputFile(name, FRAME), reading)


def requirements_of_mapping(asked: Mapping[Any, Requirement]) -> Requirements:
    """What a mapping of users to requirements asks for; ids are text or whole numbers.

    Raises:
        InvalidInput: for an id that no event can have, or nobody at all.
        InvalidRequirement: for a value that is no requirement.
        InvalidRoster: for ids that are spelled alike, such as 1 and "1".
    """
    for held in asked.values():
        if not isinstance(held, Requirement):
            raise InvalidRequirement(
                "a Requirement for each user", type(held).__name__, "Write {'ann': Requirement(40, 0.5), …}."
            )
    ids = [str(user) if isinstance(user, (str, int, np.integer)) and type(user) is not bool else "" for user in asked]
    keys = KeyColumn.of(held.key for held in asked.values())
    return Requirements(spelled_ids(ids, InputFile("requirements", FRAME)), keys, None)


def _meant(asked: AskedRows, file: InputFile, reading: _Reading) -> Requirements:
    """Windows and epsilons instead of the texts that stand for them."""
    path = file.path
    meant = []
    for code, kind in enumerate(asked.kinds):
        try:
            meant.append(reading.requirement(kind))
        except WeventError as error:
            place = place_of_row(file, asked.first_row(code))
            received = f"{error.received} in {path!r}, {place}"
            raise type(error)(
                error.expected, received, error.remedy, **{**error.facts, "path": path, "place": place}
            ) from None
    distinct = KeyColumn.of(requirement.key for requirement, _ in meant)
    words = None
    if any(level is not None for _, level in meant):
        words = [meant[code][1] for code in asked.codes.tolist()]
    keys = KeyColumn(distinct.distinct, distinct.codes[asked.codes])
    return Requirements(asked.users, keys, words, reading.windows.notes)


def read_column(path: str | Path, column: str, *, headed: bool = False) -> list[str]:
    """One column of a small file as text: the named one, else the first; a .txt file has a label per line.

    Args:
        path: of the file.
        column: its name.
        headed: whether no other column will do, as where a first value could pass for a heading and be lost.

    Raises:
        InvalidInput: for a missing or unreadable file, or one without a column that must be there.
    """
    if str(path).endswith(".txt"):
        try:
            lines = Path(path).read_text(encoding="utf-8-sig").splitlines()  # editors may put a byte order mark first
        except OSError:
            raise InvalidInput("a readable file", f"{str(path)!r}", "Check the path.", path=str(path)) from None
        except UnicodeDecodeError:
            raise InvalidInput(
                "a file in UTF-8", f"{str(path)!r}, which is not", "Save it again as UTF-8.", path=str(path)
            ) from None
        return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]

    def choose(names: Sequence[str]) -> list[str]:
        if headed and column not in names:
            raise InvalidInput(
                f"a column {column}",
                f"{str(path)!r} with the columns {listed_columns(names)}",
                other_delimiter(names) or f"Give the column the heading {column}.",
                path=str(path),
            )
        return [column if column in names else names[0]]

    connection = connect()
    load_rows(connection, str(path), choose)
    rows = connection.execute("SELECT c0 FROM loaded").fetchall()
    return [row[0] for row in rows if row[0] is not None]


def _chosen(path: str, columns: Mapping[str, str], roles: list[str]) -> Callable[[Sequence[str]], list[str]]:
    """Chooses the columns to read and notes in `roles` what each is; declared ones, if any, keep the others out."""

    def choose(names: Sequence[str]) -> list[str]:
        declared = [role for role in COLUMNS[1:] if role in columns]
        asking = declared or [role for role in COLUMNS[1:] if role in names]
        roles[:] = ["user", *asking]
        chosen = [columns.get(role, role) for role in roles]
        missing = [name for name in chosen if names.count(name) != 1]
        whole = "level" in asking or ("window" in asking and {"privacy", "epsilon"} & set(asking))
        if missing or not whole:
            raise InvalidInput(
                "the columns user and level, or user, privacy and window, or user, window and epsilon"
                + (f" (declared as {', '.join(chosen)})" if columns else ""),
                f"{path!r} with the columns {listed_columns(names)}",
                other_delimiter(names)
                or "Write one row per user under these names, or declare yours in [requirements_columns].",
                path=path,
                column=missing[0] if missing else None,
            )
        return chosen

    return choose


class _Reading:
    """What rows mean.

    Args:
        levels: what words stand for.
        windows: reads windows.
        roles: what the texts of a kind are.
    """

    def __init__(self, levels: Levels, windows: WindowReader, roles: tuple[str, ...]) -> None:
        self._levels, self.windows, self._roles = levels, windows, roles

    def requirement(self, kind: Kind) -> tuple[Requirement, str | None]:
        """The requirement that a row asks for, and the level it comes from, None for numbers.

        Raises:
            InvalidInput: for a row with an empty field.
            InvalidRequirement: for what no promise can be built on.
        """
        said = dict(zip(self._roles, kind, strict=True))
        level, privacy, window, epsilon = (said.get(role, "") for role in COLUMNS[1:])
        if level:
            requirement = self._levels.choose(level)
            if privacy or ((window or epsilon) and requirement != self._numbers(window, epsilon)):
                raise InvalidRequirement(
                    "a level alone, or beside it the window and epsilon that it stands for",
                    f"{level!r} with others",
                    "Leave the other fields of the row empty.",
                    level=level,
                )
            return requirement, level
        if privacy and epsilon:
            raise InvalidRequirement(
                "a word of privacy or an epsilon", "both", "Leave one of them empty.", level=privacy, epsilon=epsilon
            )
        if privacy and window:
            return self._levels.requirement(privacy, window), f"{privacy}/{window}"
        return self._numbers(window, epsilon), None

    def _numbers(self, window: str, epsilon: str) -> Requirement:
        if not window or not epsilon:
            raise InvalidInput(
                "a row per user, every field filled in", "a row with an empty field", "Complete the row."
            )
        return Requirement(self.windows.read(window), epsilon)
