"""Streams whose `users`, `backup`, Parquet output and restores are killed."""

from __future__ import annotations

import json
import random
import shutil
import signal
from pathlib import Path
from typing import Any

from tests.fault.campaign.commands import Ended, Variant, die_after, unchanged
from tests.fault.campaign.lives import AUDIT, STATUS, Life
from tests.fault.campaign.stream import JOURNAL, OUT, USERS, lines, live, publish
from tests.fault.campaign.witness import Key, clean, fine, must
from tests.fault.killing import Broken

LIST = ("users", JOURNAL, "list", "--json")
_CLASSES = sorted(set(USERS.values()))


class Users(Life):
    """`users add`, `set`, `remove`, `erase` and `import`: all of a change or none of it, all of it once acknowledged."""

    slots = 400

    def __init__(self, folder: Path, chance: random.Random, variant: Variant = unchanged) -> None:
        super().__init__(folder, chance, variant)
        self._known: dict[str, Key] = dict(USERS)
        self._joined = 0
        self.settle()

    def round(self) -> bool:
        arguments, wanted = self._change()
        ended = self.killed(("users", JOURNAL, *arguments))
        died = ended.code == -signal.SIGKILL
        if not died:
            must(ended, "users")
        self._go_on([wanted] if not died else [self._known, wanted])
        return died

    def settle(self) -> None:
        self._go_on([self._known])
        self.check(*self.commands.run(AUDIT, STATUS))

    def _go_on(self, allowed: list[dict[str, Key]]) -> None:
        """A slot or two more: then the change is in force or was never made."""
        self.end = self.witness.last + self.chance.randint(1, 3)
        first = not self.witness.last
        ran, listed = self.commands.run(publish(self.end, people=first), LIST)
        must(ran, "publish")
        self.observe(ran)
        rows = json.loads(must(listed, "users list").out)["users"]
        self.witness.hold(rows)
        held = {row["user"]: (row["window"], round(row["epsilon"] * 1e9)) for row in rows}
        if held not in allowed:
            raise Broken("the registry is neither what it was nor what was asked for")
        self._known = held

    def _change(self) -> tuple[tuple[str, ...], dict[str, Key]]:
        """A command, and the registry that it asks for."""
        wanted, action = dict(self._known), self.chance.choice(["add", "set", "remove", "erase", "import"])
        if action == "import":
            return self._import()
        if action == "add" or len(wanted) < 6:
            self._joined += 1
            user, action = f"joined{self._joined}", "add"
        else:
            user = self.chance.choice(sorted(wanted))
        if action in ("remove", "erase"):
            del wanted[user]
            return (action, user), wanted
        wanted[user] = window, nano = self.chance.choice(_CLASSES)
        return (action, user, "--window", str(window), "--epsilon", f"{nano / 1e9:g}"), wanted

    def _import(self) -> tuple[tuple[str, ...], dict[str, Key]]:
        wanted = {user: key for user, key in self._known.items() if self.chance.random() < 0.9}
        for user in list(wanted):
            if self.chance.random() < 0.2:
                wanted[user] = self.chance.choice(_CLASSES)
        for _ in range(self.chance.randint(0, 3)):
            self._joined += 1
            wanted[f"joined{self._joined}"] = self.chance.choice(_CLASSES)
        rows = [f"{user},{window},{nano / 1e9:g}" for user, (window, nano) in wanted.items()]
        (self.folder / "wanted.csv").write_text("\n".join(["user,window,epsilon", *rows]) + "\n")
        return ("import", "wanted.csv", "--allow-removals"), wanted  # of few people, one in ten is soon exceeded


class Backups(Life):
    """`backup`: no target, the old one or a whole new one; the copy knows that it is one; the journal goes on."""

    def __init__(self, folder: Path, chance: random.Random, variant: Variant = unchanged) -> None:
        super().__init__(folder, chance, variant)
        self._copied = 0
        self.settle()

    def round(self) -> bool:
        must(self.commands.run(publish(self.witness.last + 1))[0], "publish")
        self.witness.read(self.folder / OUT)
        ended = self.killed(("backup", JOURNAL, "copy.journal", "--force"))
        died = ended.code == -signal.SIGKILL
        if not died:
            must(ended, "backup")
        self._check_copy(whole=not died)
        for partial in self.folder.glob(".copy.journal.*"):
            if partial.stat().st_mode & 0o077:
                raise Broken("what a killed backup left behind can be read by others")
            shutil.rmtree(partial)
        return died

    def _check_copy(self, *, whole: bool) -> None:
        if not (self.folder / "copy.journal").exists():
            if whole or self._copied:
                raise Broken("a backup is gone")
            return
        audit, status = self.commands.run(("verify", "copy.journal"), ("status", "copy.journal", "--json"))
        facts = json.loads(must(status, "status of the backup").out)
        if not clean(audit) or not facts["backup"]:
            raise Broken(f"the backup is not a whole one that knows that it is one: {audit!r}")
        if facts["slot"] not in ({self.witness.last} if whole else {self._copied, self.witness.last}):
            raise Broken("the backup is neither the old one nor the new one")
        self._copied = facts["slot"]


class Parquet(Life):
    """A Parquet output: the old file or the whole new one, every slot with the values it always had."""

    slots = 300

    def __init__(self, folder: Path, chance: random.Random, variant: Variant = unchanged) -> None:
        super().__init__(folder, chance, variant)
        self._rows: dict[int, Any] = {}

    def round(self) -> bool:
        self.end = self._last() + self.chance.randint(1, 4)
        ended = self.killed(publish(self.end, out="out.parquet"))
        died = ended.code == -signal.SIGKILL
        if not died:
            must(ended, "publish")
        self.midway += self._read(*self.commands.run(parquet_rows)) > 0 and died
        return died

    def settle(self) -> None:
        self.end = self._last() + 1
        steps = publish(self.end, out="out.parquet"), ("releases", JOURNAL), AUDIT, STATUS
        ran, releases, audit, status, table = self.commands.run(*steps, parquet_rows)
        must(ran, "publish")
        self._read(table)
        self.witness.hear(must(releases, "releases").out)
        self.end = self.witness.last
        for slot, line in self.witness.seen.items():
            values = [row[1] for row in self._rows[slot]]
            if values != (json.loads(line)["histogram"] or [None] * len(values)):
                raise Broken(f"slot {slot} has other values in the file than in the journal")
        self.check(audit, status)

    def _last(self) -> int:
        return max(self._rows, default=0)

    def _read(self, table: Ended) -> int:
        found, before = table.value, len(self._rows)
        if table.code != 0:
            raise Broken(f"the output cannot be read: {table!r}")
        for slot, rows in found.items():
            if self._rows.setdefault(slot, rows) != rows:
                raise Broken(f"slot {slot} has other values than before")
        if sorted(found) != list(range(1, self._last() + 1)):
            raise Broken("slots are missing in the output")
        return len(self._rows) - before


def parquet_rows() -> dict[int, list[tuple[str, float]]]:
    """The slots of a Parquet output; in a child, as DuckDB makes threads."""
    import duckdb

    path, slots = Path("out.parquet"), {}
    if path.exists() and path.stat().st_size:
        for slot, cell, value in duckdb.connect().execute(f"SELECT slot, cell, value FROM '{path}'").fetchall():
            slots.setdefault(slot, []).append((cell, value))
    return slots


class Restores(Life):
    """A backup put in the place of a journal that is gone or damaged, after a crash that left its log behind."""

    rounds = 30
    slots = 80

    def __init__(self, folder: Path, chance: random.Random, variant: Variant = unchanged) -> None:
        super().__init__(folder, chance, variant)
        known, self._through = chance.randint(2, 8), chance.randint(9, 14)
        users = ("users", JOURNAL, "set", "1", "--window", "4", "--epsilon", "0.5")
        steps = publish(known), ("backup", JOURNAL, "copy.journal"), users, publish(self._through - 2, people=False)
        for ended in self.commands.run(*steps):
            must(ended, "before the restore")
        self.witness.read(folder / OUT)
        self._crash()
        self._begun = self.witness.copy()
        self._saved = folder.with_name(folder.name + "-begun")
        shutil.copytree(folder, self._saved)

    def round(self) -> bool:
        shutil.rmtree(self.folder)
        shutil.copytree(self._saved, self.folder)
        self.witness = self._begun.copy()
        ended = self._restore(kill=True)
        if ended.code != -signal.SIGKILL:
            must(ended, "restore")
        return ended.code == -signal.SIGKILL

    def settle(self) -> None:
        """Restore again, whatever the kill left, then publish: slots that went out stay as they are."""
        self.end = self._through + self.chance.randint(1, 12)
        fine(self._restore(kill=False))
        accepted = publish(self.end, "--accept-lost-changes", people=False)  # the backup lacks a change of user 1
        ran, audit, status = self.commands.run(accepted, AUDIT, STATUS)
        must(ran, "publish")
        self.observe(ran)
        self.check(audit, status)

    def _crash(self) -> None:
        """The last slots before the restore: live, and killed when they are out."""
        text = lines(self.witness.last + 1, self._through)

        self.commands.run(lambda: die_after(self._through), live(), stdin=text)
        self.witness.read(self.folder / OUT)
        if self.witness.last != self._through or not (self.folder / f"{JOURNAL}-wal").stat().st_size:
            raise Broken("the crash before the restore left no write-ahead log")
        journal = self.folder / JOURNAL
        if self.chance.random() < 0.5:
            journal.unlink()
        else:
            journal.write_bytes(self.chance.randbytes(journal.stat().st_size))

    def _restore(self, *, kill: bool) -> Ended:
        asked = ("restore", "copy.journal", JOURNAL, "--released-through", str(self._through))
        return self.killed(asked) if kill else self.commands.run(asked)[-1]
