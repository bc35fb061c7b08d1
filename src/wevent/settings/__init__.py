"""All settings of a stream: key, type, limits, default, help, and whether they hold for one run only.

The checks of the configuration file, the flags of commands and the reference page follow from these fields (`kinds`).
`wevent.core.options` declares the options of a publisher, and `wevent.journal.terms` the pinned configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from wevent.core.limits import MAX_WINDOW
from wevent.core.options import Options, kinds, setting
from wevent.core.requirements import Levels
from wevent.errors import InvalidSettings
from wevent.settings.values import ListenAddress, invalid

if TYPE_CHECKING:
    from wevent.counting.labels import Cells
    from wevent.journal.address import JournalAddress
    from wevent.streams.duckdb_tables import Table
    from wevent.streams.requirements_file import Requirements
else:  # packages above this one
    Cells = JournalAddress = Requirements = Table = Any


TimeUnit = Literal["s", "ms", "us"]


@dataclass(frozen=True, kw_only=True)
class ServiceSettings:
    """The table [service]."""

    listen: ListenAddress = setting(
        ListenAddress("127.0.0.1", 8080), "Address to listen on; port 0 is any free port.", form="HOST:PORT"
    )
    public: bool = setting(False, "Serve releases, ledger, levels and statement without a token.")
    tokens: Path | None = setting(None, "File of tokens.", form="a file", shown="journal with `.tokens` appended")
    url: str | None = setting(
        None, "Address that personal links begin with.", form="an address", shown="`http://` and `listen`"
    )
    max_body_bytes: int = setting(8 << 20, "Largest request body, in bytes.", least=1 << 10, most=1 << 27)
    max_batch_bytes: int = setting(
        32 << 20, "Largest request body after decompression, in bytes.", least=1 << 10, most=1 << 27
    )
    requests_per_minute: int = setting(
        600, "Requests of one token, or of one address without a token; 0: no limit.", most=10**9
    )
    events_per_minute: int = setting(0, "Events of one token; 0: no limit.", most=10**12)
    link_hours: int = setting(72, "Lifetime of a personal link, in hours.", least=1, most=24 * 366)


@dataclass(frozen=True, kw_only=True)
class StreamSettings:
    """Settings that concern events, with times and lengths in microseconds."""

    inputs: tuple[str, ...] = setting(
        MISSING, "Event files and globs, or - for lines on standard input.", form="file names and globs, or '-'"
    )
    cells: Cells = setting(
        MISSING, "Number of cells, labels as a,b,c, or a file of labels.", form="a number, labels, or a file"
    )
    slot_us: int = setting(MISSING, "Slot length, e.g. 60s.", key="slot", form="a length")
    start_us: int | None = setting(
        None,
        "Start of slot 1; auto reads it, and the end, from events (not private).",
        key="start",
        form="a time, or 'auto'",
    )
    end_us: int | None = setting(None, "End of the last slot.", key="end", form="a time")
    start_auto: bool = False  # start and end are read from the events, which is not private
    slot_column: str | None = setting(None, "Column of slot numbers, for slotted data.")
    time_column: str = setting("time", "Column of times.")
    user_column: str = setting("user", "Column of users.")
    cell_column: str = setting("cell", "Column of cells.")
    timezone_us: int | None = setting(
        None, "Offset of times that carry none, UTC or e.g. +02:00.", key="timezone", form="'UTC', or an offset"
    )
    time_unit: TimeUnit = setting("s", "Unit of times that are numbers.")
    grace_us: int = setting(0, "Allowed lateness of live events.", key="grace", form="a length", shown="0s")
    release_delay_us: int | None = setting(
        None,
        "Time from the end of a live slot to its release, at least the grace.",
        key="release_delay",
        form="a length",
        shown="the grace and a quarter of a slot, at most 1s more",
    )
    close_slots_by: Literal["clock", "lines"] = setting(
        "clock", "Trigger that closes a live slot: the wall clock, or close lines."
    )
    max_cells_per_user: int = 1
    strict: bool = setting(False, "Stop at a malformed line (not private).")
    engine: Literal["auto", "spark"] = setting("auto", "Engine that counts files.")
    frame: Table | None = field(default=None, compare=False)  # events of a data frame, instead of inputs

    @property
    def columns(self) -> Mapping[str, str]:
        """The names of the columns "time", "user" and "cell"."""
        return {"time": self.time_column, "user": self.user_column, "cell": self.cell_column}

    @property
    def slot_length_us(self) -> int | None:
        """The slot length; None for slots that have numbers and no times."""
        return None if self.slot_column is not None else self.slot_us

    @property
    def is_live(self) -> bool:
        """True if events arrive while slots are published, instead of being in files or a frame."""
        return self.inputs == ("-",)


@dataclass(frozen=True, kw_only=True)
class Settings(Options, StreamSettings):
    """All settings of a stream, checked."""

    requirements: Path | None = setting(
        None, "Requirements of users: user,level or user,privacy,window or user,window,epsilon.", form="a file"
    )
    requirements_columns: Mapping[str, str] = setting(
        dict, "Names of the columns of the requirements file.", form="a table"
    )
    levels: Levels | None = setting(None, "Levels that users choose.", form="a table", shown="the default levels")
    unknown_users: int = setting(0, "Number of unregistered users that a slot may count; 0 rejects their events.")
    journal: JournalAddress | None = setting(
        None, "Journal: a file or postgresql://…; created if new, else resumed.", form="a file, or an address"
    )
    out: str | None = setting(None, "Releases: a .ndjson, .csv or .parquet file, or - for standard output.", shown="-")
    stream: str = setting("default", "Name of the stream.")
    service: ServiceSettings = setting(
        ServiceSettings, "Settings of `wevent serve`.", form="a table", shown="[service](#service)"
    )
    people: Requirements | None = None  # requirements in memory, instead of a file
    days: tuple[date, ...] | None = None  # days of the calendar; their slots are known with the clock
    notes: tuple[str, ...] = ()  # a sentence for each setting whose meaning is not obvious
    read_from: tuple[tuple[str, Path], ...] = ()  # files that these settings come from, and what each is
    said: frozenset[str] = frozenset()  # keys with an explicit value; the others have the pinned value, or the default


@dataclass(frozen=True)
class RestoreOptions:
    """Statements of the operator about slots that another copy of the journal released."""

    released_through: int | None = setting(None, "For a restored backup: last slot that was ever released.")
    widest_window: int | None = setting(
        None, "For a backup without its witness: widest window ever declared, in slots.", least=1, most=MAX_WINDOW
    )
    same_settings: bool = setting(False, "For a backup without its witness: the settings did not change after it.")
    accept_lost_changes: bool = setting(False, "For a restored backup: continue although registry changes may be lost.")

    def __post_init__(self) -> None:
        for name, kind in kinds(cast(Any, type(self))).items():
            value = getattr(self, name)
            if not kind.takes(tuple(value) if isinstance(value, list) else value):
                expected = f"several texts {kind}" if kind.several else str(kind)
                example = "RunOptions(declare=('40,0.5',))" if kind.several else f"RunOptions({name}=…)"
                raise invalid(name, expected, value, f"Write it as in {example}.")
        if self.same_settings and self.widest_window is not None:
            problem = "--same-settings and --widest-window exclude each other."
            fix = "If settings changed after the backup, state only the widest window ever declared."
            raise InvalidSettings(problem, fix, key="same_settings")


@dataclass(frozen=True, kw_only=True)
class RunOptions(RestoreOptions):
    """Statements of the operator for one run; none of them is a setting of the stream."""

    declare: tuple[str, ...] = setting((), "Class that may have members later.", form="WINDOW,EPSILON", many=1 << 16)
    reconfigure: bool = setting(False, "Continue with another mechanism, cells or levels; every charge stays.")
    allow_removals: bool = setting(
        False, "Allow more than one in ten registered users to be missing from --requirements."
    )
    start_over: bool = setting(
        False,
        "Replace a lost journal by a new one over the same users: epsilons add up, and released slots are drawn again.",
    )
    keep: int | None = setting(
        None, "Number of slots that the journal keeps; not with a Parquet output.", least=1, shown="all"
    )


SETTINGS = kinds(Settings)
"""Every setting by key, as configuration files and `wevent.publish` have them."""
