"""The command with a bug: it waits for ever (`WEVENT_HANGS=WHERE python -m tests.support.broken_by_hanging publish …`).

WHERE is a word: runs hang on files that have it, and no others; they publish nothing, so that they take no time.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

if __name__ == "__main__":
    print("begun", flush=True)
    if os.environ["WEVENT_HANGS"] in Path(sys.argv[2]).read_text(encoding="utf-8"):
        time.sleep(3600)
