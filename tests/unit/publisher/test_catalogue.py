"""The catalogue: built-in, registered and installed mechanisms under one roof."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import wevent
from wevent import InvalidOption, UnknownMechanism
from wevent.core.builtin_mechanisms import BUILT_IN
from wevent.publisher import catalogue

NINE = ["pbd", "pba", "bd", "ba", "uniform", "pbu", "sample", "lbu", "plbu"]


def test_the_built_in_mechanisms() -> None:
    assert list(wevent.mechanisms()) == ["pft", *NINE]
    for name, line in wevent.mechanisms().items():
        assert line
        assert "\n" not in line
        assert BUILT_IN[name].name == name


@pytest.mark.parametrize(
    ("written", "nearest"),
    [("pdb", "pbd"), ("unifrom", "uniform"), ("UNIFORM", "uniform"), ("sampel", "sample"), ("plbuu", "plbu")],
)
def test_the_nearest_name_is_suggested(written: str, nearest: str) -> None:
    with pytest.raises(UnknownMechanism, match="Did you mean") as caught:
        catalogue.find_mechanism(written)
    assert caught.value.known == ("pft", *NINE)
    assert caught.value.name == written
    assert caught.value.suggestion == nearest


@pytest.mark.parametrize("written", ["", "zzz", "42", None])
def test_there_is_always_a_suggestion(written: str | None) -> None:
    with pytest.raises(UnknownMechanism) as caught:
        catalogue.find_mechanism(written)  # type: ignore[arg-type]
    assert caught.value.suggestion in ("pft", *NINE)


def test_a_registered_mechanism_is_found_and_suggested() -> None:
    own = replace(BUILT_IN["pbu"], name="mine", summary="my own")
    wevent.register(own)
    assert wevent.mechanisms()["mine"] == "my own"
    assert catalogue.find_mechanism("mine") is own
    with pytest.raises(UnknownMechanism) as caught:
        catalogue.find_mechanism("mime")
    assert caught.value.suggestion == "mine"
    newer = replace(own, summary="changed")
    wevent.register(newer)
    assert wevent.mechanisms()["mine"] == "changed"


def test_a_built_in_name_is_taken() -> None:
    with pytest.raises(InvalidOption, match="built in") as caught:
        wevent.register(replace(BUILT_IN["pbu"], name="pbd"))
    assert caught.value.value == "pbd"
    assert wevent.mechanisms()["pbd"] == BUILT_IN["pbd"].summary


def test_the_name_of_a_peer_is_taken_and_cannot_publish() -> None:
    with pytest.raises(InvalidOption, match="built in"):
        wevent.register(replace(BUILT_IN["pbu"], name="spas"))
    for written in catalogue.SIMULATED_ONLY:
        assert written not in wevent.mechanisms()
        with pytest.raises(UnknownMechanism, match="cannot publish"):
            catalogue.find_mechanism(written)


def test_an_installed_mechanism_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wevent_fake_plugin.py").write_text(
        "from dataclasses import replace\n"
        "from wevent.core.builtin_mechanisms import BUILT_IN\n"
        "row = replace(BUILT_IN['uniform'], name='installed', summary='from a package')\n"
    )
    info = tmp_path / "wevent_fake_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: wevent-fake-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[wevent.mechanisms]\ninstalled = wevent_fake_plugin:row\nspas = wevent_fake_plugin:row\n"
    )
    assert "installed" not in wevent.mechanisms()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert wevent.mechanisms()["installed"] == "from a package"
    assert catalogue.find_mechanism("installed").name == "installed"
    assert "spas" not in wevent.mechanisms()
