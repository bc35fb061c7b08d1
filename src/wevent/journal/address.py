"""Address of a journal: the path of a file, or of a schema in a PostgreSQL database."""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from wevent.errors import InvalidJournal

_SCHEMES = ("postgresql", "postgres")
_ADDRESS = re.compile(rf"(?:{'|'.join(_SCHEMES)}):/{{1,2}}", re.IGNORECASE)
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,47}")
_MISTAKEN = re.compile(r"\s*(?:postgres(?:ql)?\b[^/]*:|[a-z][a-z0-9+.-]*:/{1,2}[^/]*@|.*\bpassword\s*=)", re.IGNORECASE)
SECRETS = ("password", "sslpassword", "scram_client_key", "scram_server_key", "oauth_client_secret")
"""Parameters of libpq whose values are never shown."""

_HIDDEN = (*SECRETS, "passfile", "sslkey")
_LEASE_S = 10.0


class NoJournal(InvalidJournal):
    """There is nothing at the place of a journal in a database, not even a damaged one. Facts: `path`."""


@dataclass(frozen=True)
class PostgresAddress:
    """A journal in a PostgreSQL database; one journal is one schema.

    Attributes:
        conninfo: the address as libpq takes it; it may hold a password, so it is never shown.
        schema: the schema that holds the journal's tables.
        folder: a folder outside the database, for the witness and the keys; None: the journal can only be read.
        lease_s: how long a writer may be silent before another one takes its place.
    """

    conninfo: str = field(repr=False)
    schema: str = "wevent"
    folder: Path | None = None
    lease_s: float = _LEASE_S

    def __str__(self) -> str:
        """The address without secrets, for messages."""
        parts = urlsplit(self.conninfo)
        user, at, host = parts.netloc.rpartition("@")
        named = [(key, value) for key, value in parse_qsl(parts.query) if key.lower() not in _HIDDEN]
        query = urlencode([*named, ("schema", self.schema)])
        return urlunsplit((parts.scheme, f"{user.partition(':')[0]}{at}{host}", parts.path, query, ""))

    @property
    def name(self) -> str:
        """The schema: short, as the name of a path."""
        return self.schema

    @property
    def existing_folder(self) -> Path:
        """The folder outside the database; refuses an address that names none, or one that is not there."""
        if self.folder is None:
            problem = f"The address names no folder outside the database, for the witness and the keys ({self})."
            fix = "Add &witness=FOLDER to it: every replica names the same folder, and no backup has it."
        elif not self.folder.is_dir():
            problem = f"There is no folder at {self.folder}, for the witness and the keys."
            fix = "Make it first, readable by the publisher's user alone."
        else:
            return self.folder
        raise InvalidJournal(problem, fix, path=str(self))

    @property
    def private_folder(self) -> Path:
        """The folder outside the database, which nobody but its owner can read or write: for whoever writes or has keys.

        An attacker who can write to it can turn the witness back, and a slot would be drawn twice (spec 10).
        """
        folder = self.existing_folder
        mode = stat.S_IMODE(folder.stat().st_mode)
        if os.name == "posix" and mode & 0o077:
            problem = (
                f"Others can read or write the witness folder {str(folder)!r}, with keys of events: mode {mode:04o}."
            )
            fix = "Take the rights of others away (chmod 700), or make a folder of its own in it."
            raise InvalidJournal(problem, fix, path=str(self))
        return folder


JournalAddress = Path | PostgresAddress
"""Path of a journal, or address of its database."""


def is_address(text: object) -> bool:
    """Return whether a name is an address of a database, and not a path."""
    return isinstance(text, (str, Path)) and _ADDRESS.match(str(text)) is not None


def parse_address(named: str | Path | PostgresAddress, folder: Path | None = None) -> JournalAddress:
    """Return the place that is named by a path or an address on a command line or in a configuration file.

    Args:
        named: the path or address.
        folder: start of relative paths; None: the current folder.

    Raises:
        InvalidJournal: for an address that cannot be one.
    """
    if isinstance(named, PostgresAddress):
        return named
    folder = Path() if folder is None else folder
    if is_address(named):
        return _parse(str(named), folder)
    if _MISTAKEN.match(str(named)):  # taken for a path it would be shown, with its password
        raise _unreadable()
    return folder / named


def journal_file(place: str | JournalAddress, command: str) -> Path:
    """Return the file of a journal; refuse a database, for a command that needs a file."""
    place = parse_address(place)
    if isinstance(place, PostgresAddress):
        raise InvalidJournal(
            f"`{command}` needs a journal in a file; this one is in a database ({place}).",
            "Copy and restore the database with its own tools, such as pg_basebackup; then publish with --released-through "
            "SLOT, the last released slot.",
            path=str(place),
        )
    return place


def file_beside(place: JournalAddress, name: str) -> Path:
    """Return a file with another ending beside a journal's file, or in the witness folder of its database."""
    if isinstance(place, Path):
        return place.with_name(f"{place.name}.{name}")
    return place.existing_folder / f"{place.schema}.{name}"


@contextmanager
def psycopg_needed(place: PostgresAddress) -> Iterator[None]:
    """Refuse a Python without psycopg, which journals in files do without; around imports."""
    try:
        yield
    except ImportError:
        problem, fix = "Journals in PostgreSQL need psycopg.", "Run pip install 'wevent[postgres]'."
        raise InvalidJournal(problem, fix, path=str(place)) from None


def _parse(text: str, folder: Path) -> PostgresAddress:
    text = _ADDRESS.sub("postgresql://", text, count=1)  # a path library may have taken one of the slashes
    try:
        parts = urlsplit(text)
        for host in parts.netloc.rpartition("@")[2].split(","):  # libpq takes several: a failover pair
            urlsplit(f"//{host}").port  # noqa: B018  a port that is none
        given = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise _unreadable() from None
    if "@" in parts.path or parts.fragment:  # a password with a sign in it that has to be escaped
        raise _unreadable()
    own = {"schema": "wevent", "witness": "", "lease": ""}
    own.update((key, value) for key, value in given if key in own)
    rest = urlencode([(key, value) for key, value in given if key not in own], quote_via=quote)
    schema, witness = own["schema"], own["witness"]
    if not _SCHEMA.fullmatch(schema) or schema.startswith("pg_"):
        problem = f"{schema!r} is no schema= of a journal."
        fix = "Take small letters, digits and underscores, at most 48, and not pg_…"
        raise InvalidJournal(problem, fix, path=None)
    try:
        lease_s = float(own["lease"] or _LEASE_S)
    except ValueError:
        lease_s = math.nan
    if not 1 <= lease_s <= 3600:
        problem = f"{own['lease']!r} is no lease= of 1 to 3600 seconds."
        raise InvalidJournal(problem, "Leave it out for 10 seconds.", path=None)
    conninfo = urlunsplit((parts.scheme, parts.netloc, parts.path, rest, ""))
    return PostgresAddress(conninfo, schema, folder / Path(witness).expanduser() if witness else None, lease_s)


def _unreadable() -> InvalidJournal:
    """Return the error for an address that is none; it may hold a password, and is not shown."""
    fix = "Write postgresql://host/database?schema=NAME&witness=FOLDER."
    return InvalidJournal("The address of a database cannot be read.", fix, path=None)
