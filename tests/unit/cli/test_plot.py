"""`wevent plot`, the real command on real journals and files."""

import pytest
from click.testing import CliRunner

from tests.unit.cli.test_pictures import hidden_matplotlib  # noqa: F401  a fixture
from wevent.cli import main
from wevent.cli.group import cli

pytestmark = pytest.mark.slow


def run(*arguments):
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A journal of 40 slots and its releases in every format."""
    folder = tmp_path_factory.mktemp("published")
    rows = [f"{slot},u{user},{'abc'[(slot + user) % 3]}\n" for slot in range(1, 41) for user in range(60)]
    (folder / "events.csv").write_text("slot,user,cell\n" + "".join(rows))
    (folder / "users.csv").write_text("user,window,epsilon\n" + "".join(f"u{user},5,1.0\n" for user in range(60)))
    (folder / "cells.txt").write_text("a\nb\nc\n")
    run(
        *("publish", folder / "events.csv", "--slot-column", "slot", "--end", "40", "--cells", folder / "cells.txt"),
        *("--requirements", folder / "users.csv", "--journal", folder / "run.journal", "--out", folder / "run.ndjson"),
    )
    for ending in ("csv", "parquet"):
        run("releases", folder / "run.journal", "--out", folder / f"run.{ending}")
    return folder


@pytest.mark.parametrize("source", ["run.journal", "run.ndjson", "run.csv", "run.parquet"])
def test_a_picture_and_a_page_of_a_journal_or_a_file(published, source, tmp_path):
    picture, page = tmp_path / "new" / "a.svg", tmp_path / "new" / "a.html"
    result = run(
        "plot", published / source, "--cells", "c,a", "--from", "11", "--to", "20", "--out", picture, "--html", page
    )
    assert "Picture: " in result.stderr
    assert f"{source}: slots 11 to 20, 2 cells" in picture.read_text()
    text = page.read_text()
    assert "c, slot 11: " in text
    assert "c, slot 20: " in text
    assert "slot 21: " not in text
    assert "b, slot" not in text


def test_formats_give_the_same_page(published, tmp_path):
    pages = set()
    for source in ("run.journal", "run.ndjson", "run.csv", "run.parquet"):
        run("plot", published / source, "--html", tmp_path / "a.html")
        pages.add((tmp_path / "a.html").read_text().replace(source, "SOURCE"))
    assert len(pages) == 1


def test_without_a_name_the_picture_is_named_after_the_source(published, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("plot", published / "run.journal")
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")


def test_the_journal_of_a_configuration_is_drawn(published, tmp_path, monkeypatch, capsys):
    (tmp_path / "wevent.toml").write_text(f'journal = "{published / "run.journal"}"\n')
    run("plot", "--config", tmp_path / "wevent.toml", "--html", tmp_path / "a.html")
    monkeypatch.chdir(tmp_path)
    assert "Settings: wevent.toml" in run("plot", "--html", "b.html").stderr
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    (tmp_path / "wevent.toml").unlink()
    with pytest.raises(SystemExit) as ended:
        main(["plot", "--html", "c.html"])
    assert ended.value.code == 2
    assert "No journal given. Pass JOURNAL" in capsys.readouterr().err


def test_many_cells_are_a_heatmap_unless_some_are_chosen(tmp_path):
    lines = ["slot,start,end,cell,value,low,high,std_error,outcome,measured,mechanism\n"]
    lines += [f"{slot},,,c{cell},{cell},,,,fresh,{slot},pft\n" for slot in (1, 2) for cell in range(9)]
    (tmp_path / "many.csv").write_text("".join(lines))
    run("plot", tmp_path / "many.csv", "--html", tmp_path / "all.html", "--out", tmp_path / "all.svg")
    assert '"type":"heatmap"' in (tmp_path / "all.html").read_text()
    assert "Published: 9 cells" in (tmp_path / "all.svg").read_text()
    run("plot", tmp_path / "many.csv", "--cells", "c0,c8", "--html", tmp_path / "two.html")
    two = (tmp_path / "two.html").read_text()
    assert "c0, slot 1: " in two
    assert "c8, slot 1: " in two
    assert "c1, slot" not in two


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run.journal", "--cells", "d"], "It has a, b, c"),
        (["run.journal", "--from", "41"], "has slots 1 to 40"),
        (["run.journal", "--from", "2026-01-01"], "have no times"),
        (["events.csv"], "a file of releases that wevent wrote"),
        (["nothing.csv"], "nothing.csv cannot be read"),
        (["run.journal", "--out", "a.txt"], "not a picture. Use a name ending in .png"),
        (["run.journal", "--html", "a.png"], "not a page. Use a name ending in .html"),
    ],
)
def test_mistakes_are_one_sentence_and_leave_nothing(published, arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["plot", str(published / arguments[0]), *arguments[1:]])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_what_is_drawn_is_not_overwritten(published, tmp_path, capsys):
    source = tmp_path / "run.html"
    source.write_bytes((published / "run.csv").read_bytes())
    with pytest.raises(SystemExit) as ended:
        main(["plot", str(source), "--html", str(source)])
    assert ended.value.code == 2
    assert source.read_bytes() == (published / "run.csv").read_bytes()


def test_a_page_needs_no_matplotlib_and_a_picture_says_so(published, tmp_path, capsys, hidden_matplotlib):  # noqa: F811
    with pytest.raises(SystemExit) as ended:
        main(["plot", str(published / "run.journal"), "--html", str(tmp_path / "a.html")])
    assert ended.value.code == 0
    with pytest.raises(SystemExit) as ended:
        main(["plot", str(published / "run.journal"), "--out", str(tmp_path / "a.png")])
    assert ended.value.code == 2
    assert "pip install 'wevent[experiments]'" in capsys.readouterr().err
    assert not (tmp_path / "a.png").exists()
