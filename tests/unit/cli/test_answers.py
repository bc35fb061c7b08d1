"""JSON = screen: what commands print with `--json` keeps its schema, and every number of the screen is in it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest

from tests.support.small_stream import Run, arguments_through, publish_through, publishing_folder
from wevent.cli.answers import ANSWERS, MechanismsAnswer, as_json
from wevent.cli.group import cli

pytestmark = pytest.mark.slow

NOISE = ("--repeats", "2", "--slots", "30")
COMMANDS = {
    "verify": ("verify", "run.journal"),
    "compare": ("compare", "--users", "200", "--mechanisms", "pbu,uniform", "--stream", "log", *NOISE),
    "compare left out": ("compare", "--users", "200", "--class-weights", "equal", "--stream", "log", *NOISE),
    "check": ("check", *arguments_through(10)),
    "doctor": ("doctor",),
    "levels": ("levels", "run.journal"),
    "mechanisms": ("mechanisms",),
    "plan": ("plan", "--class", "4:1=500", "--class", "8:0.5=1", "--mechanisms", "pbu,uniform", *NOISE),
    "status": ("status", "run.journal"),
    "users list": ("users", "run.journal", "list"),
}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.delenv("COLUMNS", raising=False)
    return publishing_folder(tmp_path, monkeypatch)


def answer_of(command: str, printed: str) -> Any:
    """Printed JSON, held to the schema of the command."""
    return msgspec.json.decode(printed, type=ANSWERS[command], strict=True)


def figures(text: str) -> list[float]:
    """Every number on a screen: with separators, as a percentage, or with an exponent."""
    found = re.findall(r"(?<![\w.:-])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]\d+)?%?(?![\w:])", text)
    return [float(one.rstrip("%").replace(",", "")) for one in found]


def numbers_in(plain: Any) -> list[float]:
    """Every number in a JSON document, sentences included."""
    if isinstance(plain, dict):
        return [number for key, value in plain.items() for number in (*figures(key), *numbers_in(value))]
    if isinstance(plain, list):
        return [float(len(plain)), *(number for value in plain for number in numbers_in(value))]
    if isinstance(plain, str):
        return figures(plain)
    return [] if plain is None else [float(plain)]


def is_shown(figure: float, known: list[float]) -> bool:
    """Whether a figure on the screen is a number of the JSON, rounded, or as a percentage; or half of an interval."""
    return any(
        abs(figure - value) <= max(0.0051 * abs(value), 0.5 if scale == 100.0 else 0.0051)
        for one in known
        for scale in (1.0, 100.0)
        for value in (one * scale, (one - 1) * scale)
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_every_number_of_the_screen_is_in_the_json(run: Run, name: str) -> None:
    if "run.journal" in COMMANDS[name]:
        publish_through(run, 12, "-q")
        run("users", "run.journal", "set", "1", "--window", "4", "--epsilon", "0.5")
    code, screen, remarks = run(*COMMANDS[name])
    again, printed, silent = run(*COMMANDS[name], "--json")
    assert (code, again, silent) == (0, 0, "")
    answer_of(name.partition(" left out")[0], printed)
    answer = json.loads(printed)
    known = numbers_in(answer)
    rows = [row for row in answer.get("mechanisms", []) if "amre_low" in row]
    known += [float(f"{(row['amre_high'] - row['amre_low']) / 2:.1e}") for row in rows]  # the column ±, two digits
    text = re.sub(r"95 %|\d+\.\d ms|\d{4}-\d\d-\d\dT\S+Z", "", screen + remarks)
    missing = [one for one in figures(text) if not is_shown(one, known)]
    assert len(missing) <= len(rows)  # the time of a slot differs from run to run


def test_the_comparison_would_notice() -> None:
    assert figures("12 of 2,000 (0.6%) wait") == [12.0, 2000.0, 0.6]
    assert not is_shown(60.0, [12.0, 4.0, 0.5])
    assert is_shown(12.3, [12.34])
    assert is_shown(67.0, [0.6667])


def test_what_a_run_came_to(run: Run) -> None:
    Path("events.csv").write_text(Path("events.csv").read_text() + "nonsense\n")
    code, out, err = publish_through(run, 5, "--json")
    assert (code, err) == (0, "")
    assert out.count("\n") == 1
    answer = answer_of("publish", out)
    assert (answer.first, answer.last, answer.out, answer.journal) == (1, 5, "out.ndjson", "run.journal")
    assert answer.private.not_counted["malformed"] == 1
    assert answer.private.first_malformed == ["events.csv line 902 (not a record)"]
    Path("users.csv").write_text(Path("users.csv").read_text() + "n2,4,0.5\n")
    answer = answer_of("publish", publish_through(run, 5, "--json")[1])
    assert (answer.first, answer.last, answer.requirements.joining) == (6, 5, 1)


@pytest.mark.parametrize("out", ["-", None])
def test_a_report_and_releases_do_not_share_standard_output(run: Run, out: str | None) -> None:
    clock = ("--slot", "60s", "--start", "2026-01-01T00:00:00Z", "--end", "2026-01-01T00:05:00Z")
    more = () if out is None else ("--out", out)
    code, printed, err = run(
        *("publish", "events.csv", *clock, "--requirements", "users.csv", "--cells", "4"),
        *("--journal", "run.journal", "--json", *more),
    )
    assert (code, printed) == (2, "")
    assert "--json and the releases would both go to standard output" in err
    assert not Path("run.journal").exists()


def test_changes_backups_and_restores(run: Run) -> None:
    publish_through(run, 10, "-q")
    change = "users add|set|remove|erase|import"
    asked = ("--window", "4", "--epsilon", "0.5", "--json")
    assert answer_of(change, run("users", "run.journal", "add", "new", *asked)[1]).in_force_from == 11
    assert answer_of(change, run("users", "run.journal", "set", "1", *asked)[1]).earlier_until == 18
    for command, user in (("remove", "2"), ("erase", "3")):
        assert answer_of(change, run("users", "run.journal", command, user, "--json")[1]).earlier_until is None
    Path("more.csv").write_text(Path("users.csv").read_text() + "n3,4,0.5\n")
    code, out, err = run("users", "run.journal", "import", "more.csv", "--json")
    assert (code, err) == (0, "")
    difference = answer_of(change, out).difference
    assert (difference.joining, difference.changing, difference.leaving) == (3, 1, 1)
    assert answer_of("backup", run("backup", "run.journal", "b.journal", "--json")[1]).through_slot == 10
    publish_through(run, 12, "-q")
    Path("run.journal").unlink()
    Path("run.journal.witness").unlink()  # with it, the last state of the registry would be known
    stated = ("--released-through", "12", "--same-settings")
    restored = answer_of("restore", run("restore", "b.journal", "run.journal", *stated, "--json")[1])
    assert (restored.backup_through, restored.released_through) == (10, 12)
    assert (restored.in_doubt_through, restored.silent_through, restored.changes_lost) == (19, None, True)
    assert "--accept-lost-changes" in restored.next


def test_tokens_and_links(run: Run) -> None:
    made = answer_of("token create", run("token", "run.journal", "create", "--role", "read", "--json")[1])
    assert (made.roles, made.expires, made.file) == (["read"], None, "run.journal.tokens")
    assert answer_of("token revoke", run("token", "run.journal", "revoke", made.id, "--json")[1]).state == "revoked"
    code, out, err = run("token", "run.journal", "list", "--json")
    assert (code, err) == (0, "")
    assert [one.id for one in answer_of("token list", out).tokens] == [made.id]
    link = answer_of("token link", run("token", "run.journal", "link", "4711", "--json")[1])
    assert link.url.startswith("http://127.0.0.1:8080/choose#wel_")


def test_a_picture_of_releases(run: Run) -> None:
    publish_through(run, 5, "-q")
    code, out, err = run("plot", "run.journal", "--html", "run.html", "--json")
    assert (code, err) == (0, "")
    answer = answer_of("plot", out)
    assert (answer.source, answer.picture, answer.page) == ("run.journal", None, "run.html")
    assert Path("run.html").exists()


def test_init_and_demo(run: Run) -> None:
    answer = answer_of("init", run("init", "city", "--json")[1])
    assert answer.next == f"wevent publish --config {answer.written[0]}"
    assert all(Path(name).exists() for name in answer.written)
    code, out, err = run("demo", "--users", "100", "--slots", "10", "--plot", "d.png", "--json")
    assert (code, err) == (0, "")
    answer = answer_of("demo", out)
    assert (answer.users, answer.slots, answer.plot) == (100, 10, "d.png")


def test_every_command_with_json_has_a_schema() -> None:
    assert {name.split()[0] for name in ANSWERS} == set(_with_json(cli, click.Context(cli)))


def _with_json(group: click.Group, context: click.Context) -> set[str]:
    found = set()
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        inner = isinstance(command, click.Group) and _with_json(command, context)
        if inner or any("--json" in parameter.opts for parameter in command.params):
            found.add(name)
    return found


def test_json_is_plain_and_knows_no_nan() -> None:
    printed = as_json(MechanismsAnswer(mechanisms={"own": "ε, 日本"}, baselines={}))
    assert printed.isascii()
    assert json.loads(printed) == {"mechanisms": {"own": "ε, 日本"}, "baselines": {}}
