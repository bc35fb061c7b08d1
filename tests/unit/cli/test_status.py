"""`wevent status`: what is left and what it means, what a restore did; and a journal that is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.small_stream import Run, publish_through, publishing_folder


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    return publishing_folder(tmp_path, monkeypatch)


def facts(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("status", "run.journal", "--json")[1])
    return found


@pytest.mark.parametrize("mechanism", ["pft", "pbu", "uniform", "sample", "plbu"])
def test_nothing_left_is_as_it_should_be_where_windows_are_planned(run: Run, mechanism: str) -> None:
    publish_through(run, 12, "--mechanism", mechanism, "-q")
    screen = run("status", "run.journal")[1]
    assert f"{mechanism} plans the spending of every window" in screen
    assert "as it should be" in facts(run)["meaning"]


def test_much_left_has_a_reason_too(run: Run) -> None:
    users = [f"{user},4,{('0.2', '2.0')[user % 2]}" for user in range(60)]
    Path("users.csv").write_text("\n".join(["user,window,epsilon", *users]) + "\n")
    publish_through(run, 12, "--mechanism", "uniform", "-q")
    assert "held to what the strictest one allows" in run("status", "run.journal")[1]


def test_a_journal_that_was_put_back_is_said_to_be(run: Run) -> None:
    publish_through(run, 10, "-q")
    assert facts(run)["noted_slot"] is None
    old = Path("run.journal").read_bytes()
    publish_through(run, 14, "-q")
    assert facts(run)["noted_slot"] is None
    assert "behind" not in run("status", "run.journal")[1]
    newer = Path("run.journal").read_bytes()
    Path("run.journal").write_bytes(old)
    assert (facts(run)["slot"], facts(run)["noted_slot"]) == (10, None), "the next writer stores its write-ahead record"
    Path("run.journal").write_bytes(newer)
    publish_through(run, 18, "-q")
    Path("run.journal").write_bytes(old)
    assert (facts(run)["slot"], facts(run)["noted_slot"]) == (10, 18)
    assert "behind: slot 18 is noted outside the journal" in run("status", "run.journal")[1]


@pytest.mark.parametrize("mechanism", ["pbd", "pba"])
def test_what_is_left_is_for_changes_where_the_stream_is_watched(run: Run, mechanism: str) -> None:
    publish_through(run, 12, "--mechanism", mechanism, "-q")
    assert f"{mechanism} spends more when the stream changes" in run("status", "run.journal")[1]


@pytest.mark.parametrize(
    ("stated", "doubts", "said"),
    [
        (("--same-settings",), (21, None, True), ["through slot 21 users are counted in stricter classes"]),
        (
            ("--widest-window", "9", "--accept-lost-changes"),
            (21, 23, False),
            [
                "through slot 23 no user is counted: settings may be lost",
            ],
        ),
    ],
)
def test_a_restore_is_seen_in_status_and_audit(
    run: Run, stated: tuple[str, ...], doubts: tuple[int, int | None, bool], said: list[str]
) -> None:
    publish_through(run, 10, "-q")
    run("backup", "run.journal", "b.journal")
    publish_through(run, 14, "-q")
    Path("run.journal").unlink()
    Path("run.journal.witness").unlink()  # with it, the last state of the registry would be known
    code, restored, _ = run("restore", "b.journal", "run.journal", "--released-through", "14", *stated)
    assert code == 0
    found = facts(run)
    assert found["released_elsewhere"] == [{"first": 11, "last": 14}]
    assert (found["members"], found["in_doubt_through"], found["silent_through"], found["changes_lost"]) == (
        60,
        *doubts,
    )
    sentence = "slots 11 to 14 were released elsewhere (a backup was restored)"
    screen = run("status", "run.journal")[1]
    assert sentence in screen
    for text in (screen, restored):
        assert all(part in text for part in said)
        assert ("changes of the registry may be lost: import it again" in text) == doubts[2]
    code, screen, _ = run("verify", "run.journal")
    assert (code, sentence in screen) == (0, True)
    assert json.loads(run("verify", "run.journal", "--json")[1])["released_elsewhere"] == [{"first": 11, "last": 14}]


def test_nothing_is_elsewhere_or_in_doubt_in_a_plain_journal(run: Run) -> None:
    publish_through(run, 3, "-q")
    found = facts(run)
    names = ("released_elsewhere", "in_doubt_through", "silent_through", "changes_lost")
    assert [found[name] for name in names] == [[], None, None, False]
    assert "elsewhere" not in run("status", "run.journal")[1] + run("verify", "run.journal")[1]


@pytest.mark.parametrize("command", [("status",), ("releases",), ("users",)])
@pytest.mark.parametrize("left", [None, b""])
def test_a_lost_journal_is_said_to_be_lost_with_the_way_back(run: Run, command: tuple[str], left: bytes | None) -> None:
    publish_through(run, 6, "-q")
    Path("run.journal").unlink()
    if left is not None:
        Path("run.journal").write_bytes(left)
    arguments = (*command, "run.journal", *(("list",) if command == ("users",) else ()))
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert "The journal that committed slot 6" in err
    assert "wevent restore BACKUP run.journal --released-through 6" in err


def test_one_that_never_was_is_not_lost(run: Run) -> None:
    code, _, err = run("status", "run.journal")
    assert code == 2
    assert "There is no journal at" in err
