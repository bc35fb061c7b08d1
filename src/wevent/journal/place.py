"""Where a journal is: a file, or a schema of a PostgreSQL database named by its address."""

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
_SECRETS = (
    "password",
    "sslpassword",
    "passfile",
    "sslkey",
    "scram_client_key",
    "scram_server_key",
    "oauth_client_secret",
)
_LEASE_S = 10.0
_EXAMPLE = "Write postgresql://host/database?schema=NAME&side=FOLDER."


class NoJournal(InvalidJournal):
    """There is nothing at the place of a journal in a database, not even a damaged one. Facts: `path`."""


@dataclass(frozen=True)
class PostgresPlace:
    """A journal in a PostgreSQL database; one journal is one schema.

    Attributes:
        conninfo: the address as libpq takes it; it may hold a password, so it is never shown.
        schema: the schema that holds the journal's tables.
        side: a folder outside the database, for the witness and the keys; None: the journal can only be read.
        lease_s: how long a writer may be silent before another one takes its place.
    """

    conninfo: str = field(repr=False)
    schema: str = "wevent"
    side: Path | None = None
    lease_s: float = _LEASE_S

    def __str__(self) -> str:
        """The address without secrets, for messages."""
        parts = urlsplit(self.conninfo)
        user, at, host = parts.netloc.rpartition("@")
        named = [(key, value) for key, value in parse_qsl(parts.query) if key.lower() not in _SECRETS]
        query = urlencode([*named, ("schema", self.schema)])
        return urlunsplit((parts.scheme, f"{user.partition(':')[0]}{at}{host}", parts.path, query, ""))

    @property
    def name(self) -> str:
        """A short one, as a path has it: the schema."""
        return self.schema

    @property
    def side_folder(self) -> Path:
        """The folder outside the database.

        Raises:
            InvalidJournal: if the address names none, or one that is not there.
        """
        if self.side is None:
            raise InvalidJournal(
                "a folder outside the database, for the mark and the keys of a journal that is written",
                f"an address without one ({self})",
                "Add &side=FOLDER to it: every replica names the same folder, and no backup has it.",
                path=str(self),
            )
        if not self.side.is_dir():
            raise InvalidJournal(
                "a folder outside the database, for the mark and the keys",
                f"no folder at {self.side}",
                "Make it first, readable by the publisher's user alone.",
                path=str(self),
            )
        return self.side

    @property
    def private_folder(self) -> Path:
        """The folder outside the database, which nobody but its owner can read or write: for whoever writes or has keys.

        An attacker who can write to it can turn the witness back, and a slot would be drawn twice (spec 10).

        Raises:
            InvalidJournal: as of `side_folder`, and if others may read or write there.
        """
        folder = self.side_folder
        mode = stat.S_IMODE(folder.stat().st_mode)
        if os.name == "posix" and mode & 0o077:
            raise InvalidJournal(
                "a side folder that only its owner can read or write (mode 0700): keys of events are in it",
                f"{str(folder)!r} with mode {mode:04o}",
                "Take the rights of others away (chmod 700), or make a folder of its own in it.",
                path=str(self),
            )
        return folder


JournalPlace = Path | PostgresPlace
"""Where a journal is."""


def is_address(text: object) -> bool:
    """Whether a name is an address of a database, and not a path."""
    return isinstance(text, (str, Path)) and _ADDRESS.match(str(text)) is not None


def journal_place(named: str | Path | PostgresPlace, folder: Path | None = None) -> JournalPlace:
    """The place that is named by a path or an address.

    Args:
        named: as written on a command line or in a configuration file.
        folder: what relative paths start at; the current folder unless told.

    Raises:
        InvalidJournal: for an address that cannot be one.
    """
    if isinstance(named, PostgresPlace):
        return named
    folder = Path() if folder is None else folder
    if not is_address(named) and _MISTAKEN.match(str(named)):  # taken for a path it would be shown, with its password
        raise _unreadable()
    return _parsed(str(named), folder) if is_address(named) else folder / named


def journal_file(place: str | JournalPlace, command: str) -> Path:
    """The file of a journal, for what only files can.

    Args:
        place: the journal.
        command: what is to be done.

    Raises:
        InvalidJournal: for a database.
    """
    place = journal_place(place)
    if isinstance(place, PostgresPlace):
        raise InvalidJournal(
            f"a journal in a file, for `{command}`",
            f"one in a database ({place})",
            "Copy and restore the database with its own tools, such as pg_basebackup; then publish with --released-through "
            "SLOT, the last slot that went out.",
            path=str(place),
        )
    return place


def file_beside(place: JournalPlace, name: str) -> Path:
    """A file beside a journal: next to its file, or in the side folder of its database.

    Args:
        place: the journal.
        name: the ending of the file.
    """
    if isinstance(place, Path):
        return place.with_name(f"{place.name}.{name}")
    return place.side_folder / f"{place.schema}.{name}"


@contextmanager
def psycopg_needed(place: PostgresPlace) -> Iterator[None]:
    """Around imports that need psycopg, which journals in files do without.

    Raises:
        InvalidJournal: for a Python that has none.
    """
    try:
        yield
    except ImportError:
        raise InvalidJournal(
            "psycopg, which journals in PostgreSQL need",
            "a Python without it",
            "Run pip install 'wevent[postgres]'.",
            path=str(place),
        ) from None


def _parsed(text: str, folder: Path) -> PostgresPlace:
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
    own = {"schema": "wevent", "side": "", "lease": ""}
    rest = []
    for key, value in given:
        if key in own:
            own[key] = value
        else:
            rest.append((key, value))
    place = urlunsplit((parts.scheme, parts.netloc, parts.path, urlencode(rest, quote_via=quote), ""))
    side = folder / Path(own["side"]).expanduser() if own["side"] else None
    return PostgresPlace(place, _schema(own["schema"]), side, _lease(own["lease"]))


def _unreadable() -> InvalidJournal:
    """What is said of an address that is none; it may hold a password, and is not shown."""
    return InvalidJournal("the address of a database", "one that cannot be read", _EXAMPLE, path=None)


def _schema(name: str) -> str:
    if not _SCHEMA.fullmatch(name) or name.startswith("pg_"):
        raise InvalidJournal(
            "schema= with small letters, digits and underscores, at most 48, and not pg_…",
            f"{name!r}",
            "Give the schema another name.",
            path=None,
        )
    return name


def _lease(text: str) -> float:
    try:
        lease_s = float(text or _LEASE_S)
    except ValueError:
        lease_s = math.nan
    if not 1 <= lease_s <= 3600:
        raise InvalidJournal("lease= with 1 to 3600 seconds", f"{text!r}", "Leave it out for 10 seconds.", path=None)
    return lease_s
