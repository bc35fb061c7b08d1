"""Standard output of the commands: one that is full or closed is one sentence, a reader that has gone is none."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import click

from wevent.errors import ReaderGone, StorageFailed

_STANDARD = (0, 1, 2)


class _Guarded(io.FileIO):
    """The file behind standard output, whose errors are told from those of any other file."""

    def __init__(self) -> None:
        super().__init__(1, "wb", closefd=False)

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise ReaderGone("a reader of standard output", "none", "Nothing was lost.", path="-") from None
        except OSError as error:
            raise StorageFailed(
                "room for the output",
                f"a standard output that cannot be written ({error.strerror or 'an error'})",
                "Make room where it goes and run the same command again.",
                path="-",
            ) from None


class _Closed(io.TextIOBase):
    """Standard output that was closed before the command began: whatever is printed is lost, and that is said."""

    @property
    def buffer(self) -> NoReturn:
        """None: there is nothing behind it."""
        raise _closed()

    def write(self, text: str) -> NoReturn:
        raise _closed()


def _closed() -> StorageFailed:
    return StorageFailed("standard output", "a closed one", "Redirect it, or name a file.", path="-")


def report(text: str, done: str) -> None:
    """Print what a command has done; if that cannot be printed, say that it is done all the same.

    Args:
        text: the report.
        done: a sentence about what is not lost with it.

    Raises:
        StorageFailed: if standard output cannot be written.
    """
    try:
        click.echo(text)
        sys.stdout.flush()
    except ReaderGone:
        raise
    except StorageFailed as error:
        remedy = f"{done} Only the report of it is lost: do not run the command again."
        raise StorageFailed(error.expected, error.received, remedy, path="-") from None


def guarded(command: Callable[[], int]) -> int:
    """Run a command and write all it printed; returns its exit code.

    A reader that closed the pipe has seen enough: nothing is said, and the exit code stays.

    Raises:
        StorageFailed: if something is printed and standard output cannot be written.
    """
    _keep_numbers()
    real = sys.__stdout__
    if real is not None and sys.stdout is real:
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(_Guarded()),
            encoding=real.encoding,
            errors=real.errors,
            line_buffering=real.line_buffering,
        )
    if sys.stdout is None:
        sys.stdout = _Closed()
    code = 0
    try:
        code = command()
        sys.stdout.flush()
    except ReaderGone:
        _silence()
    except StorageFailed:
        _silence()
        raise
    return code


def _keep_numbers() -> None:
    """Let no file of ours get the number of a closed standard stream: what others print there would go into it."""
    for number in _STANDARD:
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _silence() -> None:
    """What is still in the buffer cannot be written; the interpreter would try again at its end."""
    if sys.stdout is not sys.__stdout__ and isinstance(getattr(sys.stdout, "buffer", None), io.BufferedWriter):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)
