"""Runs every mutant of `tests.mutants.table` against the tests that must see it; exit code 1 if one survives.

python -m tests.mutants [--only WORD] [--out docs/results/mutants.md] [--jobs 2]
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutants.table import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]


def run(mutant: Mutant) -> str:
    """The first test that fails with the repair undone; empty if the mutant survives."""
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        target = source / "wevent" / mutant.file
        text = target.read_text(encoding="utf-8")
        if text.count(mutant.repaired) != 1:
            raise SystemExit(f"{mutant.name}: the repaired text occurs {text.count(mutant.repaired)} times, not once")
        target.write_text(text.replace(mutant.repaired, mutant.undone), encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": str(source)}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *mutant.tests]
        found = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    failed = [line for line in found.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0].split(" - ")[0].split(" ", 1)[1] if found.returncode == 1 and failed else ""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("--only", default="", help="mutants whose name has this word")
    parser.add_argument("--out", type=Path, help="write the table as Markdown")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    chosen = [mutant for mutant in MUTANTS if given.only in mutant.name]
    rows, survived = [], 0
    with ThreadPoolExecutor(given.jobs) as pool:
        for mutant, failed in zip(chosen, pool.map(run, chosen), strict=True):
            survived += not failed
            rows.append(f"| {mutant.name} | `{mutant.file}` | {f'`{failed}`' if failed else '**survived**'} |")
            print(rows[-1], flush=True)
    if given.out:
        head = ["# Repairs undone in turn", "", "`python -m tests.mutants --out docs/results/mutants.md`", ""]
        head += [f"{len(chosen) - survived} of {len(chosen)} mutants are seen by a test.", ""]
        head += ["| repair that was undone | in | first test that fails |", "|---|---|---|"]
        given.out.write_text("\n".join([*head, *rows]) + "\n", encoding="utf-8")
    sys.exit(1 if survived else 0)


if __name__ == "__main__":
    main()
