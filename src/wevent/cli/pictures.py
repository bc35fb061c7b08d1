"""Pictures of commands: the option that names one, and drawing it if matplotlib is there."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import click
from rich.console import Console

from wevent.errors import InvalidOption

_ENDINGS = (".png", ".svg", ".pdf", ".jpg")


class _Picture(click.Path):
    """A path whose ending is a picture's: checked before anything is computed."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path: Any = super().convert(value, param, ctx)
        if Path(path).suffix.lower() not in _ENDINGS:
            self.fail(f"Expected a picture ending in {', '.join(_ENDINGS)}; received {Path(path).name!r}.", param, ctx)
        return path


PICTURE = _Picture(dir_okay=False, path_type=Path)


def require_matplotlib() -> None:
    """For commands whose result is pictures: better now than after hours.

    Raises:
        InvalidOption: if it is not installed.
    """
    try:
        found = importlib.util.find_spec("matplotlib")
    except ImportError:
        found = None
    if found is None:
        raise InvalidOption(
            "matplotlib for the figures",
            "an installation without it",
            "Run pip install 'wevent[experiments]'.",
            option="figures",
        )


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
