"""What the shell is told when somebody presses the tab key: click's protocol, as bash, zsh and fish speak it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from wevent import mechanisms

pytestmark = pytest.mark.slow


def complete(*words: str, folder: str | None = None) -> list[str]:
    """The completions of the last word, as bash is told: `kind,value`."""
    line = " ".join(("wevent", *words))
    environment = {**os.environ, "_WEVENT_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words))}
    done = subprocess.run(
        [sys.executable, "-m", "wevent.cli"], env=environment, capture_output=True, text=True, check=True, cwd=folder
    )
    assert done.stderr == ""
    return [item.partition(",")[2] for item in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("pu",), ["publish"]),
        (("publish", "--rec"), ["--reconfigure"]),
        (("publish", "--neighbours", ""), ["add_remove", "replace"]),
        (("publish", "--engine", "s"), ["spark"]),
        (("publish", "--close-slots-by", ""), ["clock", "lines"]),
        (("publish", "--log", ""), ["debug", "info", "warning"]),
        (("releases", "--format", ""), ["ndjson", "csv"]),
        (("compare", "--variant", "a"), ["authors"]),
        (("compare", "--mechanisms", "pft,pb"), ["pft,pbd", "pft,pba", "pft,pbu"]),
        (("compare", "--mechanisms", "pft,pe"), ["pft,pegasus"]),
        (("compare", "--mechanisms", "s"), ["sample", "spas"]),
        (("plan", "--mechanisms", "s"), ["sample"]),
        (("compare", "--assign", "i"), ["independent"]),
        (("users", "run.journal", "re"), ["remove"]),
        (("status", "--st"), ["--statement"]),
    ],
)
def test_words_are_completed(words: tuple[str, ...], expected: list[str]) -> None:
    assert complete(*words) == expected


def test_every_mechanism_is_completed() -> None:
    assert complete("publish", "--mechanism", "") == list(mechanisms())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_documented_line_gives_a_script(shell: str) -> None:
    environment = {**os.environ, "_WEVENT_COMPLETE": f"{shell}_source"}
    done = subprocess.run(
        [sys.executable, "-m", "wevent.cli"], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        assert "_WEVENT_COMPLETE" in done.stdout
    else:  # click looks at the version of bash, which may not be installed
        assert shell == "bash"


def test_commands_are_completed_before_numpy_is_loaded() -> None:
    program = "import sys; from wevent.cli.group import run; code = run([]); print('numpy' in sys.modules)"
    environment = {**os.environ, "_WEVENT_COMPLETE": "bash_complete", "COMP_WORDS": "wevent pu", "COMP_CWORD": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["plain,publish", "False"]
