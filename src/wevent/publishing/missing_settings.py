"""Which settings must be there, and the one sentence that names all that are not."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from wevent.errors import InvalidSettings
from wevent.journal import PostgresPlace, is_begun

PUBLISHING = ("journal", "requirements", "start", "end")
"""What publishing needs besides what every use of settings does."""

_NAMED = ("time_column", "user_column", "cell_column", "timezone")  # a blank one is no default
_BLANK_IS_MISSING = ("inputs", "cells", "slot", *PUBLISHING)


def without_blanks(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values without those that a template leaves blank: they count as not given."""
    return {key: value for key, value in values.items() if key not in _BLANK_IS_MISSING or not _is_blank(value)}


def _is_blank(value: Any) -> bool:
    return isinstance(value, str | list | tuple) and not value


def refuse_missing(values: Mapping[str, Any], also: Collection[str], *, framed: bool) -> None:
    """Name everything that is missing at once, with the option for each; arguments as of `load_settings`.

    Raises:
        InvalidSettings: naming all of it.
    """
    wanted = [*(() if framed else ("inputs",)), "cells", *(() if values.get("slot_column") is not None else ("slot",))]
    journal = values.get("journal")
    asks = any(key in also and key not in values for key in ("requirements", "start"))  # a database may be away
    begun = asks and isinstance(journal, str | Path | PostgresPlace) and is_begun(journal)
    live = values.get("inputs") in ("-", ["-"], ("-",))
    free = {
        "journal": False,
        "requirements": begun,
        "start": begun or live or values.get("slot_column") is not None,
        "end": live or values.get("start") == "auto",
    }
    wanted += [key for key in PUBLISHING if key in also and not free[key]]
    missing = [key for key in wanted if key not in values]
    missing += [key for key in _NAMED if values.get(key) == ""]
    if not missing:
        return
    empty = _without_rows(values.get("requirements")) if "requirements" in also else None
    options = ["EVENTS" if key == "inputs" else f"--{key.replace('_', '-')}" for key in missing]
    keys = f"{missing[0]} = …" if len(missing) == 1 else "the same keys"
    raise InvalidSettings(
        f"{_listed(missing)} to be set" + (f", and people in {empty}" if empty else ""),
        "nothing",
        f"Give {_listed(options)}, or {keys} in the configuration file."
        + (" Write who asks for what into the requirements file, a line each." if empty else ""),
        key=missing[0],
    )


def _without_rows(path: Any) -> str | None:
    """The name of a requirements file that has a header at most, as a template leaves it; None of any other."""
    if not isinstance(path, str | Path) or not Path(path).is_file():
        return None
    try:
        with open(path, encoding="utf-8") as file:
            lines = sum(1 for line in islice((line for line in file if line.strip()), 2))
    except (OSError, UnicodeDecodeError):
        return None  # whoever reads it says what is wrong
    return str(path) if lines < 2 else None


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
