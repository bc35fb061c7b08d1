"""Where tests keep their files: in memory, where there is room. A journal syncs with every slot, and tests would wait."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
NEEDED = 1 << 30  # a whole run leaves less than a fifth of it


def use() -> None:
    """From now on temporary folders are in memory, those of children too. TMPDIR, if it is set, is heeded: a real disk."""
    if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= NEEDED:
        os.environ["TMPDIR"] = str(MEMORY)
        tempfile.tempdir = None
