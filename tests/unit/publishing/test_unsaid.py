"""What nobody said: a new journal takes the defaults, an old one goes on as it began."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import wevent
from tests.support.commands import Done, call, live, publish, run, write_stream
from wevent.core.options import option_values
from wevent.journal.terms import Terms

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_stream(tmp_path)
    return tmp_path


def terms(folder: Path, journal: str = "run.journal") -> Terms:
    with wevent.open_journal(folder / journal) as opened:
        return opened.head().epoch.terms


def epochs(folder: Path) -> list[dict[str, Any]]:
    with wevent.open_journal(folder / "run.journal") as opened:
        return [option_values(epoch.terms) for epoch in opened.epochs()]


def fine(done: Done) -> None:
    assert done.code == 0, done


def test_a_new_journal_is_pft_with_anchors(folder: Path) -> None:
    fine(publish(folder, 3))
    assert (terms(folder).mechanism, terms(folder).class_weights) == ("pft", "calibrated")
    fine(publish(folder, 5))


SAID = {
    "the former default": (("--mechanism", "pbd"), {"mechanism": "pbd", "class_weights": None}),
    "weights": (("--class-weights", "budget"), {"mechanism": "pft", "class_weights": "budget"}),
    "all alike": (("--class-weights", "equal"), {"mechanism": "pft", "class_weights": "equal"}),
    "anchors": (("--class-weights", "calibrated"), {"mechanism": "pft", "class_weights": "calibrated"}),
    "a cycle": (("--seasonality", "1h,14.4"), {"seasonality": (60.0, 14.4), "special_days": ()}),
    "a calendar": (
        ("--seasonality", "60", "--special-days", "days.csv"),
        {"seasonality": (60.0,), "special_days": (1, 1441)},
    ),
    "the neighbours": (
        ("--neighbours", "replace", "--known-total", "60"),
        {"neighbours": "replace", "known_total": 60},
    ),
    "cells per user": (("--max-cells-per-user", "2"), {"max_cells_per_user": 2}),
    "switches": (("--nonnegative", "--round"), {"nonnegative": True, "round": True}),
    "a threshold": (("--mechanism", "ba", "--threshold", "std"), {"mechanism": "ba", "threshold": "std"}),
    "strangers": (("--unknown-users", "5"), {"unknown_users": 5}),
    "a name": (("--stream", "city"), {"stream": "city"}),
}


@pytest.mark.parametrize("case", SAID)
def test_what_was_said_once_need_not_be_said_again(folder: Path, case: str) -> None:
    said, pinned = SAID[case]
    (folder / "days.csv").write_text("day\n2026-01-01\n")
    fine(publish(folder, 3, *said))
    before = terms(folder)
    assert {name: getattr(before, name) for name in pinned} == pinned
    fine(publish(folder, 6))
    fine(publish(folder, 9, *said))
    fine(publish(folder, 12, "--reconfigure"))  # nothing else was asked for: no epoch begins
    assert terms(folder) == before
    assert len(epochs(folder)) == 1


def test_what_is_said_must_be_what_is_pinned(folder: Path) -> None:
    fine(publish(folder, 3, "--nonnegative"))
    for said, named in (
        (("--mechanism", "pbd"), "mechanism ('pft' in the journal, 'pbd' now)"),
        (("--class-weights", "budget"), "class_weights ('calibrated' in the journal, 'budget' now)"),
        (("--class-weights", "equal"), "class_weights ('calibrated' in the journal, 'equal' now)"),
        (("--no-nonnegative",), "nonnegative (True in the journal, False now)"),
        (("--seasonality", "1h"), "seasonality (none in the journal, 60 now)"),
        (("--seasonality", "1h,14.4"), "seasonality (none in the journal, 60, 14.4 now)"),
        (
            ("--seasonality", "2"),
            "seasonality must be a number of slots, at least 3 and at most 1,000,000, or up to 4 of them, not 2.",
        ),
        (("--estimator", "weighting"), "estimator (None in the journal, 'weighting' now)"),
    ):
        refused = publish(folder, 5, *said)
        assert refused.code == 2
        assert named in refused.err


@pytest.mark.parametrize(("before", "after"), [("pft", "pba"), ("pba", "pft")])
def test_defaults_of_another_mechanism_are_not_named(folder: Path, before: str, after: str) -> None:
    fine(publish(folder, 3, "--mechanism", before))
    refused = publish(folder, 5, "--mechanism", after)
    assert f"mechanism ('{before}' in the journal, '{after}' now). Use them again" in refused.err


def test_a_file_says_it_too(folder: Path) -> None:
    fine(publish(folder, 3))
    (folder / "wevent.toml").write_text('class_weights = "budget"\n')
    refused = publish(folder, 5, "--config", "wevent.toml")
    assert "class_weights ('calibrated' in the journal, 'budget' now)" in refused.err
    fine(publish(folder, 5, "--config", "wevent.toml", "--class-weights", "calibrated"))


def test_another_mechanism_brings_its_own_options_and_leaves_the_rest(folder: Path) -> None:
    fine(publish(folder, 3, "--mechanism", "ba", "--threshold", "std", "--refund", "--nonnegative"))
    fine(publish(folder, 6, "--mechanism", "pft", "--reconfigure"))
    fine(publish(folder, 9, "--mechanism", "pbd", "--reconfigure"))
    fine(publish(folder, 12, "--mechanism", "pft", "--class-weights", "budget", "--reconfigure"))
    fine(publish(folder, 14))
    wanted = ("mechanism", "threshold", "refund", "class_weights", "nonnegative")
    assert [tuple(epoch[name] for name in wanted) for epoch in epochs(folder)] == [
        ("ba", "std", True, None, True),
        ("pft", None, False, "calibrated", True),
        ("pbd", None, False, None, True),
        ("pft", None, False, "budget", True),
    ]
    fine(call(folder, "verify", "run.journal"))


def test_none_takes_back_what_was_said(folder: Path) -> None:
    fine(publish(folder, 3, "--neighbours", "replace", "--known-total", "60"))
    assert publish(folder, 6, "--known-total", "none").code == 2
    fine(publish(folder, 6, "--known-total", "none", "--reconfigure"))
    assert [epoch["known_total"] for epoch in epochs(folder)] == [60, None]


def test_windows_in_hours_follow_the_length_of_slots_until_there_is_one(folder: Path) -> None:
    """A start that came to no slot binds nobody: with shorter slots 4 minutes are more of them, in the same file, too."""
    (folder / "users.csv").write_text("user,window,epsilon\n" + "".join(f"{user},4min,1\n" for user in range(60)))
    fine(run(folder, *live("--out", "out.ndjson")))  # slots of a minute, and none of them
    assert windows(folder) == {4}
    fine(publish(folder, 3, "--slot", "30s"))
    assert windows(folder) == {8}
    assert terms(folder).declared == [(8, 10**9)]


def windows(folder: Path) -> set[int]:
    with wevent.open_journal(folder / "run.journal") as opened:
        return {member.key[0] for member in opened.registry.members()}
