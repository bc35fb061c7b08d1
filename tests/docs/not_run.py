"""The list of blocks that tests do not run, made from the marks before them.

`python -m tests.docs.not_run` writes docs/reference/not-run.md anew; a test compares.
"""

from __future__ import annotations

import posixpath
from pathlib import Path

from tests.docs.anchors import heading_above
from tests.docs.blocks import KNOWN, RUNNABLE, Block, read_blocks

ROOT = Path(__file__).parents[2]
TARGET = ROOT / "docs/reference/not-run.md"
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")])
_INTRODUCTION = """# What is not run

Every block of code in the README, in CONTRIBUTING and on these pages is run from top to bottom of its page by
`tests/docs`, and what a page shows below a command is compared with what comes. Blocks that cannot run there are marked
`<!-- not run: WHY -->` in the page's source, and listed here by `python -m tests.docs.not_run`; a test compares.
"""
_END = """
Blocks of other kinds are not run: {kinds}. Those in `toml` are read as such,
and those that a page names as a file are written, and used by the commands after them.
"""


def page() -> str:
    """The whole page."""
    rows = [_row(block) for source in PAGES for block in read_blocks(source) if "not run" in block.marks]
    kinds = ", ".join(f"`{kind}`" for kind in KNOWN if kind not in RUNNABLE)
    table = ["| where | begins with | why it is not run |", "|---|---|---|", *rows]
    return "\n".join([_INTRODUCTION, *table]) + "\n" + _END.format(kinds=kinds)


def _row(block: Block) -> str:
    link = posixpath.relpath(block.page.relative_to(ROOT).as_posix(), TARGET.parent.relative_to(ROOT).as_posix())
    title, anchor = heading_above(block.page, block.line)
    first = block.text.strip().split("\n")[0].partition(" #")[0].removeprefix("$ ").rstrip(" \\")
    where = f"[{block.page.relative_to(ROOT).as_posix().removeprefix('docs/')}, {title}]({link}#{anchor})"
    return f"| {where} | `{first}` | {block.marks['not run']} |".replace("\\|", "|")


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
