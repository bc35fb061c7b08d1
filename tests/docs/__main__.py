"""Write what commands print into the pages that show it: python -m tests.docs docs/tutorial/compare-and-plan.md"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.docs.blocks import Block, Command, read_blocks
from tests.docs.running import Failed, PageRun


class _Rewriting(PageRun):
    """Puts what came in the place of what was shown, where the two differ beyond what may."""

    def _compare(self, block: Block, command: Command, came: str) -> None:
        try:
            super()._compare(block, command, came)
        except Failed:
            shown = "\n".join(line.rstrip() for line in came.strip("\n").split("\n"))
            text = block.page.read_text(encoding="utf-8")
            before, after = f"$ {command.text}\n{command.shown}\n", f"$ {command.text}\n{shown}\n"
            assert text.count(before) == 1, f"{block.place}: the same command and output stand there twice"
            block.page.write_text(text.replace(before, after), encoding="utf-8")


def main(pages: list[str]) -> None:
    """Run each page from top to bottom and renew what it shows."""
    for name in pages:
        page = Path(name).resolve()
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made) / "page"
            folder.mkdir()
            with _Rewriting(folder) as run:
                for block in read_blocks(page):
                    run.run(block)


if __name__ == "__main__":
    main(sys.argv[1:])
