"""Pictures without matplotlib, or without a place: a sentence, not a traceback."""

import sys
from pathlib import Path

import pytest

from tests.support import commands
from wevent import experiments, plotting
from wevent.cli import main


class _Nowhere:
    """Finds no matplotlib, as in an installation without it."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "matplotlib":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.fixture
def hidden_matplotlib(monkeypatch):
    mine = ("wevent.plotting.canvas", "wevent.plotting.annotations", "wevent.experiments.figures")
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib" or name in mine]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(experiments, "figures", raising=False)
    for name in ("canvas", "annotations"):
        monkeypatch.delattr(plotting, name, raising=False)
    monkeypatch.setattr(sys, "meta_path", [_Nowhere(), *sys.meta_path])


@pytest.mark.parametrize(
    "command",
    [
        ["compare", "--users", "50", "--slots", "10", "--windows", "4", "--repeats", "1", "--mechanisms", "sample"],
        ["plan", "--class", "4:1=50", "--slots", "10", "--repeats", "1", "--mechanisms", "sample"],
    ],
    ids=["compare", "plan"],
)
def test_the_figures_are_there_and_the_plot_is_not(command, tmp_path, capsys, hidden_matplotlib):
    plot = tmp_path / "plot.png"
    with pytest.raises(SystemExit) as ended:
        main([*command, "--plot", str(plot)])
    printed = capsys.readouterr()
    assert ended.value.code == 0
    assert "sample" in printed.out
    assert "No plot: it needs matplotlib (pip install 'wevent[experiments]')" in printed.err
    assert not plot.exists()


def test_a_reproduction_does_not_begin(tmp_path, capsys, hidden_matplotlib):
    with pytest.raises(SystemExit) as ended:
        main(["reproduce", "--quick", "--streams", "sin", "--out", str(tmp_path / "out")])
    assert ended.value.code == 2
    assert "matplotlib is not installed." in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("compare", "--plot", "file/x.png"),
        ("compare", "--per-slot", "file/more/x.csv"),
        ("plan", "--plot", "file/x.svg"),
        ("demo", "--plot", "file/x.png"),
        ("plot", "run.journal", "--html", "file/x.html"),
        ("audit", "uniform", "--plot", "file/x.png"),
    ],
    ids=lambda arguments: " ".join(arguments),
)
def test_a_file_is_no_folder(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "file").touch()
    done = commands.call(tmp_path, *arguments)
    assert done.code == 2, done
    assert "'file' is not a writable folder. Choose another path." in done.err
    assert "Traceback" not in done.err
