"""Building the documentation as `make docs` does, without a network."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import PATIENCE_S

ROOT = Path(__file__).parents[2]
_NOWHERE = "http://127.0.0.1:9"  # whoever fetches something gets an error


def build(config: Path, target: Path) -> subprocess.CompletedProcess[str]:
    """What `mkdocs build --strict` does and says."""
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), _NOWHERE)
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(config), "--site-dir", str(target)],
        env={**os.environ, **nowhere, "NO_MKDOCS_2_WARNING": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def built_site(factory: pytest.TempPathFactory) -> Path:
    """The site of this repository, built once for all tests of a worker."""
    target = factory.getbasetemp() / "site"
    if not target.exists():
        done = build(ROOT / "mkdocs.yml", target)
        assert done.returncode == 0, done.stderr
    return target


def small_site(folder: Path, pages: dict[str, str], listed: list[str]) -> subprocess.CompletedProcess[str]:
    """Build these pages, listed so, with all settings of the real site."""
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[0]
    settings = settings.replace("  - docs/site/", f"  - {ROOT}/docs/site/").replace("[src]", f"[{ROOT}/src]")
    (folder / "mkdocs.yml").write_text(settings + "\nnav:\n" + "".join(f"  - {name}\n" for name in listed))
    for name, text in {"site/style.css": "", "site/icon.svg": "", "site/iframe-worker.js": "", **pages}.items():
        page = folder / "docs" / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8")
    return build(folder / "mkdocs.yml", folder / "site")
