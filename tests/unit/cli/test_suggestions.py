"""Misspelt commands, options, words and mechanisms: the sentence says what was probably meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.small_stream import Run, publish_through, publishing_folder


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    return publishing_folder(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("pubish",), "'publish'"),
        (("statsu", "run.journal"), "'status'"),
        (("users", "run.journal", "lst"), "'list'"),
        (("users", "run.journal", "exprot"), "'export'"),
        (("publish", "--jornal", "x"), "--journal"),
        (("publish", "--log", "inof"), "'info'"),
        (("releases", "run.journal", "--format", "cvs"), "'csv'"),
        (("compare", "--ajsd", "normalized"), "'normalised'"),
    ],
)
def test_what_was_meant(run: Run, arguments: tuple[str, ...], meant: str) -> None:
    code, _, err = run(*arguments)
    assert code == 2
    assert "Did you mean" in err
    assert meant in err.partition("Did you mean")[2]


@pytest.mark.parametrize(
    ("more", "meant"),
    [
        (("--mechanism", "pdb"), "pbd"),
        (("--mechanism", "ptf"), "pft"),
        (("--neighbours", "relpace"), "replace"),
        (("--engine", "sparc"), "spark"),
        (("--close-slots-by", "line"), "lines"),
    ],
)
def test_settings_too(run: Run, more: tuple[str, ...], meant: str) -> None:
    code, _, err = publish_through(run, 3, *more)
    assert code == 2
    assert f"Did you mean '{meant}'?" in err


def test_what_is_like_nothing_gets_no_guess(run: Run) -> None:
    code, _, err = run("frobnicate")
    assert code == 2
    assert "Unknown command 'frobnicate'. `wevent --help` lists the commands." in err


def test_labels_are_accepted_where_cells_are_asked_for(run: Run) -> None:
    assert publish_through(run, 3, "--cells", "0,1,2,3", "-q") == (0, "", "")
    assert '"0":' in Path("out.ndjson").read_text() or "0" in Path("out.ndjson").read_text()
    code, _, err = publish_through(run, 3, "--cells", "north")
    assert code == 2
    assert "labels with commas between (a,b,c)" in err
