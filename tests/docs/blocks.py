"""The blocks of code of a page, with what comments before them say about running them.

Comments that mean something, each on a line of its own right before a block (several may follow each other):

    <!-- setup: NAME -->        prepare the page's folder first (see `setups`)
    <!-- not run: WHY -->       leave the block out; WHY is said where these are listed
    <!-- file: NAME -->         write the block to this file instead of running it
    <!-- background: WORDS -->  start the block's one command and go on once it has said this; it is ended with the page
    <!-- numbers differ -->     of the output compare everything but the numbers
    <!-- column differs: X -->  leave the numbers in the column with this heading out of the comparison
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

_FENCE = re.compile(r"^( *)```(\w*)\s*$")
_MARK = re.compile(r"^ *<!-- (setup|not run|file|background|numbers differ|column differs)(?:: (.*?))? -->$")
RUNNABLE = ("console", "python")
KNOWN = (*RUNNABLE, "toml", "ini", "text", "sh", "json", "nginx", "csv", "sql", "html", "bibtex")


@dataclass(frozen=True)
class Block:
    """A block of code.

    Attributes:
        page, line: where it starts.
        language: the word behind the fence.
        text: what it holds.
        marks: what comments before it say, by name.
    """

    page: Path
    line: int
    language: str
    text: str
    marks: dict[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """For messages."""
        return f"{self.page.name}:{self.line}"


@dataclass(frozen=True)
class Command:
    """A command of a console block, and the output that the page shows below it (None: it shows none)."""

    text: str
    shown: str | None


def read_blocks(page: Path) -> list[Block]:
    """All blocks of a page, in order."""
    blocks, marks, lines = [], {}, iter(enumerate(page.read_text(encoding="utf-8").splitlines(), start=1))
    for number, line in lines:
        mark, fence = _MARK.match(line), _FENCE.match(line)
        if mark:
            marks[mark[1]] = mark[2] or ""
        elif fence:
            indent = len(fence[1])
            inside = []
            for _, text in lines:
                if text.strip() == "```":
                    break
                inside.append(text[indent:])
            blocks.append(Block(page, number, fence[2], "\n".join(inside) + "\n", marks))
            marks = {}
        elif line.strip():
            assert not marks, f"{page.name}:{number}: {marks} stands before no block"
    return blocks


def commands(block: Block) -> list[Command]:
    """The commands of a console block: after "$ " with their output, or, where no line has that, every line is one."""
    lines = re.sub(r"\\\n", "\\\n\0", block.text).split("\n")
    joined: list[str] = []
    for line in lines:
        if line.startswith("\0"):
            joined[-1] += "\n" + line[1:]
        else:
            joined.append(line)
    if not any(line.startswith("$ ") for line in joined):
        return [Command(line, None) for line in joined if line.strip() and not line.startswith("#")]
    found: list[Command] = []
    for line in joined[:-1]:
        if line.startswith("$ "):
            found.append(Command(line[2:], None))
        else:
            last = found[-1]
            found[-1] = Command(last.text, f"{last.shown}\n{line}" if last.shown is not None else line)
    return found
