"""Every write, sync, cut, rename and removal of a run, as strace saw them, in order."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import wevent
from tests.fault.killing import Broken

_CALLS = (
    "write,pwrite64,writev,pwritev,fsync,fdatasync,ftruncate,fallocate,rename,renameat,renameat2,link,linkat,unlink,unlinkat,openat,close,"
    "lseek,dup,dup2,copy_file_range,sendfile"
)
_LINE = re.compile(r"^(\d+) +(\w+)\((.*)\) += (-?\d+)")
_UNFINISHED = re.compile(r"^(\d+) +(.*) <unfinished \.\.\.>$")
_RESUMED = re.compile(r"^(\d+) +<\.\.\. \w+ resumed>(.*)$")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


class Effect(NamedTuple):
    """One thing that a run did to its folder, or said.

    Attributes:
        kind: write, cut, grow, sync, create, rename, link, unlink, sync folder, say.
        file: the number of the file: names move, files stay.
        place: where it was written, or the length it was cut to or has at least.
        data: what was written or said.
        name, target: of the file in the folder; of a folder that is synced, empty for the whole one.
    """

    kind: str
    file: int = -1
    place: int = 0
    data: bytes = b""
    name: str = ""
    target: str = ""


class Recording(NamedTuple):
    """A run: the folder before, and its effects in order."""

    start: dict[str, bytes]
    effects: list[Effect]


def record(folder: Path, arguments: tuple[str, ...], stdin: bytes = b"", variant: str = "unchanged") -> Recording:
    """Run a command in a folder under strace.

    Raises:
        Broken: if the command failed, or if what was recorded does not lead from the folder before to the one after.
    """
    if shutil.which("strace") is None:
        raise Broken("power cuts need strace; install it (Debian and Ubuntu: sudo apt-get install strace)")
    start = contents(folder)
    trace = folder.with_name(folder.name + ".trace")
    paths = os.pathsep.join([str(Path(wevent.__file__).parents[1]), str(Path(__file__).parents[3])])
    command = [
        "strace",
        "-f",
        "-qq",
        "-xx",
        "-s",
        "4000000",
        "--seccomp-bpf",
        "-e",
        f"trace={_CALLS}",
        "-o",
        str(trace),
    ]
    command += [sys.executable, "-B", "-m", "tests.fault.campaign.recorded", variant, *arguments]
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, cwd=folder, env=environment, input=stdin, capture_output=True, check=False)
    if done.returncode:
        raise Broken(f"the recorded run failed: {done.stderr.decode()[-2000:]}")
    recording = Recording(start, list(_Reader(folder, start).effects(trace)))
    trace.unlink()
    if state_after(recording) != contents(folder):
        raise Broken("the recording does not lead to what the run left")
    return recording


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, by name; shared memory is no file."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file() and not path.name.endswith("-shm"):
            found[str(path.relative_to(folder))] = path.read_bytes()
    return found


def state_after(recording: Recording) -> dict[str, bytes]:
    """The folder when everything took effect."""
    names = {name: number for number, name in enumerate(recording.start)}
    files = {names[name]: bytearray(data) for name, data in recording.start.items()}
    for effect in recording.effects:
        apply(effect, files)
        rename(effect, names)
    return {name: bytes(files[number]) for name, number in names.items()}


def apply(effect: Effect, files: dict[int, bytearray]) -> None:
    """What an effect does to the bytes of files."""
    data = files.setdefault(effect.file, bytearray()) if effect.file >= 0 else bytearray()
    if effect.kind == "write":
        data.extend(bytes(max(0, effect.place - len(data))))
        data[effect.place : effect.place + len(effect.data)] = effect.data
    elif effect.kind == "cut":
        del data[effect.place :]
        data.extend(bytes(effect.place - len(data)))
    elif effect.kind == "grow":
        data.extend(bytes(max(0, effect.place - len(data))))


def rename(effect: Effect, names: dict[str, int]) -> None:
    """What an effect does to the names of files."""
    if effect.kind == "create":
        names[effect.name] = effect.file
    elif effect.kind == "rename":
        names[effect.target] = names.pop(effect.name)
    elif effect.kind == "link":
        names[effect.target] = names[effect.name]
    elif effect.kind == "unlink":
        names.pop(effect.name, None)


class _Reader:
    """Follows descriptors, places and names through a trace."""

    def __init__(self, folder: Path, start: dict[str, bytes]) -> None:
        self._folder = Path(os.path.realpath(folder))
        self._names = {name: number for number, name in enumerate(start)}
        self._next = len(start)
        self._open: dict[int, int] = {}  # descriptor → file
        self._folders: dict[int, Path] = {}
        self._place: dict[int, int] = {}

    def effects(self, trace: Path) -> Iterator[Effect]:
        for name, arguments, result in _calls(trace):
            if result < 0:
                continue
            if name in ("writev", "pwritev", "copy_file_range", "sendfile", "dup", "dup2"):
                if int(arguments.split(",")[0]) in self._open:
                    raise Broken(f"{name} is not understood by this recorder")
                continue
            effect = getattr(self, f"_{name.removesuffix('2').removesuffix('64')}")(arguments, result)
            if effect is not None:
                rename(effect, self._names)
                yield effect

    def _openat(self, arguments: str, result: int) -> Effect | None:
        path = self._path(arguments.split(",")[0], _texts(arguments)[0])
        self._open.pop(result, None)
        self._folders.pop(result, None)
        if path == self._folder:
            self._folders[result] = path
            return None
        name = self._name(path)
        if name is None:
            return None
        self._place[result] = 0
        if name in self._names:
            self._open[result] = self._names[name]
            return Effect("cut", self._names[name]) if "O_TRUNC" in arguments else None
        if "O_CREAT" not in arguments:
            self._folders[result] = path  # whatever it was: only names inside it are asked for
            return None
        self._next += 1
        self._open[result] = self._next
        return Effect("create", self._next, name=name)

    def _close(self, arguments: str, result: int) -> None:
        self._open.pop(int(arguments), None)
        self._folders.pop(int(arguments), None)

    def _lseek(self, arguments: str, result: int) -> None:
        self._place[int(arguments.split(",")[0])] = result

    def _write(self, arguments: str, result: int) -> Effect | None:
        descriptor, data = int(arguments.split(",")[0]), _texts(arguments)[0][:result]
        if descriptor == 1:
            return Effect("say", data=data)
        if descriptor not in self._open:
            return None
        place = self._place[descriptor]
        self._place[descriptor] = place + result
        return Effect("write", self._open[descriptor], place, data)

    def _pwrite(self, arguments: str, result: int) -> Effect | None:
        descriptor = int(arguments.split(",")[0])
        if descriptor not in self._open:
            return None
        return Effect("write", self._open[descriptor], int(arguments.rsplit(",", 1)[1]), _texts(arguments)[0][:result])

    def _ftruncate(self, arguments: str, result: int) -> Effect | None:
        descriptor, length = (int(one) for one in arguments.split(","))
        return Effect("cut", self._open[descriptor], length) if descriptor in self._open else None

    def _fallocate(self, arguments: str, result: int) -> Effect | None:
        descriptor, mode, start, length = arguments.split(", ")
        if int(descriptor) not in self._open:
            return None
        if mode != "0":
            raise Broken(f"fallocate with {mode} is not understood by this recorder")
        return Effect("grow", self._open[int(descriptor)], int(start) + int(length))

    def _fsync(self, arguments: str, result: int) -> Effect | None:
        if int(arguments) in self._folders:
            path = self._folders[int(arguments)]
            if not path.is_relative_to(self._folder):
                return None
            return Effect("sync folder", name="" if path == self._folder else str(path.relative_to(self._folder)))
        return Effect("sync", self._open[int(arguments)]) if int(arguments) in self._open else None

    _fdatasync = _fsync

    def _rename(self, arguments: str, result: int) -> Effect | None:
        names = [self._name(self._path("AT_FDCWD", text)) for text in _texts(arguments)]
        if names[0] not in self._names:
            return None
        return Effect("rename", self._names[names[0]], name=names[0] or "", target=names[1] or "")

    _renameat = _rename

    def _link(self, arguments: str, result: int) -> Effect | None:
        names = [self._name(self._path("AT_FDCWD", text)) for text in _texts(arguments)]
        if names[0] not in self._names:
            return None
        return Effect("link", self._names[names[0]], name=names[0] or "", target=names[1] or "")

    _linkat = _link

    def _unlink(self, arguments: str, result: int) -> Effect | None:
        name = self._name(self._path("AT_FDCWD", _texts(arguments)[0]))
        return Effect("unlink", name=name) if name in self._names and name is not None else None

    def _unlinkat(self, arguments: str, result: int) -> Effect | None:
        name = self._name(self._path(arguments.split(",")[0], _texts(arguments)[0]))
        return Effect("unlink", name=name) if name in self._names and name is not None else None

    def _path(self, where: str, text: bytes) -> Path:
        base = self._folder if where == "AT_FDCWD" else self._folders.get(int(where), Path("/nowhere"))
        return base / os.fsdecode(text)

    def _name(self, path: Path) -> str | None:
        path = Path(os.path.normpath(path))
        if not path.is_relative_to(self._folder) or path.name.endswith("-shm"):
            return None
        return str(path.relative_to(self._folder))


def _calls(trace: Path) -> Iterator[tuple[str, str, int]]:
    """System calls, when they ended; calls of other threads may stand in between."""
    waiting: dict[str, str] = {}
    with trace.open() as file:
        for text in file:
            line = text.rstrip("\n")
            if found := _UNFINISHED.match(line):
                waiting[found[1]] = f"{found[1]} {found[2]}"
                continue
            if found := _RESUMED.match(line):
                line = waiting.pop(found[1]) + found[2]
            if found := _LINE.match(line):
                yield found[2], found[3], int(found[4])


def _texts(arguments: str) -> list[bytes]:
    return [bytes.fromhex(one.replace("\\x", "")) for one in _TEXT.findall(arguments)]
