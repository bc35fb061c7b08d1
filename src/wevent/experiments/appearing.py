"""Files that appear whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def appearing_whole(path: Path) -> Iterator[Path]:
    """A name beside the path to write to; it becomes the path at the end, unless something went wrong."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".part")
    yield unfinished
    unfinished.replace(path)


def write_text(path: Path, text: str) -> None:
    """A text file."""
    with appearing_whole(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")
