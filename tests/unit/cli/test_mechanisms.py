"""`wevent mechanisms`, the real command."""

import json

import pytest

from wevent import mechanisms
from wevent.cli import main
from wevent.publisher.catalogue import SIMULATED_ONLY


def run(*arguments):
    with pytest.raises(SystemExit) as ended:
        main(["mechanisms", *arguments])
    return int(ended.value.code or 0)


def test_every_mechanism_has_a_line(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert run() == 0
    above, below = capsys.readouterr().out.split("\n\n")
    heading, *peers = below.splitlines()
    assert "never published with" in heading
    for lines, known in ((above.splitlines(), mechanisms()), (peers, SIMULATED_ONLY)):
        assert [line.split()[0] for line in lines] == list(known)
        for line, summary in zip(lines, known.values(), strict=True):
            assert line.endswith(summary)


def test_json_is_an_object(capsys):
    assert run("--json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "mechanisms": mechanisms(),
        "baselines": dict(SIMULATED_ONLY),
    }
