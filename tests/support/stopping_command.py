"""The command with a bug: a record that is no event stops the run (`python -m tests.support.stopping_command publish …`)."""

from __future__ import annotations

import sys
from pathlib import Path

from wevent.cli import main

if __name__ == "__main__":
    events = Path(sys.argv[2]).read_text(encoding="utf-8")
    if "not a time" in events:
        sys.stderr.write("Error: a record is no event.\n")
        sys.exit(2)
    main()
