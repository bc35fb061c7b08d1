"""Without pyspark, or without Java: one sentence each."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

import wevent.spark
from tests.support.commands import call, write_stream
from wevent import InvalidSettings


@pytest.fixture
def without_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec

    def find(name: str, package: str | None = None) -> Any:
        return None if name == "pyspark" else found(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find)
    monkeypatch.delitem(vars(wevent.spark), "publish", raising=False)


@pytest.mark.usefixtures("without_pyspark")
def test_without_pyspark(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match=r"without pyspark\. Install them: pip install 'wevent\[spark\]'"):
        wevent.spark.publish  # noqa: B018
    write_stream(tmp_path, 2)
    how = ("--slot", "60s", "--start", "2026-01-01T00:00:00Z", "--end", "2026-01-01T00:02:00Z", "--cells", "4")
    done = call(
        tmp_path, "publish", "events.csv", "--requirements", "users.csv", "--journal", "j", *how, "--engine", "spark"
    )
    assert done.code == 2
    assert "pip install 'wevent[spark]'" in done.err
    assert not (tmp_path / "j").exists()


def fake_java(folder: Path, version: str) -> str:
    (folder / "bin").mkdir()
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho '{version}' >&2\n")
    java.chmod(0o755)
    return str(folder)


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ('openjdk version "17.0.15" 2025-04-15', None),
        ('openjdk version "21.0.1"', None),
        ('openjdk version "11.0.22" 2024-01-16', "Java 11"),
        ('java version "1.8.0_392"', "Java 1 "),
        ("no idea", "does not say its version"),
    ],
)
def test_versions_of_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, said: str | None) -> None:
    monkeypatch.setenv("JAVA_HOME", fake_java(tmp_path, version))
    if said is None:
        wevent.spark.require_java()
        return
    with pytest.raises(InvalidSettings, match=said):
        wevent.spark.require_java()


def test_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(InvalidSettings, match=r"none in JAVA_HOME.*openjdk-17-jre-headless"):
        wevent.spark.require_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InvalidSettings, match="none on the path"):
        wevent.spark.require_java()


def test_what_is_not_public_is_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        wevent.spark.nothing  # noqa: B018
    assert set(dir(wevent.spark)) == {"SparkPublication", "count", "publish"}
