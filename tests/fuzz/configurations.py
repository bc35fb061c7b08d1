"""Configuration files: one sentence without the database's password, or settings that hold together, read alike again."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import psycopg
import pytest

from tests.fuzz.oracles import MARKER, empty_folder, taken
from wevent.publishing.configuration import load_settings
from wevent.settings import Settings

SEEDS = (
    b'inputs = ["events/*.parquet"]\ncells = 4\nslot = "5m"\nstart = 2026-01-01T00:00:00Z\nend = "2026-01-02T00:00:00Z"\n'
    b'journal = "run.journal"\nout = "out.ndjson"\nrequirements = "r.csv"\ngrace = "10s"\nrelease_delay = "20s"\n'
    b"unknown_users = 5\n",
    b'inputs = "-"\ncells = "a,b,c"\nslot = "60s"\nmechanism = "pba"\nuser_column = "rider"\n'
    b'strict = true\nengine = "spark"\n'
    b'[levels.privacy]\nStrong = 0.1\nWeak = 1\n[levels.window]\nDay = 288\n[levels.combined]\nBoth = ["Strong", "Day"]\n',
    b'inputs = ["e.csv"]\ncells = ["x", "y"]\nslot_column = "slot"\nend = 40\nmechanism = "pft"\n'
    b"seasonality = [24, 168]\nperiod = 3\n",
    b'inputs = "-"\ncells = 9\nslot = "1h"\nstart = "auto"\njournal = "postgresql://u:Zq7Marker@127.0.0.1/db?schema=s"\n',
    b'inputs = "-"\ncells = 2\nslot = "1h"\ntimezone = "+02:00"\ntime_unit = "ms"\nclose_slots_by = "lines"\n'
    b'neighbours = "replace"\n'
    b'[service]\nlisten = "127.0.0.1:8080"\nurl = "https://stats.example"\nmax_batch_bytes = 5000\npublic = true\n'
    b'[requirements_columns]\nuser = "id"\n',
)
WORDS = (
    *(
        b"inputs =",
        b"cells =",
        b"slot =",
        b"[service]\n",
        b"[levels.window]\n",
        b"journal =",
        b'"""',
        b"'''",
        b"nan",
        b"inf",
    ),
    *(
        b"1979-05-27",
        b"2026-01-01T00:00:00",
        b"0x7f",
        b"postgresql://",
        b"epsilon",
        b"known_total = ",
        b"max_cells_per_user = ",
    ),
    *(
        b"special_days =",
        b"smoothing =",
        b"estimator =",
        b"refund = true",
        b"end =",
        b"release_delay =",
        b"9" * 30,
        b"{a = 1}",
    ),
)
_SECRET = re.compile(rb'^journal = "postgresql://[^/@"\\]*:' + MARKER.encode() + rb'@[^"\\]*"\r?$', re.MULTILINE)


def _nobody(host: str | bytes | None, *_: Any, **__: Any) -> NoReturn:
    """Look up a name as far as that can be done without asking anybody."""
    (host or "").encode("idna") if isinstance(host, str) else None
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


def _no_server(*_: Any, **__: Any) -> NoReturn:
    raise psycopg.OperationalError("connection refused")


@contextmanager
def _offline() -> Iterator[None]:
    """An address in an input is read and looked up, and nobody is called."""
    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(socket, "getaddrinfo", _nobody)
        patching.setattr(psycopg.Connection, "_connect_gen", _no_server)
        yield


def check(data: bytes) -> None:
    config = empty_folder() / "wevent.toml"
    config.write_bytes(data)
    is_secret = data.count(MARKER.encode()) == 1 and _SECRET.search(data) and b"'''" not in data and b'"""' not in data
    private = (MARKER,) if is_secret else ()
    with _offline():
        settings = taken(lambda: load_settings(config, {}), *private)
        if settings is None:
            return
        _check_settings(settings)
        assert load_settings(config, {}) == settings, "read otherwise again"
        for text in private:
            assert text not in repr(settings), "the password shows in settings"


def _check_settings(settings: Settings) -> None:
    assert settings.slot_us > 0
    assert settings.grace_us >= 0
    assert settings.release_delay_us is None or settings.release_delay_us >= settings.grace_us
    assert settings.unknown_users >= 0
    assert len(settings.cells) >= 1
    assert settings.max_cells_per_user >= 1
    if settings.start_us is not None and settings.end_us is not None:
        assert settings.end_us - settings.start_us >= settings.slot_us, "a stream without a slot"
    assert all(name for name in settings.inputs), "an input without a name"
