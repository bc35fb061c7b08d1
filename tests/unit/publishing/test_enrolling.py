"""A stream in which people choose their level while it runs: it may begin with nobody, and every level can be chosen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.synthetic import SyntheticSource
from wevent.core.requirements import Levels
from wevent.errors import InvalidSettings
from wevent.journal import open_journal
from wevent.outputs import KeptOutput
from wevent.publishing.configuration import load_settings
from wevent.publishing.registrations import Requested, choose
from wevent.publishing.session import run
from wevent.settings import RunOptions, Settings


def settings(folder: Path, **options: object) -> Settings:
    fields = {"inputs": "-", "cells": 2, "slot": "100ms", "journal": folder / "run.journal", "mechanism": "pbu"}
    return load_settings(None, {**fields, **options}, ("journal",))


def publish(chosen: Settings, end: int, *, enrolling: bool = True) -> None:
    run(chosen, RunOptions(), None, KeptOutput(), lambda *_: SyntheticSource(end, cells=2), enrolling=enrolling)


def test_nobody_has_to_be_there_and_every_level_is_declared(tmp_path: Path) -> None:
    publish(settings(tmp_path), 2)
    with open_journal(tmp_path / "run.journal") as journal:
        terms = journal.head().epoch.terms
        assert journal.head().committed == 2
    offered = {requirement.key for requirement in Levels.default().offered().values()}
    assert {tuple(key) for key in terms.declared} == offered
    for number, level in enumerate(Levels.default().offered()):
        choose(tmp_path / "run.journal", f"u{number}", Requested(level=level))
    publish(settings(tmp_path), 3)
    with open_journal(tmp_path / "run.journal") as journal:
        assert sum(journal.registry.sizes().values()) == len(offered)


def test_without_enrolling_a_new_journal_needs_people(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="no requirements for a new journal"):
        publish(settings(tmp_path), 2, enrolling=False)


def test_a_journal_that_goes_without_levels_goes_on_so(tmp_path: Path) -> None:
    (tmp_path / "users.csv").write_text("user,window,epsilon\na,4,1\nb,4,1\n")
    chosen = settings(tmp_path, requirements=str(tmp_path / "users.csv"))
    publish(chosen, 2, enrolling=False)
    publish(chosen, 3)
    with open_journal(tmp_path / "run.journal") as journal:
        assert journal.head().epoch.terms.levels is None
