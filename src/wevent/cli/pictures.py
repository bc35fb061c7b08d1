"""The option type of pictures: what matplotlib can draw is checked before anything is computed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

_ENDINGS = (".png", ".svg", ".pdf", ".jpg")


class _Picture(click.Path):
    """A path whose ending is a picture's."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path: Any = super().convert(value, param, ctx)
        if Path(path).suffix.lower() not in _ENDINGS:
            self.fail(f"Expected a picture ending in {', '.join(_ENDINGS)}; received {Path(path).name!r}.", param, ctx)
        return path


PICTURE = _Picture(dir_okay=False, path_type=Path)
