"""`wevent reproduce`: figures, a page, and going on after a kill."""

import csv
import json
import shutil
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from wevent.cli import main
from wevent.cli.answers import ReproduceAnswer
from wevent.cli.group import cli
from wevent.experiments.reproduce import runner

pytestmark = pytest.mark.slow

TINY = ["reproduce", "--slots", "30", "--repeats", "2", "--users", "100", "--streams", "sin,taxi"]


def run(folder, *arguments):
    words = [*TINY, "--out", str(folder), "--data", str(folder / "nothing"), *arguments]
    result = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def test_figures_claims_and_one_page_that_needs_no_network(tmp_path):
    result = run(tmp_path, "--mechanisms", "bd,ba,pba", "--figures", "amre-epsilon,time-window")
    assert "Absent" in result.stderr
    with (tmp_path / "amre-epsilon.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 15  # five epsilons, three mechanisms
    assert {row["stream"] for row in rows} == {"sin"}
    assert {"amre", "low", "high", "ln_amre", "repeats", "seed", "version", "commit"} <= rows[0].keys()
    assert (tmp_path / "time-window.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,") == 2
    assert "http-equiv" not in page
    assert "<script" not in page
    assert "<link" not in page
    assert "taxi" in page
    assert page.index("Absent streams") < page.index("<h2>Claims")
    settings = json.loads((tmp_path / "settings.json").read_text())
    assert {"seed", "repeats", "slots", "version", "commit"} <= settings.keys()


def test_a_killed_run_resumes_and_gives_the_same_figures(tmp_path, monkeypatch):
    options = ["--mechanisms", "bd,pba,uniform", "--figures", "amre-window"]
    run(tmp_path / "whole", *options)

    class Killed(BaseException):
        pass

    finished = []
    real = runner.run_task

    def until_killed(task):
        if len(finished) == 2:
            raise Killed
        finished.append(task.name)
        return real(task)

    with monkeypatch.context() as context:
        context.setattr(runner, "run_task", until_killed)
        with pytest.raises(Killed):
            run(tmp_path / "killed", *options)
    assert len(list((tmp_path / "killed" / "runs").glob("*.json"))) == 2
    again = []
    monkeypatch.setattr(runner, "run_task", lambda task: again.append(task.name) or real(task))
    run(tmp_path / "killed", *options)
    assert len(again) == 1
    assert again[0] not in finished
    for name in ("amre-window.csv", "claims.csv"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_two_processes_give_what_one_gives(tmp_path):
    options = ["--mechanisms", "ba,sample", "--figures", "amre-ratio-window"]
    run(tmp_path / "one", *options)
    run(tmp_path / "two", *options, "--jobs", "2")
    name = "amre-ratio-window.csv"
    assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_pictures_are_drawn_again_from_the_tables_alone(tmp_path, capsys):
    run(tmp_path, "--mechanisms", "bd,pft", "--figures", "amre-window")
    before = {name: (tmp_path / name).read_bytes() for name in ("amre-window.png", "README.md", "report.html")}
    shutil.rmtree(tmp_path / "runs")
    for name in ("amre-window.png", "report.html"):
        (tmp_path / name).unlink()
    run(tmp_path, "--redraw")
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    with pytest.raises(SystemExit) as ended:
        main([*TINY, "--out", str(tmp_path / "nowhere"), "--redraw"])
    assert ended.value.code == 2
    assert "a finished reproduction" in capsys.readouterr().err


def test_other_settings_do_not_mix_with_old_results(tmp_path, capsys):
    options = ["--mechanisms", "sample", "--figures", "amre-window"]
    run(tmp_path, *options)
    with pytest.raises(SystemExit) as ended:
        main([*TINY, "--out", str(tmp_path), *options, "--seed", "2"])
    assert ended.value.code == 2
    assert "another seed" in capsys.readouterr().err


def test_mistakes_are_named(tmp_path, capsys):
    for arguments, message in (
        (["--figures", "amre"], "figures out of amre-epsilon"),
        (["--streams", "cosine"], "streams out of"),
        (["--streams", "taxi", "--data", str(tmp_path / "no")], "at least one stream that is there"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["reproduce", "--quick", "--out", str(tmp_path / "out"), *arguments])
        assert ended.value.code == 2
        assert message in capsys.readouterr().err


def test_claims_for_programs(tmp_path):
    printed = run(tmp_path, "--mechanisms", "bd,pbd", "--figures", "amre-epsilon", "--json").stdout
    answer = msgspec.json.decode(printed, type=ReproduceAnswer)
    assert Path(answer.report).exists()
    rows = json.loads(printed)["claims"]
    assert list(rows[0]) == ["claim", "paper", "baseline", "measured", "verdict"]
