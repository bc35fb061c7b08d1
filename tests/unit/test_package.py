"""The public face: names, version, no side effects."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import wevent
from tests.support.commands import write_stream


def test_every_public_name_is_there_and_documented() -> None:
    for name in wevent.__all__:
        assert getattr(wevent, name).__doc__, name
    assert sorted(wevent.__all__) == wevent.__all__


def test_the_version_is_semantic() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", wevent.__version__)


def test_the_verbs_of_the_command_line_are_functions(tmp_path: Path) -> None:
    write_stream(tmp_path, 3)
    settings: dict[str, Any] = {
        "inputs": tmp_path / "events.csv",
        "requirements": tmp_path / "users.csv",
        "journal": tmp_path / "run.journal",
        "out": tmp_path / "out.ndjson",
        "cells": 4,
        "slot": "60s",
        "start": "2026-01-01T00:00:00Z",
        "end": "2026-01-01T00:03:00Z",
    }
    assert wevent.publish(**settings, mechanism="pft", nonnegative=True).summary.last == 3
    assert wevent.publish(**settings, mechanism="pft", nonnegative=True).summary.last == 3  # nothing new
    assert wevent.publish(**settings).summary.last == 3  # what is not said is as it was
    with pytest.raises(wevent.SettingsDiffer, match="nonnegative"):
        wevent.publish(**settings, nonnegative=False)
    assert wevent.verify_journal(tmp_path / "run.journal").ok
    with wevent.open_journal(tmp_path / "run.journal") as journal:
        assert [record.slot for record in journal.releases()] == [1, 2, 3]


def test_what_is_not_public_is_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        wevent.nothing  # noqa: B018
    assert set(dir(wevent)) == set(wevent.__all__)


def modules(*, packages: bool = True) -> list[str]:
    found = [module for module in pkgutil.walk_packages(wevent.__path__, "wevent.") if packages or not module.ispkg]
    return [module.name for module in found if "__main__" not in module.name]


@pytest.mark.slow
def test_the_examples_in_docstrings_are_true() -> None:
    tried = 0
    for name in modules():
        failed, number = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
        assert not failed, name
        tried += number
    assert tried >= 15


def test_no_two_modules_share_a_name() -> None:
    """A command's file is named after the command, whatever does the work."""
    names = Counter(name.rpartition(".")[2] for name in modules(packages=False) if not name.startswith("wevent.cli."))
    assert [name for name, number in names.items() if number > 1] == []


def test_no_two_classes_share_a_name() -> None:
    """Apart from private ones, which nobody else sees."""
    names = Counter(
        name
        for path in Path(wevent.__file__).parent.rglob("*.py")
        for name in re.findall(r"^class ([A-Z]\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert [name for name, number in names.items() if number > 1] == []
