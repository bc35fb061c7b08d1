"""The audit as a user calls it: of shipped, registered, broken and unclear mechanisms."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

import wevent
from tests.support import commands
from tests.support.broken_from_outside import OneNoiseForAllCells, subject
from wevent.auditing import mechanism_audit
from wevent.auditing.audit_subject import AuditSubject, build_subject
from wevent.auditing.black_box.black_box_audit import PROMISES, Effort, audit_black_box
from wevent.auditing.mechanism_audit import PROVES_NOTHING
from wevent.core.builtin_mechanisms import BUILT_IN
from wevent.core.estimators import Sampling
from wevent.errors import InvalidOption

CONFIDENCE = 0.999_999  # a test that fails once in a million runs of the suite
OPTIONS = [{"neighbours": "replace"}, {"max_cells_per_user": 2}, {"nonnegative": True}]


@pytest.mark.parametrize(
    ("mechanism", "options"), [*((one, {}) for one in BUILT_IN), *(("pbd", one) for one in OPTIONS)]
)
def test_nothing_is_found_in_what_is_shipped(mechanism: str, options: dict) -> None:
    shipped = build_subject(mechanism, **options)
    (finding,) = audit_black_box(shipped, Effort(trials=300), seed=1, confidence=CONFIDENCE, promises=PROMISES[1:2])
    assert not finding.broken, finding


def test_the_command_prints_and_draws_and_states_that_nothing_is_proven(tmp_path: Path) -> None:
    arguments = ("audit", "uniform", "--seconds", "2", "--audits", "black-box", "--confidence", "0.999999")
    done = commands.call(tmp_path, *arguments, "--plot", "new folder/shown.svg")
    assert done.code == 0, done
    assert PROVES_NOTHING in done.out
    assert "Witness" not in done.out, "of what is not broken only the object has it"
    assert "svg" in (tmp_path / "new folder/shown.svg").read_text()


@pytest.mark.parametrize("place", ["file/shown.png", "file/new/shown.png"])
def test_a_picture_with_no_place_is_refused_before_anything_is_audited(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure afterwards would end with exit code 1, which says that a guarantee is broken."""
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setattr("wevent.cli.audit.audit_mechanism", None)
    done = commands.call(tmp_path, "audit", "uniform", "--plot", place)
    assert done.code == 2, done
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_same_as_an_object(tmp_path: Path) -> None:
    done = commands.call(
        tmp_path, "audit", "uniform", "--seconds", "1", "--audits", "black-box", "--neighbours", "replace", "--json"
    )
    told = json.loads(done.out)
    assert done.code == int(not told["ok"])
    assert told["options"] == {"neighbours": "replace"}
    assert [(row["window"], row["epsilon"]) for row in told["findings"]] == [(1, 1.0), (2, 1.0), (3, 2.0), (1, 2e-09)]


def test_mistakes_are_exit_code_2(tmp_path: Path) -> None:
    for wrong in (["no-such"], ["uniform", "--audits", "none"], ["pbd", "--threshold", "std"]):
        done = commands.call(tmp_path, "audit", *wrong, "--seconds", "1")
        assert done.code == 2, done


def test_a_broken_guarantee_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Differences between cells are exact, so that every run tells, on any machine, if their number does not depend on it."""
    monkeypatch.setattr(mechanism_audit, "Effort", lambda seconds: Effort(trials=3000))
    found = wevent.audit_mechanism(subject(OneNoiseForAllCells), seconds=1, audits=["black-box"])
    assert found.broken
    assert "broken" in found.meaning


def test_a_registered_mechanism_is_audited_both_ways() -> None:
    own = replace(BUILT_IN["uniform"], name="own-uniform")
    wevent.register(own)
    told = wevent.audit_mechanism("own-uniform", seconds=2, confidence=CONFIDENCE)
    assert told.ok, told.findings
    assert {one.audit.partition(":")[0] for one in told.findings} == {"exact", "black box"}


class Dithered(Sampling):
    """An honest measurement, and a die of its own on top: harmless, but nothing that can be computed."""

    def measure(self, permit, plan, counts, noise):
        measured = super().measure(permit, plan, counts, noise)
        return measured._replace(values=measured.values + np.random.default_rng().random(len(measured.values)))


def test_an_open_verdict_is_neither_a_pass_nor_a_broken_guarantee(tmp_path: Path) -> None:
    wevent.register(replace(BUILT_IN["uniform"], name="own-dithered", estimator=lambda options: Dithered()))
    seconds = "30"  # it ends when every case is known to be beyond it: much earlier, but on a machine with much to do
    done = commands.call(tmp_path, "audit", "own-dithered", "--seconds", seconds, "--audits", "exact")
    assert done.code == 3, done
    assert "Obstacle of exact: enumerated, exact: searched: randomness that the audit cannot see" in done.out
    assert "BROKEN" not in done.out


@pytest.mark.parametrize("audit", ["exact", "black-box"])
def test_a_mechanism_that_refuses_every_world_is_not_passed(audit: str) -> None:
    def make(population: object, cells: int, noise: object) -> object:
        raise InvalidOption("Fewer than a hundred cells.", "Declare more.", option="cells")

    with pytest.raises(InvalidOption, match="a hundred cells"):
        wevent.audit_mechanism(AuditSubject("shy", make), seconds=1, audits=[audit])


def test_what_never_publishes_is_not_passed() -> None:
    class Failing:
        measured = None

        def step(self, counts: object) -> NoReturn:
            raise RuntimeError("oops")

    failing = AuditSubject("failing", lambda population, cells, noise: Failing())
    with pytest.raises(InvalidOption, match="failing cannot publish a slot"):
        wevent.audit_mechanism(failing, seconds=1, audits=["black-box"])
