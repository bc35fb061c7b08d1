"""Points every audit that is meant for a bug at the product with the bug and without; exit code 1 if one goes unseen.

python -m tests.zoo [--only NAME] [--seconds 60] [--seed 1] [--out docs/results/zoo.md]
"""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from tests.support import quick_disk
from tests.zoo.bugs import BUGS
from tests.zoo.table import Look, looked_at, page


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.zoo")
    parser.add_argument("--only", default="", help="bugs whose name has this word")
    parser.add_argument("--seconds", type=float, default=60.0, help="the most that one audit may take of one bug")
    parser.add_argument("--seed", type=int, default=1, help="of what audits choose; noise is not seeded")
    parser.add_argument("--out", type=Path, help="write the table as Markdown")
    given = parser.parse_args()
    logging.disable(logging.WARNING)  # lives restore backups all the time, and say so
    quick_disk.use()
    looks: list[Look] = []
    for bug in BUGS:
        if given.only in bug.name:
            for audit in bug.audits:
                looks.append(looked_at(bug, audit, given.seconds, given.seed))
                print(looks[-1].line(), flush=True)
    if given.out:
        given.out.write_text(page(looks, given.seconds, given.seed), encoding="utf-8")
    caught = {one.bug.name for one in looks if one.seen}
    missed = [bug.name for bug in BUGS if given.only in bug.name and bug.name not in caught]
    alarms = [one for one in looks if one.alarm]
    print(f"{len(caught)} bugs caught, {len(missed)} missed, {len(alarms)} false alarms")
    sys.exit(1 if missed or alarms else 0)


if __name__ == "__main__":
    main()
