"""`wevent doctor`."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import click

from wevent.cli.answers import CheckOfMachine, DoctorAnswer, as_json
from wevent.cli.console import print_entries
from wevent.cli.flags import chosen_journal
from wevent.cli.parameter_types import JOURNAL
from wevent.errors import WeventError
from wevent.journal import JournalAddress, PostgresAddress, examine_database

Check = Callable[[Path], str]


@click.command("doctor", epilog="Example: wevent doctor --folder /var/lib/wevent")
@click.option(
    "--folder", default=".", type=click.Path(path_type=Path), help="Where journals will be; the default is here."
)
@click.option(
    "--journal", type=JOURNAL, help="A journal, there or to be: a file, whose folder is looked at, or postgresql://…"
)
@click.option("--config", type=click.Path(path_type=Path), help="The configuration that names the journal.")
@click.option("--json", "wants_json", is_flag=True, help="Print an object.")
def command(folder: Path, journal: JournalAddress | None, config: Path | None, wants_json: bool) -> None:
    """Check that this machine can publish: versions, noise, disk, locks. Exit code 1 if something is wrong.

    With a journal in a database: address, role, encoding, whether commits survive, the schema and the witness folder. Nothing
    there is changed.
    """
    place = chosen_journal(journal, config) if journal is not None or config is not None else None
    if isinstance(place, PostgresAddress):
        checks = [_run(name, check, folder) for name, check in _CHECKS.items() if name not in _OF_FILES]
        checks += _database_checks(place)
    else:
        folder = folder if place is None else place.parent
        checks = [_run(name, check, folder) for name, check in _CHECKS.items()]
    answer = DoctorAnswer(ok=all(one.ok for one in checks), checks=checks)
    if wants_json:
        click.echo(as_json(answer))
    else:
        print_entries({f"{'ok ' if one.ok else 'BAD'}  {one.check}": one.found for one in checks})
    if not answer.ok:
        sys.exit(1)


def _database_checks(place: PostgresAddress) -> list[CheckOfMachine]:
    return [_run(name, lambda _, one=look: one(), Path()) for name, look in examine_database(place)]  # type: ignore[misc]


def _run(name: str, check: Check, folder: Path) -> CheckOfMachine:
    try:
        return CheckOfMachine(check=name, ok=True, found=check(folder))
    except (OSError, ImportError, ValueError, RuntimeError, WeventError) as error:
        return CheckOfMachine(check=name, ok=False, found=str(error))


def _python(folder: Path) -> str:
    return f"{platform.python_version()} on {platform.system()}"


def _versions(folder: Path) -> str:
    from importlib.metadata import version

    return ", ".join(f"{name} {version(name)}" for name in ("wevent", "numpy", "opendp", "duckdb", "apsw"))


def _noise(folder: Path) -> str:
    from wevent import Population, Publisher, Requirement

    publisher = Publisher(Population({Requirement(1, 1): 1000}), 2, "uniform")
    drawn = {tuple(publisher.step([[500, 500]]).histogram.tolist()) for _ in range(8)}
    if len(drawn) == 1:
        raise ValueError("eight releases are the same: noise is not drawn")
    return "drawn from operating-system entropy"


def _refuse_missing(folder: Path) -> None:
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}. Make the folder first.")


def _disk(folder: Path) -> str:
    _refuse_missing(folder)
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        begun = time.perf_counter()
        for _ in range(20):
            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())
        each_ms = (time.perf_counter() - begun) / 20 * 1000
    return f"writable, {each_ms:.1f} ms to force a page to disk"


def _lock(folder: Path) -> str:
    _refuse_missing(folder)
    from wevent.errors import JournalLocked
    from wevent.journal.witness import lock_witness, unlock_witness

    with tempfile.TemporaryDirectory(dir=folder) as place:
        first = lock_witness(Path(place) / "probe")
        try:
            unlock_witness(lock_witness(Path(place) / "probe"))
        except JournalLocked:
            return "a second writer is kept out"
        finally:
            unlock_witness(first)
    raise ValueError("a second writer got in: do not keep journals on this file system")


def _clock(folder: Path) -> str:
    now = time.time()
    if now < 1_700_000_000:
        raise ValueError("the clock is years behind: live slots close by it")
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))


_CHECKS: dict[str, Check] = {
    "python": _python,
    "versions": _versions,
    "secure noise": _noise,
    "disk": _disk,
    "one writer": _lock,
    "clock": _clock,
}
_OF_FILES = ("disk", "one writer")  # what journals in files need
