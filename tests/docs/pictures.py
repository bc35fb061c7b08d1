"""Draw the pictures that pages make themselves: python -m tests.docs.pictures (the live map of the tutorial; a minute)."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from tests.docs.blocks import read_blocks
from tests.docs.running import PageRun

ROOT = Path(__file__).parents[2]
_MAP = ROOT / "docs/tutorial/live-map.md"
_SLOTS = 25  # the city is awake by then


def draw_map() -> None:
    """Run the tutorial as far as its map, for longer than the test does."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "page"
        folder.mkdir()
        with PageRun(folder) as run:
            for block in read_blocks(_MAP):
                if "python live_map.py" in block.text:
                    run.run(replace(block, text=f"python live_map.py {_SLOTS}\n"))
                    shutil.copy(folder / "map.svg", ROOT / "docs/images/live-map.svg")
                    return
                run.run(block)


if __name__ == "__main__":
    draw_map()
