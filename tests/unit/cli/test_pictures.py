"""Where pictures, pages and tables go is looked at before anything is computed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import commands


@pytest.mark.parametrize(
    "arguments",
    [
        ("compare", "--plot", "file/x.png"),
        ("compare", "--per-slot", "file/more/x.csv"),
        ("plan", "--plot", "file/x.svg"),
        ("demo", "--plot", "file/x.png"),
        ("plot", "run.journal", "--html", "file/x.html"),
        ("challenge", "uniform", "--plot", "file/x.png"),
    ],
    ids=lambda arguments: " ".join(arguments),
)
def test_a_file_is_no_folder(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "file").touch()
    done = commands.call(tmp_path, *arguments)
    assert done.code == 2, done
    assert "received 'file', which is no folder that can be written to. Name another place." in done.err
    assert "Traceback" not in done.err
