"""Who saw every byte that ever went out, and adds up what it cost: the campaign's own checker.

It shares nothing with the ledger, the registry or the audit. It has the emitted lines, and who held which requirement in
which slot (`wevent users list`). From these it works out the class that each user is counted in (spec 15.1).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

from tests.fault.campaign.commands import Ended
from tests.fault.killing import Broken
from tests.support.accountant import Accountant
from tests.support.emitted import charges_of
from tests.support.window_checker import violated_windows

Key = tuple[int, int]


class Unnoticed(Broken):
    """Damage that nothing named, though nothing that went out later is wrong."""


class Witness:
    """What went out, slot by slot."""

    def __init__(self) -> None:
        self.seen: dict[int, bytes] = {}
        self._held: dict[int, dict[str, Key]] = {}

    @property
    def last(self) -> int:
        """The last slot that anybody saw."""
        return max(self.seen, default=0)

    def copy(self) -> Witness:
        """A witness of a stream that goes on from here."""
        other = Witness()
        other.seen, other._held = dict(self.seen), dict(self._held)
        return other

    def hear(self, data: bytes) -> int:
        """Standard output: whole lines, slots may come again, with the same bytes only. Returns how many are new."""
        before = len(self.seen)
        for line in whole_lines(data):
            slot = slot_of(line)
            if self.seen.setdefault(slot, line) != line:
                raise Broken(f"slot {slot} went out twice with different bytes")
        return len(self.seen) - before

    def read(self, path: Path) -> int:
        """A file of releases: every slot once, in order, without a gap, none gone. Returns how many are new."""
        before, found = len(self.seen), whole_lines(path.read_bytes() if path.exists() else b"")
        for place, line in enumerate(found, start=1):
            if slot_of(line) != place:
                raise Broken(f"line {place} of the output is slot {slot_of(line)}")
            if self.seen.setdefault(place, line) != line:
                raise Broken(f"slot {place} stands in the output with other bytes than it went out with")
        if len(found) < self.last:
            raise Broken(f"the output ends with slot {len(found)}, but slot {self.last} went out")
        return len(self.seen) - before

    def hold(self, registered: Iterable[dict[str, object]]) -> None:
        """Note who holds what in the slots that went out since the last call, as `users list --json` says."""
        rows = [(str(row["user"]), (row["window"], round(row["epsilon"] * 1e9)), row["from"]) for row in registered]  # type: ignore[operator]
        for slot in sorted(set(self.seen) - set(self._held)):
            self._held[slot] = {user: key for user, key, first in rows if first <= slot}  # type: ignore[operator,misc]

    def check(self) -> None:
        """No gap, no class's window overspent, nor any person's, as far as memberships were told."""
        if sorted(self.seen) != list(range(1, self.last + 1)):
            raise Broken("slots are missing")
        charged = [charges_of(self.seen[slot]) for slot in sorted(self.seen)]
        if violated_windows(charged):
            raise Broken(f"a window was overspent: {violated_windows(charged)[0]}")
        accountant = Accountant()
        last: dict[str, dict[Key, int]] = defaultdict(
            dict
        )  # of each user: requirement → last slot in which it was held
        for slot in range(1, max(self._held, default=0) + 1):
            costs, losses = {key: sum(cost) for key, cost in charged[slot - 1].items()}, {}
            for user, key in self._held[slot].items():
                last[user][key] = slot
                in_force = [held for held, end in last[user].items() if slot < end + held[0]]
                losses[user] = costs[counting_class(in_force, costs)]
            accountant.write(slot, self._held[slot], losses)
        if accountant.overspent():
            raise Broken(f"a person's window was overspent: {accountant.overspent()[0]}")


def counting_class(in_force: list[Key], classes: Iterable[Key]) -> Key:
    """Return the loosest class that is at least as strict as all requirements in force.

    Raises:
        Broken: if the slot has none.
    """
    strict = [key for key in classes if all(key[0] >= window and key[1] <= nano for window, nano in in_force)]
    if not strict:
        raise Broken(f"no class is as strict as {in_force}")
    return max(strict, key=lambda key: (Fraction(key[1], key[0]), key[1]))


def whole_lines(data: bytes) -> list[bytes]:
    """Lines that end with a line break."""
    return data[: data.rfind(b"\n") + 1].splitlines(keepends=True)


def slot_of(line: bytes) -> int:
    """The slot of a release."""
    try:
        return int(json.loads(line)["slot"])
    except (ValueError, KeyError, TypeError):
        raise Broken(f"a line that is no release went out: {line[:80]!r}") from None


def fine(ended: Ended) -> bool:
    """Whether a command succeeded; False if it refused in one sentence; anything else breaks the promise.

    Raises:
        Broken: for a traceback, a death, another exit code, or a refusal without its one sentence.
    """
    if "Traceback" in ended.err or ended.code not in (0, 2):
        raise Broken(f"neither success nor a refusal: {ended!r}")
    if ended.code == 2 and sum(line.startswith("Error: ") for line in ended.err.splitlines()) != 1:
        raise Broken(f"a refusal without one sentence: {ended!r}")
    return ended.code == 0


def clean(ended: Ended) -> bool:
    """Whether an audit is clean; False if it names a violation or refuses the journal in one sentence."""
    if ended.code == 1 and "Traceback" not in ended.err and b"VIOLATION" in ended.out:
        return False
    return fine(ended)


def must(ended: Ended, what: str) -> Ended:
    """A command that has no reason to refuse."""
    if not fine(ended):
        raise Broken(f"{what} was refused: {ended!r}")
    return ended
