"""Where results go: one JSON file and one Markdown table per benchmark, with what they were measured on."""

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import wevent

RESULTS = Path(__file__).parent / "results"


def write(name: str, title: str, rows: Sequence[dict[str, Any]], notes: Sequence[str] = ()) -> None:
    """Write `rows` as results/NAME.json and results/NAME.md, and print the table."""
    RESULTS.mkdir(exist_ok=True)
    setting = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": _commit(),
        "wevent": wevent.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "cores": os.cpu_count(),
    }
    (RESULTS / f"{name}.json").write_text(json.dumps({"setting": setting, "rows": list(rows)}, indent=1) + "\n")
    columns = list(rows[0])
    lines = [
        f"# {title}",
        "",
        f"`python -m benchmarks {name}`: " + ", ".join(f"{key} {value}" for key, value in setting.items()),
        "",
        "| " + " | ".join(columns) + " |",
        "|" + "---|" * len(columns),
        *("| " + " | ".join(str(row[column]) for column in columns) + " |" for row in rows),
        "",
        *notes,
    ]
    text = "\n".join(lines).rstrip() + "\n"
    (RESULTS / f"{name}.md").write_text(text)
    print(text)


def _commit() -> str:
    try:
        command = ["git", "describe", "--always", "--dirty"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=RESULTS)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()
