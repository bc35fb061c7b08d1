"""Files that commands draw or tabulate: the options that name them, and drawing if matplotlib is there."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import click
from rich.console import Console

from wevent.errors import InvalidOption


class _FileNamed(click.Path):
    """A path with one of these endings, where a file can be made: checked before anything is computed, which may take hours.

    Missing folders are made with the file.
    """

    def __init__(self, what: str, *endings: str) -> None:
        super().__init__(dir_okay=False, path_type=Path)
        self._what, self._endings = what, endings

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path: Any = super().convert(value, param, ctx)
        if Path(path).suffix.lower() not in self._endings:
            listed = ", ".join(self._endings)
            self.fail(f"{Path(path).name!r} is not {self._what}. Use a name ending in {listed}.", param, ctx)
        nearest = next(folder for folder in Path(path).absolute().parents if folder.exists())
        if not (nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)):
            problem = f"Cannot write {str(path)!r}: {nearest.name!r} is not a writable folder."
            self.fail(f"{problem} Choose another path.", param, ctx)
        return path


PICTURE = _FileNamed("a picture", ".png", ".svg", ".pdf", ".jpg")
PAGE = _FileNamed("a page", ".html", ".htm")
TABLE = _FileNamed("a table", ".parquet", ".csv")


def require(package: str) -> None:
    """Refuse to begin without the package that draws the result.

    Raises:
        InvalidOption: if it cannot be imported.
    """
    try:
        importlib.import_module(package)
    except ImportError:
        raise InvalidOption(
            f"{package} is not installed.", "Run pip install 'wevent[experiments]'.", option="out"
        ) from None


def draw(console: Console, title: str, path: Path, paint: Callable[[ModuleType], object]) -> bool:
    """Let `paint` draw with `wevent.experiments.figures` and say where; without matplotlib, say that instead.

    Returns:
        Whether there is a picture.
    """
    try:
        from wevent.experiments import figures
    except ImportError:
        console.print("No plot: it needs matplotlib (pip install 'wevent[experiments]').", markup=False)
        return False
    paint(figures)
    console.print(f"{title}: {path}", markup=False)
    return True
