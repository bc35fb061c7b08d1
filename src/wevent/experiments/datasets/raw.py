"""What the readers of raw files share: lines as text, broken ones counted, results kept as Parquet."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from wevent.core.arrays import IntArray
from wevent.errors import InvalidOption
from wevent.experiments.datasets.recorded import Recorded
from wevent.file_io import atomic_write
from wevent.streams.duckdb_tables import file_list, literal

Positions = tuple[IntArray, IntArray, IntArray]


def lines_of(files: Sequence[Path]) -> str:
    """SQL for the non-empty lines of text files (plain or .gz), `line` and its number `n`, without line ends.

    One column and no quotes: nothing a line contains can stop the reading. Bytes are read as Latin-1 for
    the same reason.
    """
    table = file_list(map(str, files))
    options = "header=false, delim='\x01', quote='', escape='', comment='', auto_detect=false, strict_mode=false"
    return (
        f"SELECT row_number() OVER () AS n, rtrim(line, chr(13)) AS line FROM read_csv({table}, {options}, "
        "encoding='latin-1', columns={'line': 'VARCHAR'}, max_line_size=1000000) WHERE trim(line, chr(13) || ' ') <> ''"
    )


def raw_files(folder: Path, patterns: Sequence[str]) -> list[Path]:
    """The files below a folder that match one of the patterns, in a stable order."""
    if not folder.is_dir():
        return []
    found = {path for pattern in patterns for path in folder.rglob(pattern) if path.is_file() and path.stat().st_size}
    return sorted(found)


def missing(stream: str, folder: Path, what: str, where: str) -> InvalidOption:
    """The friendly message for data that is not there."""
    return InvalidOption(
        f"{what} in the folder {folder}",
        "no such folder" if not folder.is_dir() else "a folder without them",
        f"wevent ships no data: {where} Unpack it there, or name another place with --data "
        f"(the parent of {folder.name}/).",
        option="data",
        value=str(folder),
        stream=stream,
    )


def cached(folder: Path, files: Sequence[Path], recipe: str, parse: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
    """Parse once: arrays `slot`, `user`, `cell` and the facts about them are kept as Parquet and JSON in the folder.

    The name holds a checksum of the raw files' names, sizes and times and of the recipe; a folder that can't be
    written to is parsed each time.
    """
    listing = [(str(file.relative_to(folder)), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    checksum = zlib.crc32(json.dumps([recipe, listing]).encode())
    table = folder / ".wevent-cache" / f"{checksum:08x}.parquet"
    facts_file = table.with_suffix(".json")
    if table.exists() and facts_file.exists():
        with duckdb.connect() as connection:
            query = f"SELECT slot, user_row, cell FROM read_parquet({file_list([str(table)])})"
            columns = connection.execute(query).fetchnumpy()
        facts = json.loads(facts_file.read_text(encoding="utf-8"))
        return {**facts, "slot": columns["slot"], "user": columns["user_row"], "cell": columns["cell"]}
    parsed = dict(parse())
    arrays = {name: parsed[name] for name in ("slot", "user", "cell")}
    facts = {name: value for name, value in parsed.items() if name not in arrays}
    try:
        table.parent.mkdir(exist_ok=True)
        write_parquet(table, {"slot": arrays["slot"], "user_row": arrays["user"], "cell": arrays["cell"]})
        facts_file.write_text(json.dumps(facts), encoding="utf-8")
    except OSError:
        pass  # a read-only folder: nothing is lost but time
    return parsed


def write_parquet(path: Path, columns: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write columns to a Parquet file that appears whole or not at all."""
    _write(path, columns, "FORMAT parquet")


def write_csv(path: Path, columns: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write columns to a CSV file with a header that appears whole or not at all."""
    _write(path, columns, "FORMAT csv, HEADER")


def _write(path: Path, columns: Mapping[str, npt.NDArray[Any]], form: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as unfinished, duckdb.connect() as connection:
        connection.register("columns_to_write", dict(columns))
        connection.execute(f"COPY (SELECT * FROM columns_to_write) TO {literal(str(unfinished))} ({form})")


def by_user_and_slot(slot: Any, user: Any, cell: Any) -> Positions:
    """Positions as int64 arrays sorted by user, then slot."""
    columns = [np.asarray(column).astype(np.int64) for column in (slot, user, cell)]
    order = np.lexsort((columns[0], columns[1]))
    return columns[0][order], columns[1][order], columns[2][order]


def carried_stream(name: str, cells: Sequence[str], parsed: Mapping[str, Any]) -> Recorded:
    """What `cached` kept, as a stream whose users stay where they were last seen."""
    slot, user, cell = by_user_and_slot(parsed["slot"], parsed["user"], parsed["cell"])
    users, slots, remarks = np.array(parsed["users"]), parsed["slots"], parsed["remarks"]
    return Recorded(name, users, cells, slots, slot, user, cell, carried=True, remarks=remarks)


def single_row(connection: duckdb.DuckDBPyConnection, query: str) -> tuple[Any, ...]:
    """The only row of a query's result."""
    row = connection.execute(query).fetchone()
    assert row is not None
    return tuple(row)
