"""`wevent reproduce`: results, pictures, claims, and continuing after a kill."""

import csv
import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from wevent.cli import main
from wevent.cli.answers import ReproduceAnswer
from wevent.cli.group import cli
from wevent.experiments.reproduce import results

pytestmark = pytest.mark.slow

TINY = ["reproduce", "--slots", "30", "--repeats", "2", "--users", "100", "--streams", "sin,taxi"]


def run(folder, *arguments):
    words = [*TINY, "--out", str(folder), "--data", str(folder / "nothing"), *arguments]
    result = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def errors(folder):
    """Everything but times, which no seed fixes."""
    with (folder / "results.csv").open() as file:
        return [{**row, "ms_per_slot": None} for row in csv.DictReader(file)]


def test_results_pictures_and_claims(tmp_path):
    options = ["--mechanisms", "bd,ba,pba", "--figures", "amre-epsilon,time-epsilon"]
    printed = run(tmp_path, *options, "--json").stdout
    rows = errors(tmp_path)
    assert len(rows) == 30  # five epsilons, three mechanisms, two repeats
    assert {row["stream"] for row in rows} == {"sin"}
    for name in ("amre-epsilon.png", "time-epsilon.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    answer = msgspec.json.decode(printed, type=ReproduceAnswer)
    assert "taxi" in answer.absent
    assert any(claim.measured.startswith("2 of 2: sin, bd: ") or "sin, bd" in claim.measured for claim in answer.claims)
    report = Path(answer.report).read_text(encoding="utf-8")
    assert "Absent: **taxi**" in report
    assert "(amre-epsilon.png)" in report
    assert json.loads((tmp_path / "settings.json").read_text()).keys() >= {"seed", "repeats", "slots", "version"}
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    (tmp_path / "amre-epsilon.png").unlink()
    run(tmp_path, *options[2:], "--redraw")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_killed_run_resumes_and_processes_change_nothing(tmp_path, monkeypatch):
    options = ["--mechanisms", "bd,sample", "--figures", "amre-ratio-window"]
    run(tmp_path / "whole", *options, "--jobs", "2")

    class Killed(BaseException):
        pass

    finished, real = [], results.compare

    def compare_until_killed(*arguments, **named):
        if len(finished) == 2:
            raise Killed
        finished.append(named["assigner"])
        return real(*arguments, **named)

    with monkeypatch.context() as context:
        context.setattr(results, "compare", compare_until_killed)
        with pytest.raises(Killed):
            run(tmp_path / "killed", *options)
    assert len(errors(tmp_path / "killed")) == 2 * 4
    again = []
    monkeypatch.setattr(
        results, "compare", lambda *given, **named: again.append(named["assigner"]) or real(*given, **named)
    )
    run(tmp_path / "killed", *options)
    assert len(again) == 3
    assert not set(map(repr, again)) & set(map(repr, finished))
    assert errors(tmp_path / "killed") == errors(tmp_path / "whole")


def refusal(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main([*TINY, *arguments])
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_mistakes_are_named(tmp_path, capsys):
    options = ["--out", str(tmp_path), "--mechanisms", "sample", "--figures", "amre-ratio-window"]
    run(tmp_path, *options)
    assert "begun with another seed" in refusal(capsys, *options, "--seed", "2")
    assert "Choose from amre-epsilon" in refusal(capsys, "--figures", "amre")
    assert "Choose from taxi" in refusal(capsys, "--streams", "cosine")
    nothing = str(tmp_path / "no")
    assert "None of the streams" in refusal(capsys, "--streams", "taxi", "--data", nothing, "--out", nothing)
    assert "has no reproduction" in refusal(capsys, "--out", nothing, "--redraw")
