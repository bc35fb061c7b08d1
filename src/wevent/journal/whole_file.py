"""A file that is there whole or not at all: made beside its place, forced to disk, and moved in."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def made_whole(target: Path) -> Iterator[Path]:
    """Where to make a file that then takes the target's place; what is at the target stays until it is whole.

    It is made in a folder of its own, for its owner only, and so is what a writer needs beside it. If something fails, the
    folder is removed with all that is in it.

    Raises:
        OSError: if it cannot be made, forced to disk or moved.
    """
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", suffix=".partial", dir=target.parent) as folder:
        made = Path(folder) / target.name
        yield made
        sync_path(made)
        os.replace(made, target)
        sync_path(target.parent)


def sync_path(path: Path) -> None:
    """Force a file, or the names in a folder, to disk."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
