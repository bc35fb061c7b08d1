"""Power cuts: a run is recorded, its disk rebuilt as it may have been at a random moment, and the next run checked.

What was not synced by then is lost, kept or torn, sector by sector; names that were not synced are as they were up to
some moment. What went out by then, went out: a line of the output counts as seen once it is written.
"""

from __future__ import annotations

import json
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fault.campaign.commands import Commands, Ended
from tests.fault.campaign.known import known
from tests.fault.campaign.lives import AUDIT, STATUS
from tests.fault.campaign.recording import Effect, Recording, apply, record, rename
from tests.fault.campaign.registry_lives import LIST
from tests.fault.campaign.sentences import sentence
from tests.fault.campaign.stream import JOURNAL, OUT, USERS, lines, live, publish, write_stream
from tests.fault.campaign.witness import Unnoticed, Witness, clean, fine, must, whole_lines
from tests.fault.campaign.wrong import VARIANTS
from tests.fault.killing import Broken

SECTOR = 512
Disk = dict[str, bytes]


class Refused(Exception):
    """The next run named what it found."""


@dataclass(frozen=True)
class Scenario:
    """A run to record.

    Attributes:
        before: commands that ran, to their end, before it.
        recorded: its arguments.
        after: the next run, given the last slot that anybody saw.
        stdin: its live lines.
    """

    before: tuple[tuple[str, ...], ...]
    recorded: tuple[str, ...]
    after: Callable[[int], tuple[str, ...]] = lambda last: publish(last + 1, people=False)
    stdin: bytes = b""

    @property
    def out(self) -> str:
        """Where its releases go."""
        return self.recorded[self.recorded.index("--out") + 1] if "--out" in self.recorded else OUT


_SET = ("users", JOURNAL, "set", "1", "--window", "4", "--epsilon", "0.5")
SCENARIOS = {
    "first": Scenario((), live(), lambda last: publish(last + 1), stdin=lines(1, 6)),
    "live": Scenario((publish(4),), live(out="-"), lambda last: publish(last + 1, out="-"), stdin=lines(5, 10)),
    "users": Scenario((publish(4),), _SET),
    "epoch": Scenario(
        (publish(4),),
        publish(8, "--reconfigure", "--mechanism", "pba"),
        lambda last: publish(last + 1, "--reconfigure", "--mechanism", "pba"),
    ),
    "compaction": Scenario((publish(250),), publish(262, "--keep", "1")),
    "backup": Scenario((publish(4),), ("backup", JOURNAL, "copy.journal")),
    "parquet": Scenario(
        (publish(4, out="out.parquet"),),
        publish(8, out="out.parquet"),
        lambda last: publish(max(last, 8) + 1, out="out.parquet"),
    ),
}


def rebuild(recording: Recording, moment: int, chance: random.Random) -> Disk:
    """What the disk may hold if the power fails right before an effect."""
    names = {name: number for number, name in enumerate(recording.start)}
    files = {number: bytearray(recording.start[name]) for name, number in names.items()}
    unsynced: dict[int, list[Effect]] = {}
    moved: list[Effect] = []
    journalled = chance.random() < 0.5  # file systems that keep names in order with syncs, and those that do not
    for effect in recording.effects[:moment]:
        if effect.kind in ("write", "cut", "grow"):
            unsynced.setdefault(effect.file, []).append(effect)
        elif effect.kind in ("create", "rename", "link", "unlink"):
            moved.append(effect)
        elif effect.kind == "sync":
            for one in unsynced.pop(effect.file, []):
                apply(one, files)
        if effect.kind == "sync folder" or (effect.kind == "sync" and journalled):
            synced = [one for one in moved if journalled or not effect.name or folder_of(one) == effect.name]
            moved = [one for one in moved if one not in synced]
            for one in synced:
                rename(one, names)
    for number, effects in unsynced.items():
        _survive(effects, files.setdefault(number, bytearray()), chance)
    for one in moved[: chance.randint(0, len(moved))]:
        rename(one, names)
    return {name: bytes(files.get(number, b"")) for name, number in names.items()}


def folder_of(effect: Effect) -> str:
    """Return the folder whose names an effect changes, empty for the whole one."""
    return (effect.target or effect.name).rpartition("/")[0]


def _survive(effects: list[Effect], data: bytearray, chance: random.Random) -> None:
    """Some of the unsynced effects on one file reach the disk."""
    fate = chance.choice(["none", "all", "some", "sectors", "sectors"])
    kept = {"none": 0, "all": len(effects), "some": chance.randint(0, len(effects)), "sectors": 0}[fate]
    for effect in effects[:kept]:
        apply(effect, {effect.file: data})
    if fate in ("some", "sectors"):
        share = chance.choice([0.1, 0.5, 0.9])
        for effect in effects[kept : kept + 1 if fate == "some" else None]:
            for part in _sectors(effect):
                if chance.random() < share:
                    apply(part, {effect.file: data})


def _sectors(effect: Effect) -> list[Effect]:
    if effect.kind != "write":
        return [effect]
    end, parts, place = effect.place + len(effect.data), [], effect.place
    while place < end:
        until = min((place // SECTOR + 1) * SECTOR, end)
        parts.append(effect._replace(place=place, data=effect.data[place - effect.place : until - effect.place]))
        place = until
    return parts


class Cuts:
    """Power cuts of one recorded scenario.

    Args:
        name: of the scenario.
        folder: a new one.
        variant: the name of what is wrong with the program.
    """

    def __init__(self, name: str, folder: Path, variant: str = "unchanged") -> None:
        self._name, self._scenario, self._folder = name, SCENARIOS[name], folder
        self._commands = Commands(folder, VARIANTS[variant])
        write_stream(folder, 300)
        for ended in self._commands.run(*self._scenario.before):
            must(ended, "before the recording")
        self._begun = whole_lines((folder / OUT).read_bytes()) if (folder / OUT).exists() else []
        self._recording = record(folder, self._scenario.recorded, self._scenario.stdin, variant)

    def cut(self, chance: random.Random) -> None:
        """One power cut, the next run, and all checks.

        Raises:
            Refused: if the next run refused in one sentence, and everything else holds.
        """
        moment = chance.randint(0, len(self._recording.effects))
        disk = rebuild(self._recording, moment, chance)
        shutil.rmtree(self._folder)
        for name, data in disk.items():
            path = self._folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        witness, said = self._public(moment)
        ran, *others = self._commands.run(
            self._scenario.after(witness.last), ("releases", JOURNAL), AUDIT, STATUS, LIST
        )
        if not fine(ran) and "t is untouched" in ran.err:  # a torn output: without it the next run succeeds
            for path in self._folder.glob("out.*"):
                path.unlink()
            again, *others = self._commands.run(
                self._scenario.after(witness.last), ("releases", JOURNAL), AUDIT, STATUS, LIST
            )
            must(again, "publish without the torn output")
            self._check(again, others, witness, acknowledged=False)
        else:
            self._check(ran, others, witness, acknowledged=b"in force" in said)
        if ran.code == 2:
            raise Refused(f"{self._name}: {sentence(ran)}")

    def _public(self, moment: int) -> tuple[Witness, bytes]:
        """What anybody saw, and what else was said, before the power failed."""
        witness, said = Witness(), b""
        names = {name: number for number, name in enumerate(self._recording.start)}
        files = {number: bytearray(self._recording.start[name]) for name, number in names.items()}
        for effect in self._recording.effects[:moment]:
            apply(effect, files)
            rename(effect, names)
            said += effect.data if effect.kind == "say" else b""
        witness.hear(b"".join(self._begun))
        if OUT in names:
            witness.hear(bytes(files.get(names[OUT], b"")))
        if self._scenario.out == "-":
            witness.hear(said)
        return witness, said

    def _check(self, ran: Ended, others: list[Ended], witness: Witness, *, acknowledged: bool) -> None:
        releases, audit, status, listed = others
        if ran.code == 0:
            if self._scenario.out == "-":
                witness.hear(ran.out)
            elif self._scenario.out == OUT:
                self._read(witness)
            must(status, "status")
            if not clean(audit):
                raise Broken(f"audit: {audit!r}")
            if self._name == "users":
                _check_registry(listed, acknowledged=acknowledged)
            if (self._folder / "copy.journal").exists():
                must(self._commands.run(("verify", "copy.journal"))[0], "audit of the backup")
        for ended in (audit, status, listed, releases):
            clean(ended)
        if releases.code == 0:
            witness.hear(releases.out)
            witness.check()

    def _read(self, witness: Witness) -> None:
        try:
            witness.read(self._folder / OUT)
        except Broken as error:
            raise Unnoticed(f"output: {error}") from None


def _check_registry(listed: Ended, *, acknowledged: bool) -> None:
    held = {row["user"]: (row["window"], round(row["epsilon"] * 1e9)) for row in json.loads(listed.out)["users"]}
    asked = {**USERS, "1": (4, 500_000_000)}
    if held not in ([asked] if acknowledged else [USERS, asked]):
        raise Broken("an acknowledged change of the registry is gone, or half of one is there")


def cut_power(
    number: int, seed: int, folder: Path, *, names: tuple[str, ...] = (), each: int = 100, variant: str = "unchanged"
) -> dict[str, Any]:
    """So many power cuts, over the scenarios in turn, each recorded anew after `each` cuts.

    Raises:
        Broken: naming seed, scenario and cut.
    """
    begun, done, harmless, recordings = time.monotonic(), 0, 0, 0
    refusals, found = Counter[str](), Counter[str]()
    while done < number:
        name = (names or tuple(SCENARIOS))[recordings % len(names or SCENARIOS)]
        place = folder / f"power-{seed}-{recordings}"
        place.mkdir(parents=True)
        cuts = Cuts(name, place, variant)
        for cut in range(min(each, number - done)):
            try:
                cuts.cut(random.Random(f"power {seed} {recordings} {cut}"))
                harmless += 1
            except Refused as refusal:
                refusals[str(refusal)] += 1
            except Broken as error:
                if (what := known(error)) is None:
                    where = f"power cut of {name}, seed {seed}, recording {recordings}, cut {cut} ({place})"
                    raise Broken(f"{where}: {error}") from error
                found[what] += 1
            done += 1
        recordings += 1
        shutil.rmtree(place)
    seconds = round(time.monotonic() - begun, 1)
    return {
        "faults": done, "harmless": harmless, "refused": dict(refusals.most_common()), "known": dict(found.most_common()),
        "recordings": recordings, "seed": seed, "seconds": seconds,
    }  # fmt: skip
