"""Real PostgreSQL servers for tests: one that all tests of a run share, and ones of their own for tests that break them.

A server ends with the run, however that ends: a keeper process of its own watches the run (`python -m
tests.support.postgres_server`).
"""

from __future__ import annotations

import fcntl
import glob
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

import psycopg
from psycopg import sql

from tests.support.commands import PATIENCE_S

_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "100",
    "shared_buffers": "64MB",
    "wal_level": "replica",
    "max_wal_senders": "4",
    "logging_collector": "off",
    "log_min_messages": "fatal",
}
_PORTS = 10  # that are tried: between the look for a free one and the start another process may take it
_TAKEN = "could not create any TCP/IP sockets"


def binaries() -> Path:
    """Where PostgreSQL's programs are; the newest that is installed."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda name: float(name.split("/")[4]))
    beside = shutil.which("initdb")
    if not found and beside is None:
        raise RuntimeError("these tests need a PostgreSQL server: install the package postgresql, or run `make test`")
    return Path(found[-1]) if found else Path(str(beside)).parent


class PostgresServer:
    """A cluster in a folder of its own, which only this test uses.

    Args:
        settings: of postgresql.conf, on top of those for tests.
        keep_for: the process that it must not outlive; this one unless told.

    Attributes:
        folder: the cluster's files; `data` is its data directory.
        port: where it listens, on 127.0.0.1; the same after a restart.
    """

    def __init__(self, settings: Mapping[str, str] | None = None, keep_for: int | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="wevent-postgres-", dir=_quick_folder()))
        self.data = self.folder / "data"
        self.password = secrets.token_hex(8)
        secret = self.folder / "password"
        secret.write_text(self.password)
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            for path in (self.folder, secret):
                os.chown(path, user.pw_uid, user.pw_gid)
        self.run("initdb", "-D", self.data, "-U", "wevent", "-E", "UTF8", "--locale=C", "-A", "scram-sha-256",
                 "--pwfile", secret, "--no-sync")  # fmt: skip
        with (self.data / "postgresql.conf").open("a") as file:
            for key, value in {**_SETTINGS, **(settings or {})}.items():
                file.write(f"{key} = '{value}'\n")
        _keep(self.folder, keep_for or os.getpid())  # first: nothing is left of one that does not start
        self._start_first()

    def follower(self) -> PostgresServer:
        """A standby of it that gets every commit before the commit is reported."""
        standby = object.__new__(PostgresServer)
        standby.folder = Path(tempfile.mkdtemp(prefix="wevent-postgres-", dir=_quick_folder()))
        standby.data, standby.password = standby.folder / "data", self.password
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(standby.folder, user.pw_uid, user.pw_gid)
        source = f"{self.url()}?application_name=follower".replace("postgres?", "?")
        standby.run("pg_basebackup", "-D", standby.data, "-R", "-X", "stream", "-c", "fast", "-d", source)
        _keep(standby.folder, os.getpid())
        standby._start_first()
        self.set_synchronous("*")
        return standby

    def set_synchronous(self, names: str) -> None:
        """Which standbys have every commit before it is reported; none: ''."""
        self.set("synchronous_standby_names", names)

    def set(self, name: str, value: str | None) -> None:
        """Change a setting, None: to what it is by default; whoever connects from now on has it."""
        change = sql.SQL("ALTER SYSTEM RESET {}" if value is None else "ALTER SYSTEM SET {} = {}")
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(change.format(sql.Identifier(name), sql.Literal(value)))
            before = self._loaded()
            connection.execute("SELECT pg_reload_conf()")
            while self._loaded() == before:
                time.sleep(0.01)

    def _loaded(self) -> object:
        """When the settings of a new connection were loaded."""
        with psycopg.connect(self.url()) as connection:
            return connection.execute("SELECT pg_conf_load_time()").fetchone()

    def url(self, database: str = "postgres", **query: object) -> str:
        """An address of it, with the password and these parameters."""
        text = "&".join(f"{key}={value}" for key, value in query.items())
        return f"postgresql://wevent:{self.password}@127.0.0.1:{self.port}/{database}" + (f"?{text}" if text else "")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self.run("pg_ctl", "-D", self.data, "-w", "-t", f"{PATIENCE_S:.0f}", "-l", self.folder / "log", "start")

    def _start_first(self) -> None:
        """Start it on a port that is free, which is its own from then on."""
        for left in reversed(range(_PORTS)):
            self.port = _free_port()
            with (self.data / "postgresql.conf").open("a") as file:
                file.write(f"port = '{self.port}'\n")  # the last one counts
            log = self.folder / "log"
            try:
                self.start()
                break
            except RuntimeError:
                if not left or _TAKEN not in log.read_text(errors="replace"):
                    raise
                log.unlink()

    def stop(self, mode: str = "fast") -> None:
        """Stop it: "fast" ends sessions, "immediate" is a crash."""
        self.run("pg_ctl", "-D", self.data, "-w", "-t", f"{PATIENCE_S:.0f}", "-m", mode, "stop")

    def restart(self, mode: str = "immediate") -> None:
        """Stop and start it on the same port."""
        self.stop(mode)
        self.start()

    def kill(self) -> None:
        """SIGKILL to every process of it."""
        main = self.pid()
        with suppress(ProcessLookupError):
            os.kill(main, signal.SIGSTOP)  # it must not clean up after the others
        all_of_it = [*_children(main), main]
        for process in all_of_it:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        while any(map(_is_alive, all_of_it)):  # who still has its shared memory keeps the next one from starting
            time.sleep(0.01)
        (self.data / "postmaster.pid").unlink()  # a dead process that nobody has waited for looks alive to PostgreSQL

    def pid(self) -> int:
        """Of its main process."""
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def run(self, program: str, *arguments: object) -> str:
        """One of PostgreSQL's own programs, as the server's user; what it prints."""
        said = self.folder / "said"
        with said.open("w+") as file:  # no pipe: the server that pg_ctl starts would keep it open
            done = subprocess.run(
                [str(binaries() / program), *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                cwd="/",
                user="postgres" if os.geteuid() == 0 else None,
                env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "PGPASSWORD": self.password},
                start_new_session=True,
                check=False,
            )
            file.seek(0)
            text = file.read()
        if done.returncode:
            raise RuntimeError(f"{program} failed: {text}")
        return text

    def remove(self) -> None:
        """Stop it and remove its files."""
        with suppress(RuntimeError):
            self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)


@cache
def shared_url() -> str:
    """An address of the server that all tests of a run share, started when the first of them asks.

    Each test uses a schema of its own in it.
    """
    run = int(os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid())
    place = Path(tempfile.gettempdir()) / f"wevent-postgres-of-{run}"
    with place.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        said = file.read()
        if not said:
            said = PostgresServer(keep_for=run).url()
            file.write(said)
        return said


def own_schema() -> str:
    """A name for a schema that nobody else uses."""
    return f"t_{secrets.token_hex(8)}"


def _quick_folder() -> str | None:
    """In memory where there is room: tests do not cut the power."""
    memory = Path("/dev/shm")
    return str(memory) if memory.is_dir() and shutil.disk_usage(memory).free > 1 << 30 else None


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _children(process: int) -> list[int]:
    try:
        text = Path(f"/proc/{process}/task/{process}/children").read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]


def _is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (OSError, IndexError):
        return False


def _keep(folder: Path, run: int) -> None:
    """Start the keeper of a server."""
    subprocess.Popen(
        [sys.executable, "-m", "tests.support.postgres_server", str(folder), str(run)],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _watch(folder: Path, run: int) -> None:
    """End a server when its run is over, and remove its files."""
    while _is_alive(run) and folder.is_dir():
        time.sleep(0.5)
    pid_file = folder / "data" / "postmaster.pid"
    with suppress(OSError, ValueError, IndexError):
        os.kill(int(pid_file.read_text().split()[0]), signal.SIGQUIT)
        time.sleep(0.5)
    shutil.rmtree(folder, ignore_errors=True)
    (Path(tempfile.gettempdir()) / f"wevent-postgres-of-{run}").unlink(missing_ok=True)


if __name__ == "__main__":
    _watch(Path(sys.argv[1]), int(sys.argv[2]))
