"""Flipped bits, lost sectors and cut ends in the journal, its write-ahead log, its witness and outputs.

Each either changes nothing, or is named: by `publish` in one sentence (exit code 2), or by `verify`. A released slot
never gets other bytes.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.fault.campaign.commands import Commands, Ended, Variant, die_after, unchanged
from tests.fault.campaign.known import known
from tests.fault.campaign.lives import AUDIT, STATUS
from tests.fault.campaign.recording import contents
from tests.fault.campaign.registry_lives import LIST, parquet_rows
from tests.fault.campaign.sentences import sentence
from tests.fault.campaign.stream import JOURNAL, lines, live, publish, write_stream
from tests.fault.campaign.witness import Unnoticed, Witness, clean, fine, must
from tests.fault.killing import Broken

TARGETS = {"journal": "", "log": "-wal", "witness": ".witness"}
OUTPUTS = ("-", "out.ndjson", "out.csv", "out.parquet")
_WAYS = ("bit", "bits", "zeros", "noise", "cut", "cut sector", "empty")
_SECTOR = 512


def harm(data: bytes, chance: random.Random, most: int) -> bytes:
    """Damage somewhere before `most`: one flipped bit, some in one sector, a sector of zeros or noise, a cut."""
    way, harmed = chance.choice(_WAYS), bytearray(data)
    tries = [chance.randrange(min(most, len(data))) for _ in range(20)]
    place = next((one for one in tries if data[one]), tries[0])  # where something stands, rather than empty pages
    start = place // _SECTOR * _SECTOR
    sector = slice(start, min(start + _SECTOR, len(data)))
    if way == "bit":
        harmed[place] ^= 1 << chance.randrange(8)
    elif way == "bits":
        for _ in range(chance.randint(2, 8)):
            harmed[chance.randrange(sector.start, sector.stop)] ^= 1 << chance.randrange(8)
    elif way == "zeros":
        harmed[sector] = bytes(sector.stop - sector.start)
    elif way == "noise":
        harmed[sector] = chance.randbytes(sector.stop - sector.start)
    else:
        del harmed[{"cut": place, "cut sector": start, "empty": 0}[way] :]
    return bytes(harmed)


class Victim:
    """A stream with a past: memberships changed, another epoch, and a run that was killed, so that there is a log.

    Args:
        folder: a new one.
        out: where releases go.
        variant: what is wrong with the program.
        closed: whether a run after the crash put the log into the journal.
    """

    def __init__(self, folder: Path, out: str, variant: Variant = unchanged, *, closed: bool = False) -> None:
        self._folder, self._out = folder, out
        self._commands = Commands(folder, variant)
        write_stream(folder, 60)
        users = [("users", JOURNAL, action, user) for action, user in (("remove", "3"), ("erase", "5"))]
        change = ("users", JOURNAL, "set", "1", "--window", "4", "--epsilon", "0.5")
        epoch = publish(12, "--reconfigure", "--mechanism", "pba", people=False, out=out)
        heard = self._commands.run(publish(5, out=out), *users, publish(8, people=False, out=out), change, epoch)
        for ended in heard:
            must(ended, "before the damage")
        crashed = self._commands.run(lambda: die_after(16), live("--mechanism", "pba", out=out), stdin=lines(13, 16))
        if crashed[-1].code != -signal.SIGKILL:
            raise Broken(f"the crash before the damage did not happen: {crashed[-1]!r}")
        if closed or out == "out.parquet":  # which is written at the end of a run only
            must(self._commands.run(self._next(16))[0], "before the damage")
        self._begun = contents(folder)
        releases, listed = self._commands.run(("releases", JOURNAL), LIST)
        self._witness = Witness()
        self._witness.hear(must(releases, "releases").out)
        self._people = json.loads(must(listed, "users list").out)["users"]
        self._rows = self._commands.run(parquet_rows)[0].value
        self._restore(self._begun)

    def targets(self) -> list[str]:
        """The files that can be damaged."""
        named = {name: JOURNAL + ending for name, ending in TARGETS.items()}
        return [name for name, file in named.items() if self._begun.get(file)] + (
            ["output"] if self._out != "-" else []
        )

    def strike(self, target: str, chance: random.Random) -> str:
        """Damage a file, publish, audit; what became of it: harmless, or the sentence that names it."""
        name = self._out if target == "output" else JOURNAL + TARGETS[target]
        most = (
            chance.choice([512, 8192, 1 << 30]) if target == "witness" else 1 << 30
        )  # its records are at its beginning
        harmed = {**self._begun, name: harm(self._begun[name], chance, most)}
        self._restore(harmed)
        ran, releases, audit, status, listed = self._commands.run(
            self._next(18), ("releases", JOURNAL), AUDIT, STATUS, LIST
        )
        published, audited = fine(ran), clean(audit)
        for ended in (status, listed, releases):
            fine(ended)
        if published:
            self._check_output(ran)
        elif contents(self._folder).get(self._out) != harmed.get(self._out):
            raise Broken("publish refused, and changed the output")
        if releases.code == 0:
            self._check_releases(releases, named=not audited)
        if not published:
            return sentence(ran)
        if not audited:
            return "named by audit alone"
        self._check_people(listed)
        return "harmless"

    def _next(self, end: int) -> tuple[str, ...]:
        return publish(end, "--mechanism", "pba", people=False, out=self._out)

    def _check_output(self, ran: Ended) -> None:
        witness = self._witness.copy()
        if self._out == "-":
            witness.hear(ran.out)
        elif self._out == "out.ndjson":
            try:
                witness.read(self._folder / self._out)
            except Broken as error:
                raise Unnoticed(f"output: {error}") from None
        elif self._out == "out.csv":
            if not (self._folder / self._out).read_bytes().startswith(self._begun[self._out]):
                raise Unnoticed("output: a release stands in it with other bytes than it went out with")
        else:
            rows = self._commands.run(parquet_rows)[0].value
            if any(rows.get(slot) != values for slot, values in self._rows.items()):
                raise Broken("a release stands in the Parquet file with other values than before")
        witness.check()

    def _check_releases(self, releases: Ended, *, named: bool) -> None:
        witness = self._witness.copy()
        try:
            witness.hear(releases.out)
            witness.check()
        except Broken as error:
            raise Unnoticed(f"`releases` shows other bytes{' (audit names it)' if named else ''}: {error}") from None

    def _check_people(self, listed: Ended) -> None:
        if listed.code == 0 and json.loads(listed.out)["users"] != self._people:
            raise Unnoticed(
                "registry: publish goes on and the audit is clean with another registry than was acknowledged"
            )

    def _restore(self, files: dict[str, bytes]) -> None:
        shutil.rmtree(self._folder)
        self._folder.mkdir()
        for name, data in files.items():
            path = self._folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)


def strike(
    target: str, number: int, seed: int, folder: Path, *, each: int = 50, outs: tuple[str, ...] = OUTPUTS,
    variant: Variant = unchanged,
) -> dict[str, Any]:  # fmt: skip
    """Damage one kind of file so often; a new stream after `each`.

    Raises:
        Broken: naming seed, stream and strike.
    """
    begun, done, became, found, streams = time.monotonic(), 0, Counter[str](), Counter[str](), 0
    while done < number:
        out = outs[streams // 2 % len(outs)]
        place = folder / f"damage-{target.replace(' ', '-')}-{seed}-{streams}"
        streams += 1
        place.mkdir(parents=True)
        victim = Victim(place, out, variant, closed=target != "log" and streams % 2 == 0)
        if target in victim.targets():
            for index in range(min(each, number - done)):
                try:
                    became[victim.strike(target, random.Random(f"damage {target} {seed} {streams} {index}"))] += 1
                except Broken as error:
                    if (name := known(error)) is not None:
                        found[name] += 1
                        done += 1
                        continue
                    where = f"damaged {target} ({out}), seed {seed}, stream {streams}, strike {index} ({place})"
                    raise Broken(f"{where}: {error}") from error
                done += 1
        shutil.rmtree(place)
    harmless, audited = became.pop("harmless", 0), became.pop("named by audit alone", 0)
    seconds = round(time.monotonic() - begun, 1)
    return {
        "faults": done, "harmless": harmless, "named_by_audit": audited, "refused": dict(became.most_common()),
        "known": dict(found.most_common()), "streams": streams, "seed": seed, "seconds": seconds,
    }  # fmt: skip
