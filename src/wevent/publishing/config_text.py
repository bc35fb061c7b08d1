"""The text of a configuration file."""

from __future__ import annotations

from pathlib import Path

from wevent.errors import InvalidSettings

_MOST_BYTES = 1 << 20


def config_text(path: Path) -> str:
    """The text of a configuration file: what is no file may never end, and is not opened.

    Raises:
        InvalidSettings: for something else, and for a file that is too long to be one.
        OSError: if it cannot be read.
    """
    if path.exists() and not path.is_file():
        raise InvalidSettings(
            "a configuration file", f"something else ({str(path)!r})", "Name a TOML file.", key="config"
        )
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise InvalidSettings(
            f"a configuration file of at most {_MOST_BYTES:,} bytes",
            f"a longer one ({str(path)!r})",
            "Check the path; cells and requirements have files of their own.",
            key="config",
        )
    return data.decode("utf-8-sig")  # some editors put a byte order mark before UTF-8 text
