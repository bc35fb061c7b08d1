"""Where pictures are drawn: matplotlib without a screen. Importing this needs `wevent[experiments]`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt


def panels(rows: int, columns: int, **layout: Any) -> tuple[Any, Any]:
    """A picture and its axes, always as a table of rows and columns."""
    return plt.subplots(rows, columns, layout="constrained", squeeze=False, **layout)


def save(picture: Any, path: Path, *, dpi: int = 130, **options: Any) -> None:
    """Write the picture and forget it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.savefig(path, dpi=dpi, **options)
    plt.close(picture)
