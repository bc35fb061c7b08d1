"""What a page presumes: files that are there before its first command."""

from __future__ import annotations

import random
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

from tests.docs.blocks import read_blocks
from tests.support.commands import run
from tests.support.journals import copy_schema
from tests.support.postgres_server import own_schema, shared_url
from wevent.journal import PostgresAddress, parse_address

_TUTORIAL = Path(__file__).parents[2] / "docs/tutorial/compare-and-plan.md"


def _minutes(folder: Path) -> None:
    """A day of minutes: users.csv, and events in Parquet files."""
    import duckdb

    (folder / "events").mkdir()
    users = [f"{user},{(20, 40)[user % 2]},{('0.5', '1.0')[user % 3 == 0]}" for user in range(200)]
    (folder / "users.csv").write_text("\n".join(["user,window,epsilon", *users]) + "\n")
    duckdb.connect().execute(
        "COPY (SELECT TIMESTAMPTZ '2026-01-01T00:00:00Z' + to_seconds(i * 7) AS time, (i * 37) % 200 AS \"user\","
        " (i * 11) % 100 AS cell FROM range(12342) AS moments(i))"
        f" TO '{folder / 'events' / 'day.parquet'}' (FORMAT parquet)"
    )


def _visits(folder: Path) -> None:
    """The invented campus of the tutorial."""
    block = next(block for block in read_blocks(_TUTORIAL) if block.marks.get("file") == "make_visits.py")
    subprocess.run([sys.executable, "-c", block.text], cwd=folder, check=True)


def _half_a_day(folder: Path) -> None:
    """The example of `wevent init`, published until noon; and a folder for backups."""
    _must(folder, "init", ".")
    _must(folder, "publish", "--config", "wevent.toml", "--end", "2026-01-01T12:00:00Z")
    (folder / "backups").mkdir()


def _lost_journal(folder: Path) -> None:
    """The rest of that day was published, then the journal was lost; its witness file was not."""
    _must(folder, "publish", "--config", "wevent.toml")
    for file in folder.glob("run.journal*"):
        if file.suffix != ".witness":
            file.unlink()


def _lost_witness_file(folder: Path) -> None:
    """Journal and witness file are lost."""
    for file in folder.glob("run.journal*"):
        file.unlink()


def _must(folder: Path, *arguments: str) -> None:
    done = run(folder, *arguments)
    assert done.code == 0, done


def _odd_columns(folder: Path) -> None:
    """Rides of a week with columns of their own names, and nothing else."""
    random.seed(7)
    lines = ["started_at;rider;zone"]
    for minute in range(0, 7 * 24 * 60, 2):
        day, rest = divmod(minute, 24 * 60)
        for _ in range(random.randrange(4)):
            stamp = f"2026-03-{2 + day:02d} {rest // 60:02d}:{rest % 60:02d}:{random.randrange(60):02d}"
            lines.append(f"{stamp};rider-{random.randrange(500):04d};{random.choice(('Centre', 'Harbour', 'Airport'))}")
    (folder / "rides.csv").write_text("\n".join(lines) + "\n")


def _service(folder: Path) -> None:
    """A service with two levels and short slots, that everybody may read, and a token for everything else."""
    (folder / "wevent.toml").write_text(
        'slot = "1s"\ngrace = "4s"\ncells = ["Harbour", "Old Town", "Station"]\njournal = "run.journal"\nout = "out.ndjson"\n'
        "[levels.privacy]\nHigh = 0.1\nLow = 0.9\n[levels.window]\nSmall = 10\nLarge = 60\n"
        f'[service]\nlisten = "{PLACE}"\npublic = true\n'
    )
    done = run(folder, "token", "run.journal", "create", "--role", "admin")
    assert done.code == 0, done
    (folder / "service.token").write_text(done.out)


def _city(folder: Path) -> None:
    """Nothing: `make serve` makes its own folder."""


def _database(folder: Path) -> None:
    """The example of `wevent init`, with its journal in a schema of a real database."""
    _must(folder, "init", ".")
    (folder / "side").mkdir(mode=0o700)
    settings = folder / "wevent.toml"
    address = f"{shared_url()}?schema={own_schema()}&witness=side"
    settings.write_text(settings.read_text().replace('journal = "run.journal"', f'journal = "{address}"'))


def _database_put_back(folder: Path) -> None:
    """Its journal went on to slot 200, then the database was put back to where it was."""
    place = parse_address(tomllib.loads((folder / "wevent.toml").read_text())["journal"], folder)
    assert isinstance(place, PostgresAddress)
    backup = f"{place.schema}_backup"
    copy_schema(place, place.schema, backup)
    for end in ("15:00", "16:40"):  # two draws: a database that lacks the last one takes it from the witness
        _must(folder, "publish", "--config", "wevent.toml", "--end", f"2026-01-01T{end}:00Z")
    copy_schema(place, backup, place.schema)


PLACE = "127.0.0.1:8080"
"""Where services of pages listen, as pages show it; what runs has a port of its own."""

BACKGROUND = {
    "service": ("wevent serve --config wevent.toml", "Serving"),
    "city": (
        f"place={PLACE}; exec python {Path(__file__).parents[2]}/examples/live_city.py --port ${{place#*:}} --users 4000",
        "the page",
    ),
}
"""What goes on running after a setup: the command, and what it says when it is ready."""

SETUPS: dict[str, Callable[[Path], None]] = {
    "minutes": _minutes,
    "visits": _visits,
    "half a day": _half_a_day,
    "lost journal": _lost_journal,
    "lost witness file": _lost_witness_file,
    "database": _database,
    "database put back": _database_put_back,
    "odd columns": _odd_columns,
    "service": _service,
    "city": _city,
}
