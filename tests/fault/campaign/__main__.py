"""Run the campaign: `python -m tests.fault.campaign --number 1000 --out docs/results/campaign`."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import platform
import random
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from tests.fault.campaign.figures import as_text
from tests.fault.campaign.running import ALL, run


def main() -> int:
    """All kinds, or some; figures are written as they come, others in the file stay."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=60, help="faults of each kind")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, help="figures: PATH.json and PATH.md")
    parser.add_argument("kinds", nargs="*", help="such as 'kill files'; all unless told otherwise")
    asked = parser.parse_args()
    figures: dict[str, Any] = {}
    if asked.out is not None and asked.out.with_suffix(".json").exists():
        figures = json.loads(asked.out.with_suffix(".json").read_text())["kinds"]
    broken, commit = 0, _commit()
    with ProcessPoolExecutor(asked.jobs, multiprocessing.get_context("spawn")) as pool:
        waiting = {pool.submit(run, kind, asked.number, asked.seed): kind for kind in asked.kinds or ALL}
        for done in as_completed(waiting):
            kind = waiting[done]
            if done.exception() is not None:
                broken += 1
                print(f"{kind}: BROKEN (seed {asked.seed})\n{done.exception()}", file=sys.stderr, flush=True)
                continue
            figures[kind] = {**done.result(), "commit": commit}
            print(f"{kind}: {figures[kind]['faults']} faults in {figures[kind]['seconds']} s", flush=True)
            if asked.out is not None:
                _write(asked.out, {kind: figures[kind] for kind in ALL if kind in figures})
    return 1 if broken else 0


def _commit() -> str:
    found = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def _write(out: Path, figures: dict[str, Any]) -> None:
    result = {"command": "make soak", "python": platform.python_version(), "kinds": figures}
    out.with_suffix(".json").write_text(json.dumps(result, indent=2) + "\n")
    out.with_suffix(".md").write_text(as_text(figures))


if __name__ == "__main__":
    sys.exit(main())
