"""Mistakes that every command meets in the same way: arguments that are no text, files that the system refuses."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from contextlib import suppress

from wevent.errors import InvalidOption, StorageFailed, WeventError, may_pass

_SHOWN = 60  # characters of a path
_CIRCUMSTANCES = {
    errno.ENAMETOOLONG: "Use a shorter name.",
    errno.ELOOP: "Remove the link that leads to itself.",
    errno.ENOTDIR: "Check the path: a part of it is a file.",
    errno.EACCES: "Check the permissions.",
    errno.EPERM: "Check the permissions.",
    errno.EROFS: "Choose a place that can be written.",
    errno.ENOSPC: "Make room and run the same command again.",
    errno.EDQUOT: "Make room and run the same command again.",
    errno.EIO: "Check the disk.",
    errno.EMFILE: "Raise the limit of open files.",
    errno.ENFILE: "Close other programs.",
}
"""Errors of a file that no mistake in the program causes, and what to do; any other is one, and gets a traceback."""


def check_text(arguments: Sequence[str]) -> None:
    """Refuse arguments, and a working folder, that are not UTF-8: they could be stored nowhere.

    Raises:
        InvalidOption: saying which one.
    """
    texts = {f"argument {number}": argument for number, argument in enumerate(arguments, 1)}
    with suppress(OSError):  # it was removed
        texts["the path of the working folder"] = os.getcwd()
    for name, text in texts.items():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InvalidOption(
                f"Not UTF-8: {name}.",
                "Write it in UTF-8, and rename the file; nothing was read or written.",
                option=name,
            ) from None


def of_the_system(error: OSError) -> WeventError:
    """Return the error of the operating system for a file, or for a missing working folder, in one sentence.

    Raises:
        OSError: the error itself, if it is not of a file or may come of a mistake in the program.
    """
    try:
        os.getcwd()
    except FileNotFoundError:
        fix = "Change to an existing folder and run the same command again."
        return StorageFailed("The working folder was removed.", fix, path=".")
    if error.filename is None or error.errno not in _CIRCUMSTANCES:
        raise error
    path = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes | os.PathLike) else str(error.filename)
    shown = path if len(path) <= _SHOWN else f"{path[:_SHOWN]}…"
    problem = f"Cannot use {shown!r}: {(error.strerror or 'unknown error').lower()}."
    return StorageFailed(problem, _CIRCUMSTANCES[error.errno], path=path, passing=may_pass(error))
