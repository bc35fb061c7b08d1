"""`python -m tests.fuzz [TARGET …] [--seconds N] [--keep]`: fuzz every target, or those that are named, one after another."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz import targets
from tests.support import quick_disk

FOUND = Path(".build/fuzz")
MOST_INPUT = 4096
_OPTIONS = (f"-max_len={MOST_INPUT}", "-timeout=30", "-rss_limit_mb=3000", "-print_final_stats=1", "-verbosity=1")
_STATISTIC = re.compile(r"stat::(\w+):\s+(\d+)")
_COVERAGE = re.compile(r"cov: (\d+) ft: (\d+) corp: (\d+)")


def fuzz(name: str, seconds: int) -> tuple[int, dict[str, object]]:
    """Fuzz one target; the exit code of the fuzzer, and what it came to."""
    target = targets.load(name)
    folder, crashes = FOUND / name, FOUND / f"{name}-findings"
    for one in (folder, crashes):
        one.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds):
        (folder / f"seed{number}").write_bytes(seed)
    words = FOUND / f"{name}.words"
    words.write_text("".join(_spelled(word) for word in target.words))
    target.kept.mkdir(parents=True, exist_ok=True)
    options = [*_OPTIONS, f"-dict={words.resolve()}", f"-artifact_prefix={crashes.resolve()}/"]
    begun = time.monotonic()
    done = _run(name, *options, f"-max_total_time={seconds}", folder.resolve(), target.kept)
    statistics = dict(_STATISTIC.findall(done.stderr))
    covered = _COVERAGE.findall(done.stderr)[-1:] or [("0", "0", "0")]
    report: dict[str, object] = {
        "target": name,
        "seconds": round(time.monotonic() - begun),
        "executions": int(statistics.get("number_of_executed_units", 0)),
        "branches": int(covered[0][0]),
        "inputs": int(covered[0][2]),
        "most_mb": int(statistics.get("peak_rss_mb", 0)),
    }
    if done.returncode:
        print(done.stderr[-6000:], file=sys.stderr)
    return done.returncode, report


def _run(name: str, *options: object) -> subprocess.CompletedProcess[str]:
    """Run the fuzzer in a process of its own, which ends without cleaning up; a merge begins further ones."""
    with tempfile.TemporaryDirectory(prefix="wevent-fuzz") as scratch:
        program = Path(scratch) / "fuzzer"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m tests.fuzz.fuzzer "$0" {name} "$@"\n')
        program.chmod(0o700)
        environment = {**os.environ, "TMPDIR": scratch, "PYTHONPATH": os.getcwd()}
        command = [program, *map(str, options)]
        return subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace", env=environment)


def _spelled(word: bytes) -> str:
    """A word as libFuzzer reads dictionaries."""
    return '"' + "".join(f"\\x{byte:02x}" for byte in word) + '"\n'


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", nargs="*", help="all if none is named")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument(
        "--keep", action="store_true", help="keep what was found and reaches more, in tests/fuzz/corpus"
    )
    asked = parser.parse_args()
    if unknown := [name for name in asked.target if name not in targets.MODULES]:
        parser.error(f"no such target: {', '.join(unknown)}; there are {', '.join(targets.MODULES)}")
    if importlib.util.find_spec("atheris") is None:
        parser.error(
            "atheris is not installed: it has wheels for Linux on x86-64; `pytest tests/fuzz` checks what was kept"
        )
    quick_disk.use()
    worst = 0
    for name in asked.target or targets.MODULES:
        code, report = fuzz(name, asked.seconds)
        print(json.dumps(report), flush=True)
        worst = max(worst, abs(code))
        if asked.keep:
            _run(name, *_OPTIONS, "-merge=1", targets.load(name).kept, (FOUND / name).resolve())
    return 1 if worst else 0


if __name__ == "__main__":
    sys.exit(main())
