"""Streams that are killed again and again: publishing files and live lines, compaction, and changes of the epoch.

A life is one stream. Each round kills one command at a random moment; what it made public is read right after its
death. Now and then, and at the end, a run that nobody kills must succeed, and everything must add up.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
from pathlib import Path

from tests.fault.campaign.commands import Commands, Ended, Step, Variant, unchanged
from tests.fault.campaign.stream import JOURNAL, OUT, lines, live, publish, write_stream
from tests.fault.campaign.witness import Witness, clean, must
from tests.fault.killing import Broken

AUDIT, STATUS = ("verify", JOURNAL), ("status", JOURNAL, "--json")


class Life:
    """A stream of files; the base of the others.

    Args:
        folder: a new one.
        chance: decides everything but when exactly the machine gets to a place.
        variant: what is wrong with the program.
    """

    rounds = 40  # a new stream after so many: early and late slots are both killed
    slots = 600

    def __init__(self, folder: Path, chance: random.Random, variant: Variant = unchanged) -> None:
        self.folder, self.chance = folder, chance
        self.commands = Commands(folder, variant)
        self.witness = Witness()
        self.end = 0
        self.midway = 0  # kills after something new had gone out
        write_stream(folder, self.slots)

    def round(self) -> bool:
        """Kill a command once; whether it was killed, or done before."""
        self.end = self.witness.last + self.chance.randint(2, 10)
        return self._observe(self.killed(publish(self.end)))

    def settle(self) -> None:
        """A run that nobody kills, an audit and a status: all succeed, all adds up."""
        self.end = self.witness.last + 1
        ran, audit, status = self.commands.run(publish(self.end), AUDIT, STATUS)
        must(ran, "publish")
        self.observe(ran)
        self.check(audit, status)

    def check(self, audit: Ended, status: Ended) -> None:
        """What must hold after every run that nobody killed."""
        must(status, "status")
        if not clean(audit):
            raise Broken(f"audit: {audit!r}")
        if json.loads(status.out)["slot"] != self.witness.last:
            raise Broken(f"the journal ends with another slot than went out: {status.out!r}")
        self.witness.check()

    def observe(self, ended: Ended) -> int:
        """Read what went out; returns how many slots are new."""
        return self.witness.read(self.folder / OUT)

    def killed(self, *steps: Step, stdin: bytes = b"") -> Ended:
        """Steps that are killed at a random moment: how the last one that began ended."""
        share, by_time = self.chance.uniform(0.0, 1.1), self.chance.random() < 0.5
        return self.commands.killed(type(self).__name__, share, *steps, stdin=stdin, by_time=by_time)[-1]

    def _observe(self, ended: Ended) -> bool:
        new = self.observe(ended)
        if ended.code == -signal.SIGKILL:
            self.midway += new > 0
            return True
        must(ended, "publish")
        return False


class Live(Life):
    """Lines through a pipe; every other life sends releases to standard output, where slots may come again."""

    def __init__(self, folder: Path, chance: random.Random, variant: Variant = unchanged) -> None:
        super().__init__(folder, chance, variant)
        self._out = chance.choice(["-", OUT])

    def round(self) -> bool:
        self.end = self.witness.last + self.chance.randint(2, 10)
        return self._observe(self.killed(live(out=self._out), stdin=lines(self.witness.last + 1, self.end)))

    def settle(self) -> None:
        self.end = self.witness.last + 2
        text = lines(max(self.witness.last, 1), self.end)
        ran = self.commands.run(live(out=self._out), stdin=text)[0]
        must(ran, "publish")
        self.observe(ran)
        self.end = self.witness.last
        self.check(*self.commands.run(AUDIT, STATUS))

    def observe(self, ended: Ended) -> int:
        return self.witness.hear(ended.out) if self._out == "-" else super().observe(ended)


class Compaction(Life):
    """Slots 250 to 262 with --keep: slot 256 makes the journal drop old ones. Every round begins at slot 250 again."""

    rounds = 60
    slots = 300

    def __init__(self, folder: Path, chance: random.Random, variant: Variant = unchanged) -> None:
        super().__init__(folder, chance, variant)
        must(self.commands.run(publish(250))[0], "publish")
        self.witness.read(folder / OUT)
        self._begun = self.witness.copy()
        self._saved = folder.with_name(folder.name + "-begun")
        shutil.copytree(folder, self._saved)

    def round(self) -> bool:
        shutil.rmtree(self.folder)
        shutil.copytree(self._saved, self.folder)
        self.witness = self._begun.copy()
        return self._observe(self.killed(publish(262, "--keep", "1")))

    def settle(self) -> None:
        self.end = max(264, self.witness.last)
        ran, audit, status = self.commands.run(publish(self.end, "--keep", "1"), AUDIT, STATUS)
        must(ran, "publish")
        self.observe(ran)
        self.check(audit, status)


class Epochs(Life):
    """A new epoch every round: another mechanism from some slot on, and never back unasked."""

    _mechanisms = ("pbd", "pba", "pbu", "pft")

    def __init__(self, folder: Path, chance: random.Random, variant: Variant = unchanged) -> None:
        super().__init__(folder, chance, variant)
        self._in_force = "pft"
        self._asked = ["pft"]  # since the last slot that went out, and the one of that slot
        must(self.commands.run(publish(3))[0], "publish")
        self.witness.read(folder / OUT)

    def round(self) -> bool:
        self.end = self.witness.last + self.chance.randint(1, 5)
        wanted = self.chance.choice([one for one in self._mechanisms if one != self._in_force])
        before = self.witness.last
        died = self._observe(self.killed(publish(self.end, "--reconfigure", "--mechanism", wanted)))
        self._check_mechanisms(before, wanted)
        return died

    def settle(self) -> None:
        self.end = self.witness.last + 1
        asked = publish(self.end, "--mechanism", self._in_force)
        status = self.commands.run(STATUS)[0]
        must(status, "status")
        if (
            json.loads(status.out)["mechanism"] != self._in_force
            and self.witness.last == json.loads(status.out)["slot"]
        ):
            raise Broken("an epoch is in force that no slot went out under")
        if json.loads(status.out)["mechanism"] != self._in_force:  # its first slot was committed, and not yet emitted
            asked = publish(self.end, "--mechanism", json.loads(status.out)["mechanism"])
        before = self.witness.last
        ran = self.commands.run(asked)[0]
        if ran.code == 2:  # the first slot of a version was written ahead, and this run stored it
            begun = json.loads(self.commands.run(STATUS)[0].out)["mechanism"]
            asked = publish(self.end + 1, "--mechanism", begun)
            ran = self.commands.run(asked)[0]
        audit, status = self.commands.run(AUDIT, STATUS)
        must(ran, "publish")
        self.observe(ran)
        self._check_mechanisms(before, asked[-1])
        self.check(audit, status)

    def _check_mechanisms(self, before: int, wanted: str) -> None:
        """Mechanisms follow each other in the order in which they were asked for; some may have come to no slot."""
        self._asked.append(wanted)
        for slot in range(before + 1, self.witness.last + 1):
            used = json.loads(self.witness.seen[slot])["mechanism"]
            if used not in self._asked:
                raise Broken(f"{used} went out in slot {slot} where {self._asked} were asked for, in this order")
            self._asked = self._asked[self._asked.index(used) :]
        self._in_force = self._asked[0]
