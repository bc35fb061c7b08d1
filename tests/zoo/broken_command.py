"""The command with a bug of the zoo in it: `WEVENT_ZOO=NAME python -m tests.zoo.broken_command …`."""

from __future__ import annotations

import os

from tests.zoo.bugs import BUGS
from wevent.cli import main

if __name__ == "__main__":
    with next(bug.broken.undone() for bug in BUGS if bug.name == os.environ["WEVENT_ZOO"]):
        main()
