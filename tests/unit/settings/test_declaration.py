"""The declaration of settings: every key has a help text, and options of a run are checked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import wevent
from wevent.core.options import kinds
from wevent.errors import InvalidSettings
from wevent.settings import RestoreOptions, RunOptions, ServiceSettings, Settings


@pytest.mark.parametrize("holder", [Settings, ServiceSettings, RunOptions])
def test_every_key_has_a_help_text(holder: type[Any]) -> None:
    assert [key for key, kind in kinds(holder).items() if not kind.help.endswith(".")] == []


def test_the_key_of_a_setting_may_differ_from_its_field() -> None:
    declared = kinds(Settings)
    assert (declared["slot"].field, declared["grace"].shown) == ("slot_us", "0s")
    assert "slot_us" not in declared


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("keep", 0),
        ("keep", "5"),
        ("released_through", -1),
        ("reconfigure", 1),
        ("declare", "40,0.5"),
        ("declare", (1,)),
    ],
)
def test_an_option_of_a_run_is_checked(option: str, value: Any) -> None:
    with pytest.raises(InvalidSettings, match=option) as caught:
        RunOptions(**{option: value})
    assert caught.value.key == option


def test_the_import_is_light() -> None:
    code = "import sys, wevent.settings; print(*{'duckdb', 'psycopg', 'click', 'wevent.journal'} & {*sys.modules})"
    environment = {"PYTHONPATH": str(Path(wevent.__file__).parents[1]), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


@pytest.mark.parametrize(
    "stated", [{"widest_window": 0}, {"widest_window": 10**8}, {"same_settings": True, "widest_window": 5}]
)
def test_statements_about_a_restore_that_cannot_be_true_are_refused(stated: dict[str, Any]) -> None:
    for options in (RestoreOptions, RunOptions):
        with pytest.raises(InvalidSettings) as caught:
            options(**stated)
        assert caught.value.key in stated
