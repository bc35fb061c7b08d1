"""Each page from top to bottom: every command and every line of Python runs, and shows what the page shows."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.docs.blocks import KNOWN, RUNNABLE, Block, commands, read_blocks
from tests.docs.running import Failed, PageRun, compare

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")])
BLOCKS = {page: read_blocks(page) for page in PAGES}
WITH_CODE = [page for page in PAGES if any(block.language in RUNNABLE for block in BLOCKS[page])]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_does_what_it_says(page: Path, tmp_path: Path) -> None:
    folder = tmp_path / "page"
    folder.mkdir()
    with PageRun(folder) as run:
        for block in BLOCKS[page]:
            run.run(block)


def test_every_block_has_a_language_that_is_known() -> None:
    found = {block.place: block.language for blocks in BLOCKS.values() for block in blocks}
    assert {place: language for place, language in found.items() if language not in KNOWN} == {}


def test_settings_in_pages_are_toml() -> None:
    blocks = [block for blocks in BLOCKS.values() for block in blocks if block.language == "toml"]
    assert blocks
    for block in blocks:
        tomllib.loads(block.text)


def test_what_is_not_run_says_why() -> None:
    skipped = [block for blocks in BLOCKS.values() for block in blocks if "not run" in block.marks]
    assert all(block.marks["not run"] for block in skipped)


class TestTheRunner:
    """It would notice."""

    def block(self, text: str, language: str = "console", **marks: str) -> Block:
        return Block(
            ROOT / "page.md", 1, language, text, {name.replace("_", " "): mark for name, mark in marks.items()}
        )

    def run(self, tmp_path: Path, *blocks: Block) -> None:
        folder = tmp_path / "page"
        folder.mkdir()
        with PageRun(folder) as run:
            for block in blocks:
                run.run(block)

    def test_a_command_that_fails(self, tmp_path: Path) -> None:
        with pytest.raises(Failed, match="ended with 3"):
            self.run(tmp_path, self.block("exit 3\n"))

    def test_another_output(self, tmp_path: Path) -> None:
        with pytest.raises(Failed, match="is shown with\na\nbut printed\nb"):
            self.run(tmp_path, self.block("$ echo b\na\n"))

    def test_messages_that_are_not_shown(self, tmp_path: Path) -> None:
        with pytest.raises(Failed, match="oops"):
            self.run(tmp_path, self.block("$ echo a; echo oops >&2\na\n"))

    def test_python_that_raises(self, tmp_path: Path) -> None:
        with pytest.raises(Failed, match="ZeroDivisionError"):
            self.run(tmp_path, self.block("x = 0\n", "python"), self.block("1 / x\n", "python"))

    def test_what_goes_on_running_is_ended_with_the_page(self, tmp_path: Path) -> None:
        serve = self.block("echo Serving; sleep 100\n", background="Serving")
        folder = tmp_path / "page"
        folder.mkdir()
        with PageRun(folder) as run:
            run.run(serve)
            (process,) = run._begun
            assert process.poll() is None
        assert process.poll() is not None

    def test_what_does_not_come_up(self, tmp_path: Path) -> None:
        with pytest.raises(Failed, match="did not say 'ready' but\nno\n"):
            self.run(tmp_path, self.block("echo no\n", background="ready"))

    def test_files_and_continued_lines(self, tmp_path: Path) -> None:
        script = self.block("print('said', 7)\n", "python", file="say.py")
        self.run(tmp_path, script, self.block("$ python \\\n  say.py\nsaid 7\n$ wevent --version >/dev/null\n"))

    def test_left_out_lines_and_numbers(self) -> None:
        block = self.block("", numbers_differ="")
        compare(block, "x", "a 1.5\n…\nb 7", "a 22\nanything\nat all\nb 1,000\n")
        with pytest.raises(Failed):
            compare(block, "x", "a 1.5\n…\nb 7", "a 22\nc 1\n")

    def test_how_far_a_busy_machine_is_does_not_matter(self) -> None:
        compare(self.block(""), "x", "one\ntwo", "one\npft:budget: 19 of 33 runs done\ntwo\n")
        with pytest.raises(Failed):
            compare(self.block(""), "x", "one\ntwo", "one\nthree\ntwo\n")

    def test_a_column_that_differs(self) -> None:
        block = self.block("", column_differs="ms/slot")
        shown = " name   amre   ms/slot\n ───────────────────\n pft    1,340     9.91\n"
        compare(block, "x", shown, shown.replace("9.91", "0.33"))
        with pytest.raises(Failed):
            compare(block, "x", shown, shown.replace("1,340", "1,341"))

    def test_one_command_per_line_without_a_prompt(self) -> None:
        assert [command.text for command in commands(self.block("a\n# why\nb \\\n c\n"))] == ["a", "b \\\n c"]
