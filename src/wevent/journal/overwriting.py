"""A file with a secret that goes for good: its place on the disk is overwritten before its name is removed."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def destroy_file(path: Path, start: int, size: int) -> None:
    """Overwrite what a file has from a byte on with zeros, forced to disk, and remove it; one that is gone is gone.

    Raises:
        OSError: if it cannot be overwritten or removed.
    """
    with suppress(FileNotFoundError):  # others may do the same at the same time
        with path.open("rb+") as file:
            file.seek(start)
            file.write(bytes(size))
            file.flush()
            os.fsync(file.fileno())
        path.unlink()
