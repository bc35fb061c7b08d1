"""`wevent audit` as people call it: on what is shipped, on what is registered, on what is broken, on a service."""

from __future__ import annotations

import json
import os
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
from wevent.auditing.black_box.box_audit import audit_black_box
from wevent.auditing.black_box.command_runs import CommandRuns
from wevent.auditing.black_box.effort import Effort
from wevent.auditing.black_box.library_runs import PROMISES, LibraryRuns
from wevent.auditing.black_box.own_service import own_service
from wevent.auditing.black_box.service_audit import audit_service
from wevent.auditing.mechanism_audit import PROVES_NOTHING
from wevent.core.estimators import Sampling
from wevent.core.registry import BUILT_IN
from wevent.errors import InvalidOption

CONFIDENCE = 0.999_999  # a test that fails once in a million runs of the suite


@pytest.mark.parametrize("mechanism", BUILT_IN)
def test_nothing_is_found_from_outside_in_what_is_shipped(mechanism: str) -> None:
    runs = LibraryRuns(build_subject(mechanism), PROMISES[1:2])
    (finding,) = audit_black_box(runs, Effort(trials=300), seed=1, confidence=CONFIDENCE)
    assert not finding.broken, finding


@pytest.mark.parametrize("options", [{"neighbours": "replace"}, {"max_cells_per_user": 2}, {"nonnegative": True}])
def test_nothing_is_found_with_options(options: dict) -> None:
    runs = LibraryRuns(build_subject("pbd", **options), PROMISES[1:2])
    (finding,) = audit_black_box(runs, Effort(trials=200), seed=1, confidence=CONFIDENCE)
    assert not finding.broken, finding


def test_nothing_is_found_through_the_command() -> None:
    with CommandRuns("pbd", {"neighbours": "replace"}) as runs:
        (finding,) = audit_black_box(runs, Effort(trials=1), seed=1, confidence=CONFIDENCE)
    assert not finding.broken, finding
    assert finding.trials == 5 * 16 + 24


def test_a_command_that_stops_on_one_persons_record_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    root = str(Path(__file__).parents[2])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((root, *filter(None, [os.environ.get("PYTHONPATH")]))))
    with CommandRuns("uniform", {}, module="tests.support.stopping_command") as runs:
        (finding,) = audit_black_box(runs, Effort(trials=1), seed=1)
    assert finding.broken, finding
    assert "records that are no event" in finding.witness


def test_the_command_says_what_it_found_and_that_this_proves_nothing(tmp_path: Path) -> None:
    arguments = ("audit", "uniform", "--seconds", "2", "--audits", "library", "--confidence", "0.999999")
    done = commands.call(tmp_path, *arguments, "--plot", "shown.svg")
    assert done.code == 0, done
    assert PROVES_NOTHING in done.out
    assert "Witness" not in done.out, "of what is not broken only the object has it"
    assert "svg" in (tmp_path / "shown.svg").read_text()


def test_missing_folders_of_the_picture_are_made_as_by_other_commands(tmp_path: Path) -> None:
    arguments = ("audit", "uniform", "--seconds", "1", "--audits", "library", "--confidence", "0.999999", "--json")
    done = commands.call(tmp_path, *arguments, "--plot", "pictures/of today/shown.svg")
    assert done.code == 0, done
    assert json.loads(done.out)["plot"] == "pictures/of today/shown.svg"
    assert (tmp_path / "pictures/of today/shown.svg").exists()


@pytest.mark.parametrize("place", ["file/shown.png", "file/new/shown.png"])
def test_a_picture_with_no_place_is_refused_before_anything_is_audited(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure afterwards would end with exit code 1, which says that a promise is broken."""
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setattr("wevent.cli.audit.audit_mechanism", None)
    done = commands.call(tmp_path, "audit", "uniform", "--plot", place)
    assert done.code == 2, done
    assert f"Expected a place for a picture at '{place}'; received 'file', which is no folder" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("more", [("--token-file", "audit.token"), ("--test-instance",)])
def test_what_belongs_to_a_service_needs_one(tmp_path: Path, more: tuple[str, ...]) -> None:
    done = commands.call(tmp_path, "audit", "uniform", "--seconds", "1", *more)
    assert done.code == 2, done
    assert f"Expected --url beside {more[0]}" in done.err


def test_the_command_is_left_out_where_there_is_too_little_time_for_it() -> None:
    found = wevent.audit_mechanism("uniform", seconds=1, confidence=CONFIDENCE)
    assert {one.audit.partition(":")[0] for one in found.findings} == {"exact", "black box"}
    assert not any("command" in one.audit for one in found.findings)
    assert any(note.startswith("command: not tried") for note in found.notes)


def test_what_never_publishes_is_not_passed() -> None:
    class Failing:
        measured = None

        def step(self, counts: object) -> NoReturn:
            raise RuntimeError("oops")

    subject = AuditSubject("failing", lambda population, cells, noise: Failing())
    with pytest.raises(InvalidOption, match="failing to publish a slot; received RuntimeError: oops"):
        wevent.audit_mechanism(subject, seconds=1, audits=["library"])


@pytest.mark.parametrize("content", [None, b"\xff\xfe"], ids=["missing", "no text"])
def test_a_token_file_that_is_none(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "audit.token").write_bytes(content)
    arguments = ("audit", "uniform", "--audits", "service", "--url", "http://127.0.0.1:1")
    done = commands.call(tmp_path, *arguments, "--token-file", "audit.token")
    assert done.code == 2, done
    assert "Expected a file with a token at 'audit.token'" in done.err


def test_the_same_as_an_object(tmp_path: Path) -> None:
    done = commands.call(
        tmp_path, "audit", "uniform", "--seconds", "1", "--audits", "library", "--neighbours", "replace", "--json"
    )
    told = json.loads(done.out)
    assert done.code == int(not told["ok"])
    assert told["options"] == {"neighbours": "replace"}
    assert [(row["window"], row["epsilon"]) for row in told["findings"]] == [(1, 1.0), (2, 1.0), (3, 2.0), (1, 2e-09)]


def test_mistakes_are_exit_code_2(tmp_path: Path) -> None:
    for wrong in (["no-such"], ["uniform", "--audits", "none"], ["pbd", "--threshold", "std"]):
        done = commands.call(tmp_path, "audit", *wrong, "--seconds", "1")
        assert done.code == 2, done


def test_a_broken_promise_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Differences between cells are exact, so that every run tells, on any machine, if their number does not depend on it."""
    monkeypatch.setattr(mechanism_audit, "Effort", lambda seconds: Effort(trials=3000))
    found = wevent.audit_mechanism(subject(OneNoiseForAllCells), seconds=1, audits=["library"])
    assert found.broken
    assert "broken" in found.meaning()


def test_a_mechanism_from_outside_is_taken() -> None:
    own = replace(BUILT_IN["uniform"], name="own-uniform")
    wevent.register(own)
    told = wevent.audit_mechanism("own-uniform", seconds=1, audits=["library", "command"], confidence=CONFIDENCE)
    assert told.ok, told.findings
    assert told.notes == ["command: not tried; the mechanism is known to this process alone, no entry point names it"]


class Dithered(Sampling):
    """An honest measurement, and a die of its own on top: harmless, but nothing that can be computed."""

    def measure(self, permit, plan, counts, noise):
        measured = super().measure(permit, plan, counts, noise)
        return measured._replace(values=measured.values + np.random.default_rng().random(len(measured.values)))


def test_what_cannot_be_said_is_neither_a_pass_nor_a_broken_promise(tmp_path: Path) -> None:
    wevent.register(replace(BUILT_IN["uniform"], name="own-dithered", estimator=lambda options: Dithered()))
    seconds = 30  # it ends when every case is known to be beyond it: much earlier, but on a machine with much to do
    done = commands.call(tmp_path, "audit", "own-dithered", "--seconds", str(seconds), "--audits", "exact")
    assert done.code == 3, done
    assert "own randomness" in done.out
    assert "Obstacle of exact: enumerated, exact: searched: randomness that the audit cannot see" in done.out
    assert "BROKEN" not in done.out
    found = wevent.audit_mechanism("own-dithered", seconds=seconds, audits=["exact"])
    assert (found.ok, found.broken, found.verdict) == (False, False, "own randomness")
    assert {row["verdict"] for row in found.to_dict()["findings"]} == {"own randomness"}


@pytest.mark.parametrize("audit", ["exact", "library"])
def test_a_mechanism_that_refuses_every_world_is_not_passed(audit: str) -> None:
    def make(population: object, cells: int, noise: object) -> object:
        raise InvalidOption("a hundred cells", f"{cells}", "Declare more.", option="cells")

    with pytest.raises(InvalidOption, match="a hundred cells"):
        wevent.audit_mechanism(AuditSubject("shy", make), seconds=1, audits=[audit])


def test_a_running_service_is_audited_and_one_in_use_is_left_alone() -> None:
    with own_service("uniform", {}) as client:
        (finding,) = audit_service(client, seconds=8, confidence=CONFIDENCE)
        assert not finding.broken, finding
        assert finding.audit == "black box: service"
        assert finding.trials > 0
        with pytest.raises(InvalidOption, match="test instance"):
            audit_service(client, seconds=8)
