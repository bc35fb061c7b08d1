"""`wevent mechanisms`, the real command."""

import json

import pytest

from wevent import mechanisms
from wevent.cli import main


def run(*arguments):
    with pytest.raises(SystemExit) as ended:
        main(["mechanisms", *arguments])
    return int(ended.value.code or 0)


def test_every_mechanism_has_a_line(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert run() == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(mechanisms())
    for line, summary in zip(lines, mechanisms().values(), strict=True):
        assert line.endswith(summary)


def test_json_is_an_object(capsys):
    assert run("--json") == 0
    assert json.loads(capsys.readouterr().out) == {"mechanisms": mechanisms()}
