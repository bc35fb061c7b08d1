"""`wevent init`: an example that can be published at once."""

from pathlib import Path

import numpy as np
import pytest

from wevent import Publisher, Roster
from wevent.cli import main
from wevent.publishing.configuration import load_settings
from wevent.streams import FileSource, declared_clock, read_requirements


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return int(ended.value.code or 0)


def test_the_example_can_be_published_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("init", str(tmp_path / "new folder")) == 0
    assert "Next: wevent publish --config" in capsys.readouterr().out
    settings = load_settings(tmp_path / "new folder" / "wevent.toml", {})
    assert settings.requirements is not None
    ids, keys, *_ = read_requirements(settings.requirements, settings.levels)
    windows, nanos = zip(*keys, strict=True)
    roster = Roster.from_columns(ids, windows, np.array(nanos) / 1e9)
    clock, last = declared_clock(settings)
    source = FileSource(settings, clock, last)
    publisher = Publisher(roster.population, settings.cells, settings.mechanism)
    releases = [publisher.step(one.counts) for one in source.count(roster, 1, 400)]
    assert len(releases) == last == 288
    assert len(roster.population) == 9
    totals = source.totals()
    assert totals["events"] > 100_000
    assert (totals["rejected"], totals["malformed"]) == (0, 0)


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cells.txt").write_text("mine\n")
    assert run("init", str(tmp_path)) == 2
    assert "cells.txt" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["cells.txt"]
    assert (tmp_path / "cells.txt").read_text() == "mine\n"


def test_a_folder_that_cannot_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert run("init", str(tmp_path / "file" / "below")) == 2
    assert "Cannot write to" in capsys.readouterr().err
