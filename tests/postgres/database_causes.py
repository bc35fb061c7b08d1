"""What goes wrong with a journal in a database, for the page of failures: each cause, and the command that meets it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.postgres.journal_parts import asked
from tests.support.commands import CLOCK, PEOPLE, Done, call, publish
from tests.support.postgres_server import own_schema, shared_url
from wevent.journal import PostgresAddress, parse_address
from wevent.journal.lease import Lease
from wevent.journal.witness import WitnessFile

END = ("--end", "2026-01-01T00:25:00Z")
ADDRESS = "ADDRESS"
PUBLISH = ("publish", "events.csv", *CLOCK, *END, *PEOPLE, "--journal", ADDRESS, "--out", "out.ndjson")
NOBODY = "postgresql://127.0.0.1:1/city?witness=side"


class DatabaseCause(NamedTuple):
    """What goes wrong, the command that meets it (ADDRESS: of the journal), what brings it about, and what else it says.

    Attributes:
        bring: given the place of a journal of 20 slots and the folder of the command.
        more: what is added to the address.
    """

    what: str
    command: tuple[str, ...]
    bring: Callable[[PostgresAddress, Path], object]
    more: str = ""
    code: int = 2


def nothing(place: PostgresAddress, folder: Path) -> None:
    """The command itself is the cause."""


def execute(*statements: str) -> Callable[[PostgresAddress, Path], None]:
    def bring(place: PostgresAddress, folder: Path) -> None:
        with asked(place) as database:
            for statement in statements:
                database.execute(statement.replace("SCHEMA_NAME", place.schema))

    return bring


def empty_side(place: PostgresAddress, folder: Path) -> None:
    for file in (folder / "side").iterdir():
        file.unlink()


def open_side(place: PostgresAddress, folder: Path) -> None:
    (folder / "side").chmod(0o755)


def newer_witness(place: PostgresAddress, folder: Path) -> None:
    """As if the database had been put back."""
    (path,) = (folder / "side").iterdir()
    witness = WitnessFile(path, os.open(path, os.O_RDWR))
    witness.update(committed=25)
    witness.close()


DATABASE_CAUSES = [
    DatabaseCause(
        "no database answers",
        ("publish", *(NOBODY if one == ADDRESS else one for one in PUBLISH[1:])),
        nothing,
        code=75,
    ),
    DatabaseCause("the address of a database names no witness folder", PUBLISH, nothing, "&witness="),
    DatabaseCause("the witness folder of a database is missing", PUBLISH, nothing, "&witness=nowhere"),
    DatabaseCause("others can read the witness folder of a database", PUBLISH, open_side),
    DatabaseCause("the database may forget commits", PUBLISH, nothing, "&options=-csynchronous_commit%3Doff"),
    DatabaseCause("the database was put back, or lags behind", PUBLISH, newer_witness),
    DatabaseCause("the database is without its witness", PUBLISH, empty_side),
    DatabaseCause("the schema of the journal is gone", PUBLISH, execute("DROP SCHEMA SCHEMA_NAME CASCADE")),
    DatabaseCause("a table of the journal is gone", PUBLISH, execute("DROP TABLE restores")),
    DatabaseCause(
        "the schema holds other tables",
        PUBLISH,
        execute("CREATE SCHEMA IF NOT EXISTS not_ours", "CREATE TABLE IF NOT EXISTS not_ours.slots (whatever text)"),
        "&schema=not_ours",
    ),
    DatabaseCause(
        "a slot in the database was changed",
        ("releases", ADDRESS),
        execute("UPDATE slots SET payload = (SELECT payload FROM slots WHERE slot = 6) WHERE slot = 7"),
    ),
    DatabaseCause("a schema without a journal", ("status", ADDRESS), nothing, "&schema=nothing_here"),
    DatabaseCause("backup: a journal in a database", ("backup", ADDRESS, "copy.journal"), nothing),
    DatabaseCause(
        "verify: a slot in the database was changed",
        ("verify", ADDRESS),
        execute("UPDATE slots SET payload = (SELECT payload FROM slots WHERE slot = 6) WHERE slot = 7"),
        code=1,
    ),
    DatabaseCause(
        "verify: the database was put back, or its end is missing", ("verify", ADDRESS), newer_witness, code=1
    ),
]

HELD_DATABASE = DatabaseCause("somebody publishes into the journal in the database", PUBLISH, nothing)


def provoke_in_database(cause: DatabaseCause, folder: Path) -> Done:
    """What a command says when something goes wrong.

    Args:
        cause: what goes wrong.
        folder: with events.csv and users.csv.
    """
    (folder / "side").mkdir(mode=0o700)
    address = f"{shared_url()}?schema={own_schema()}&witness=side&lease=60"
    assert publish(folder, 20, journal=address, out="first.ndjson").code == 0
    place = parse_address(address, folder)
    assert isinstance(place, PostgresAddress)
    cause.bring(place, folder)
    lead = Lease(place) if cause is HELD_DATABASE else None
    try:
        return call(folder, *(address + cause.more if one == ADDRESS else one for one in cause.command))
    finally:
        if lead is not None:
            lead.close()


def without_address(text: str) -> str:
    """What was said, without what differs from server to server."""
    text = re.sub(r"postgresql://wevent@127\.0\.0\.1:\d+/postgres\?[^ );,]*", "postgresql://HOST/DATABASE?…", text)
    return re.sub(r"\bt_[0-9a-f]{16}\b", "SCHEMA", text)
