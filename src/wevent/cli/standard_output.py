"""Standard streams: `--quiet` and `--verbose`, any encoding, and an output that is full or closed."""

from __future__ import annotations

import codecs
import io
import logging
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TextIO

import click

from wevent.errors import ReaderGone, StorageFailed, may_pass

_QUIET, _VERBOSE = "wevent.quiet", "wevent.verbose"
_LEVELS = {0: "warning", 1: "info", 2: "debug"}
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def say_how_loud(command: click.Command) -> click.Command:
    """Give a command, and all commands in it, the two options; once."""
    known = {name for parameter in command.params for name in parameter.opts}
    if "--quiet" not in known:
        command.params += [
            click.Option(
                ["-q", "--quiet"],
                is_flag=True,
                expose_value=False,
                callback=_note,
                help="Say only what was asked for, warnings and errors: no progress, no remarks.",
            ),
            click.Option(
                ["-v", "--verbose"],
                count=True,
                expose_value=False,
                callback=_note,
                help="Log more to standard error; -vv even more.",
            ),
        ]
    if isinstance(command, click.Group):
        for one in command.commands.values():
            say_how_loud(one)
    return command


def is_quiet() -> bool:
    """Return whether the running command has --quiet."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(_QUIET))


def log_to_standard_error(level: str | None = None) -> None:
    """Log from here on, as much as the command was told.

    Args:
        level: said by name (`--log`), which wins over `--verbose`; None: not said.
    """
    context = click.get_current_context(silent=True)
    told = 0 if context is None else int(context.meta.get(_VERBOSE, 0))
    logging.basicConfig(level=(level or _LEVELS[min(told, 2)]).upper(), format=_FORMAT, force=True)


def _note(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if not value:
        return
    context.meta[_QUIET if parameter.name == "quiet" else _VERBOSE] = value
    if _QUIET in context.meta and _VERBOSE in context.meta:
        raise click.UsageError("--quiet and --verbose exclude each other. Remove one.", context)
    if _VERBOSE in context.meta:
        log_to_standard_error()


PLAINLY = "wevent.plainly"
"""How text is written in an encoding that lacks some of its signs: an error handler of codecs."""

PLAIN_ASCII = "plain-ascii"
"""What a console of ASCII calls its encoding."""

_PLAIN: Mapping[str, str] = {
    "█": "#", "░": ".", "─": "-", "━": "-", "…": "...", "ε": "eps", "±": "+-", "×": "x", "·": "*", "√": "sqrt",
    "²": "^2", "≤": "<=", "≥": ">=", "→": "->", "–": "-", "—": "-", "’": "'", "‘": "'", "“": '"', "”": '"', "µ": "u",
}  # fmt: skip


def _plainly(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    return "".join(_PLAIN.get(sign) or ascii(sign)[1:-1] for sign in signs), error.end


codecs.register_error(PLAINLY, _plainly)


def as_shown(text: str, encoding: str) -> str:
    """Return text as a console of this encoding shows it, with plain signs for those that it lacks."""
    name = "ascii" if encoding == PLAIN_ASCII else encoding
    return text.encode(name, PLAINLY).decode(name)


def without_controls(text: str) -> str:
    r"""Return text with control characters as escapes.

    >>> without_controls("\x1b[31mann")
    '\\x1b[31mann'
    """
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


_STANDARD = (0, 1, 2)


class _Guarded(io.FileIO):
    """The file behind standard output, whose errors are told from those of any other file."""

    def __init__(self) -> None:
        super().__init__(1, "wb", closefd=False)

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise ReaderGone("The reader of standard output has closed it.", "Nothing was lost.", path="-") from None
        except OSError as error:
            raise StorageFailed(
                f"Cannot write to standard output: {error.strerror or 'unknown error'}.",
                "Make room where it goes and run the same command again.",
                path="-",
                passing=may_pass(error),
            ) from None


class _PlainAscii(io.TextIOWrapper):
    """A console of ASCII. Click takes one for a mistake, and would write UTF-8 to it, if it knew its name."""

    encoding = PLAIN_ASCII

    def __init__(self, buffer: Any) -> None:
        super().__init__(buffer, encoding="ascii", errors=PLAINLY, line_buffering=True)


class _Closed(io.TextIOBase):
    """Standard output that was closed before the command began: whatever is printed is lost, and that is said."""

    @property
    def buffer(self) -> NoReturn:
        """Raise: nothing is behind it."""
        raise _closed()

    def write(self, text: str) -> NoReturn:
        raise _closed()


def _closed() -> StorageFailed:
    return StorageFailed("Standard output is closed.", "Redirect it, or name a file.", path="-")


def report(text: str, done: str, *, asked: bool = False) -> None:
    """Print what a command has done; if that cannot be printed, say that it is done all the same.

    Args:
        text: the report.
        done: a sentence about what is not lost with it.
        asked: whether somebody waits for it (JSON); if not, --quiet leaves it out.

    Raises:
        StorageFailed: if standard output cannot be written.
    """
    if is_quiet() and not asked:
        return
    try:
        click.echo(text)
        sys.stdout.flush()
    except ReaderGone:
        raise
    except StorageFailed as error:
        fix = f"{done} Only the report of it is lost: do not run the command again."
        raise StorageFailed(error.problem, fix, path="-") from None


def guarded(command: Callable[[], int]) -> int:
    """Run a command and write all it printed; returns its exit code.

    A reader that closed the pipe has seen enough: nothing is said, and the exit code stays.

    Raises:
        StorageFailed: if something is printed and standard output cannot be written.
    """
    _keep_numbers()
    real = sys.__stdout__
    if real is not None and sys.stdout is real:
        sys.stdout = _text_over(io.BufferedWriter(_Guarded()), real)
    real = sys.__stderr__
    if real is not None and sys.stderr is real:
        sys.stderr = _text_over(real.buffer, real)
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


def _text_over(buffer: Any, real: TextIO) -> io.TextIOWrapper:
    """Return a stream of the same encoding, in which no text is an error."""
    if codecs.lookup(real.encoding).name == "ascii":
        return _PlainAscii(buffer)
    lines = real is sys.__stderr__ or bool(getattr(real, "line_buffering", False))
    return io.TextIOWrapper(buffer, encoding=real.encoding, errors=PLAINLY, line_buffering=lines)


def _keep_numbers() -> None:
    """Let no file of ours get the number of a closed standard stream: what others print there would go into it."""
    for number in _STANDARD:
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _silence() -> None:
    """Send the rest of the buffer nowhere; the interpreter would try to write it again at its end."""
    if sys.stdout is not sys.__stdout__ and isinstance(getattr(sys.stdout, "buffer", None), io.BufferedWriter):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)
