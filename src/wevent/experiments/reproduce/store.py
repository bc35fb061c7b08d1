"""The folder of a reproduction: one small file per finished task, so that a killed run resumes where it was."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from wevent import __version__
from wevent.errors import InvalidOption
from wevent.experiments.reproduce.campaign import Campaign
from wevent.file_io import atomic_write_text

_SETTINGS = "settings.json"


class Store:
    """Results on disk. Every file appears whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._runs = folder / "runs"

    def open_for(self, campaign: Campaign) -> None:
        """Begin, or resume what was begun with the same settings.

        Raises:
            InvalidOption: if the folder has results of other settings or of another version.
        """
        self._runs.mkdir(parents=True, exist_ok=True)
        wanted = {**campaign.to_dict(), "version": __version__}
        path = self.folder / _SETTINGS
        if path.exists():
            found = json.loads(path.read_text(encoding="utf-8"))
            differing = sorted(key for key in wanted if found.get(key) != wanted[key])
            if differing:
                raise InvalidOption(
                    f"the settings that {self.folder} was begun with",
                    f"another {', '.join(differing)}",
                    "Name another folder with --out, repeat the old settings, or remove the folder.",
                    option="out",
                    value=str(self.folder),
                )
            return
        atomic_write_text(path, json.dumps({**wanted, "commit": commit_of_source()}, indent=2) + "\n")

    def settings(self) -> dict[str, Any]:
        """Seed, settings, version and commit of the run."""
        found: dict[str, Any] = json.loads((self.folder / _SETTINGS).read_text(encoding="utf-8"))
        return found

    def has(self, task: str) -> bool:
        """Whether a task is finished."""
        return self._path(task).exists()

    def put(self, task: str, result: Mapping[str, Any]) -> None:
        """Keep a finished task's result."""
        atomic_write_text(self._path(task), json.dumps(result))

    def results(self) -> Iterator[dict[str, Any]]:
        """Everything that is finished, in a stable order."""
        for path in sorted(self._runs.glob("*.json")):
            yield json.loads(path.read_text(encoding="utf-8"))

    def _path(self, task: str) -> Path:
        return self._runs / f"{task.replace(':', '-')}.json"


def commit_of_source() -> str:
    """The commit this code was run from, with "+" for uncommitted changes; "unknown" outside of a clone."""
    here = Path(__file__).resolve().parent

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(here), *arguments], capture_output=True, text=True, check=True, timeout=10
        )
        return done.stdout.strip()

    try:
        if not git("ls-files", "--", __file__):  # a package installed below somebody else's repository
            return "unknown"
        changed = git("status", "--porcelain", "--untracked-files=no", "--", str(here.parents[1]))
        return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return "unknown"
