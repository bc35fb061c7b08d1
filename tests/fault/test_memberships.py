"""Ways around the hold-out, each tried with the shipped commands: restores, strangers, copies (spec 10)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from wevent.cli import main

RunCommand = Callable[..., tuple[int, str, str]]
START = datetime(2026, 1, 1, tzinfo=UTC)
ENDINGS = ("-wal", "-shm")


class Stream:
    """A stream in a folder of its own, driven through the command line."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd = capfd
        self.wishes = {f"m{user}": (20, "0.5") for user in range(12)}
        self.options: tuple[str, ...] = ("--declare", "100,0.1", "--mechanism", "pbu")
        Path("events.csv").write_text("time,user,cell\n2026-01-01T00:00:00Z,m0,0\n")

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        out, err = self._capfd.readouterr()
        return int(caught.value.code or 0), out, err

    def publish(self, last: int, *more: str, code: int = 0) -> str:
        """Publish through a slot; what it said."""
        end = (START + timedelta(minutes=last)).isoformat()
        arguments = ("--slot", "60s", "--start", START.isoformat(), "--end", end, "--cells", "2")
        places = ("--journal", "run.journal", "--out", "out.ndjson")
        found, _, err = self("publish", "events.csv", *arguments, *places, *self.options, *more)
        assert found == code, err
        return err

    def require(self) -> tuple[str, ...]:
        """The requirements file as it is now."""
        rows = [f"{user},{window},{epsilon}" for user, (window, epsilon) in self.wishes.items()]
        Path("users.csv").write_text("\n".join(["user,window,epsilon", *rows]) + "\n")
        return ("--requirements", "users.csv")

    def users(self, *arguments: str, code: int = 0) -> str:
        found, _, err = self("users", "run.journal", *arguments)
        assert found == code, err
        return err

    def set(self, user: str, window: int, epsilon: str) -> None:
        self.users("set" if user in self.wishes else "add", user, "--window", str(window), "--epsilon", epsilon)
        self.wishes[user] = window, epsilon

    def counts_from(self, user: str) -> int:
        found = {
            one["user"]: one["from"] for one in json.loads(self("users", "run.journal", "list", "--json")[1])["users"]
        }
        return int(found[user])

    def backup(self) -> None:
        assert self("backup", "run.journal", "backup.journal")[0] == 0

    def restore(self, *, side_file: bool) -> None:
        for ending in ENDINGS:
            Path("run.journal" + ending).unlink(missing_ok=True)
        shutil.copy("backup.journal", "run.journal")
        if not side_file:
            Path("run.journal.lock").unlink()

    def audit(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self("audit", "run.journal", "--json")[1])["violations"]
        return found

    def charges(self) -> dict[int, dict[tuple[int, int], int]]:
        """What every class was charged in every slot."""
        from wevent.journal import SqliteJournal

        with SqliteJournal("run.journal") as journal:
            return {
                record.slot: dict(
                    zip(
                        ((one.window, one.nano) for one in record.group.population.classes),
                        (record.probe + record.publication).tolist(),
                        strict=True,
                    )
                )
                for record in journal.releases()
            }

    def sizes(self) -> dict[int, dict[tuple[int, int], int]]:
        """n_g of every slot, as the journal has them."""
        database = apsw.Connection("run.journal")
        query = "SELECT slot, data FROM slots JOIN populations ON population = id ORDER BY slot"
        rows: list[Any] = database.execute(query).fetchall()
        database.close()
        return {slot: {(row[0], row[1]): row[2] for row in json.loads(data)["classes"]} for slot, data in rows}


@pytest.fixture
def stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Stream:
    monkeypatch.chdir(tmp_path)
    return Stream(capfd)


class TestRestoredBackup:
    """A backup forgets every hold-out decided after it."""

    def life(self, stream: Stream) -> None:
        stream.publish(10, *stream.require())
        stream.backup()
        stream.set("u", 100, "0.1")
        stream.publish(60)
        stream.set("u", 5, "1.0")
        assert stream.counts_from("u") == 160
        stream.publish(120)

    @pytest.mark.parametrize("side_file", [True, False])
    def test_who_changed_after_it_waits_the_widest_window(self, stream: Stream, side_file: bool) -> None:
        self.life(stream)
        stream.restore(side_file=side_file)
        stream.publish(121, *stream.require(), "--released-through", "120", "--widest-window", "100")
        assert stream.counts_from("u") == 220
        stream.publish(230)
        assert [slot for slot, sizes in stream.sizes().items() if sizes.get((5, 10**9))] == list(range(220, 231))
        assert stream.audit() == []

    def test_nobody_changes_the_registry_of_a_copy(self, stream: Stream) -> None:
        self.life(stream)
        stream.restore(side_file=False)
        for arguments in (("import", "users.csv"), ("add", "u", "--window", "5", "--epsilon", "1.0"), ("remove", "m1")):
            assert "--released-through" in stream.users(*arguments, code=2)

    def test_nor_of_an_old_file_put_back_in_place(self, stream: Stream) -> None:
        stream.publish(10, *stream.require())
        shutil.copy("run.journal", "backup.journal")
        stream.publish(20)
        stream.restore(side_file=True)
        assert "knows slot 20" in stream.users("remove", "m1", code=2)

    def test_the_side_file_proves_who_changed_nothing(self, stream: Stream) -> None:
        self.life(stream)
        stream.restore(side_file=True)
        stream.publish(125, *stream.require(), "--released-through", "120")
        assert {stream.counts_from(f"m{user}") for user in range(12)} == {1}
        assert stream.sizes()[121][20, 5 * 10**8] == 12
        assert stream.audit() == []

    def test_without_it_everybody_waits(self, stream: Stream) -> None:
        self.life(stream)
        stream.restore(side_file=False)
        err = stream.publish(125, *stream.require(), "--released-through", "120", code=2)
        assert "--widest-window" in err
        stream.publish(125, *stream.require(), "--released-through", "120", "--widest-window", "100")
        assert {stream.counts_from(f"m{user}") for user in range(12)} == {220}
        assert stream.sizes()[121][20, 5 * 10**8] == 0
        assert stream.audit() == []

    def test_a_mark_older_than_what_went_out_proves_nothing(self, stream: Stream) -> None:
        """Journal and side file rolled back together, as by a snapshot of the folder."""
        stream.publish(10, *stream.require())
        stream.backup()
        shutil.copy("run.journal.lock", "side")
        stream.set("m1", 5, "1.0")
        stream.publish(30)
        stream.restore(side_file=True)
        shutil.copy("side", "run.journal.lock")
        err = stream.publish(31, "--released-through", "30", code=2)
        assert "--widest-window" in err
        stream.publish(31, "--released-through", "30", "--widest-window", "100")
        assert stream.counts_from("m1") == 130

    def test_the_widest_window_may_be_of_an_epoch_that_was_lost(self, stream: Stream) -> None:
        stream.publish(10, *stream.require())
        stream.backup()
        stream.publish(15, "--new-epoch", "--declare", "300,0.5")
        stream.set("u", 300, "0.5")
        stream.publish(20)
        stream.restore(side_file=True)
        stream.wishes["u"] = (5, "1.0")
        stream.publish(21, *stream.require(), "--released-through", "20")
        assert stream.counts_from("u") == 320
        assert stream.counts_from("m0") == 1

    def test_a_backup_of_a_backup_that_went_on_proves_nothing(self, stream: Stream) -> None:
        """Revisions of two lines of one journal cannot be compared."""
        self.life(stream)
        stream.restore(side_file=True)
        stream.publish(125, *stream.require(), "--released-through", "120")
        stream.restore(side_file=True)
        assert "--widest-window" in stream.publish(130, "--released-through", "125", code=2)

    def test_a_class_that_opened_elsewhere_waits_for_its_own_window(self, stream: Stream) -> None:
        """m1 was to begin in slot 30 in a class that had no charges yet: elsewhere it did, and was charged."""
        stream.publish(10, *stream.require())
        stream.set("m1", 7, "0.7")
        assert stream.counts_from("m1") == 30
        stream.publish(11)
        stream.backup()
        stream.publish(40)
        assert stream.sizes()[35][7, 7 * 10**8] == 1
        stream.restore(side_file=True)
        stream.publish(60, "--released-through", "40")
        assert stream.counts_from("m1") == 30  # its class is charged for these slots like any other
        assert stream.charges()[40][7, 7 * 10**8] == 7 * 10**8
        assert stream.audit() == []

    def test_a_class_nobody_here_knew_waits_for_its_own_window(self, stream: Stream) -> None:
        stream.publish(10, *stream.require())
        stream.backup()
        stream.publish(40)
        stream.restore(side_file=True)
        stream.publish(41, "--released-through", "40")
        stream.set("x", 7, "0.7")
        assert stream.counts_from("x") == 47
        stream.users("remove", "x")
        del stream.wishes["x"]
        stream.set("x", 7, "0.7")
        assert stream.counts_from("x") == 47
        stream.publish(60)
        assert stream.audit() == []

    def test_a_restore_that_crashed_before_its_mark_is_no_other_copy(self, stream: Stream) -> None:
        """The side file then still has the link of the lost journal for the last slot that went out."""
        self.life(stream)
        side = Path("run.journal.lock").read_bytes()
        stream.restore(side_file=True)
        stream.publish(120, *stream.require(), "--released-through", "120")
        Path("run.journal.lock").write_bytes(side)
        stream.publish(125)
        assert stream.counts_from("u") == 220
        assert stream.audit() == []

    def test_revisions_of_a_copy_that_went_on_prove_nothing(self, stream: Stream) -> None:
        """Both copies have the same number of changes, but not the same ones."""
        stream.publish(30, *stream.require())
        for ending in ("", ".lock"):
            shutil.copy("run.journal" + ending, "copy.journal" + ending)
        stream.set("m1", 5, "1.0")
        stream.publish(60)
        assert stream("users", "copy.journal", "add", "q", "--window", "20", "--epsilon", "1")[0] == 0
        Path("run.journal-wal").unlink(missing_ok=True)
        Path("run.journal-shm").unlink(missing_ok=True)
        shutil.copy("copy.journal", "run.journal")
        assert "--widest-window" in stream.publish(61, "--released-through", "60", code=2)

    def test_who_was_forgotten_elsewhere_may_have_been_a_stranger(self, stream: Stream) -> None:
        stream.options = ("--mechanism", "pbu", "--unknown-users", "5")
        stream.publish(3, *stream.require())
        stream.users("remove", "m1")
        stream.publish(4)
        stream.backup()
        stream.publish(40)
        stream.restore(side_file=True)
        stream.publish(41, "--released-through", "40")
        del stream.wishes["m1"]
        stream.publish(42, "--new-epoch", "--declare", "80,0.5")
        stream.set("m1", 4, "0.9")
        assert stream.counts_from("m1") >= 60
        assert stream.audit() == []

    def test_a_copy_that_dropped_the_marked_slot_is_not_taken_for_the_journal(self, stream: Stream) -> None:
        stream.publish(300, *stream.require())
        shutil.copy("run.journal", "copy.journal")
        stream.publish(310)
        end = (START + timedelta(minutes=1100)).isoformat()
        arguments = ("--slot", "60s", "--start", START.isoformat(), "--end", end, "--cells", "2", "--keep", "100")
        places = ("--journal", "copy.journal", "--out", "copy.ndjson")
        stated = ("--released-through", "300")
        assert stream("publish", "events.csv", *arguments, *places, *stream.options, *stated)[0] == 0
        for ending in ENDINGS:
            Path("run.journal" + ending).unlink(missing_ok=True)
        shutil.copy("copy.journal", "run.journal")
        assert "one that dropped it" in stream.publish(1110, code=2)

    def test_slots_that_no_copy_lost_hold_nobody_out(self, stream: Stream) -> None:
        stream.publish(10, *stream.require())
        stream.backup()
        stream.restore(side_file=False)
        stream.publish(12, "--released-through", "10")
        assert stream.counts_from("m0") == 1
        assert stream.audit() == []


class TestAuditOfHonestJournals:
    """Nothing is found where nothing is wrong."""

    def test_a_journal_without_a_slot(self, stream: Stream) -> None:
        stream.publish(1, *stream.require(), "--strict")
        from wevent.journal import SqliteJournal

        with SqliteJournal("run.journal") as journal:
            terms = journal.head().epoch.terms
        with SqliteJournal("empty.journal", write=True) as journal:
            journal.begin(terms)
        code, _, err = stream("audit", "empty.journal")
        assert code == 0, err

    def test_memberships_forgotten_at_the_boundary_of_a_wider_epoch(self, stream: Stream) -> None:
        stream.wishes = {f"m{user}": (5, "0.5") for user in range(4)}
        stream.options = ("--mechanism", "pbu")
        stream.publish(10, *stream.require())
        stream.users("remove", "m1")
        stream.publish(14)
        stream.users("remove", "m2")
        stream.publish(20, "--new-epoch", "--declare", "30,0.5")
        assert stream.audit() == []


class TestStrangers:
    """A stranger is an id that the registry does not know at all."""

    UNKNOWN = (20, 25 * 10**7)

    def begin(self, stream: Stream, last: int, *users: str) -> None:
        """Everybody in `users` has an event in cell 1 of every slot; strangers count, up to 50."""
        stream.options = ("--mechanism", "uniform", "--unknown-users", "50", "--round")
        rows = [
            f"{(START + timedelta(minutes=minute)).isoformat()},{user},1" for minute in range(last) for user in users
        ]
        Path("events.csv").write_text("\n".join(["time,user,cell", *rows]) + "\n")

    def rejected(self, text: str) -> int:
        return int(text.split(" rejected")[0].split()[-1]) if " rejected" in text else 0

    @pytest.mark.parametrize("change", ["set", "remove", "erase"])
    def test_whom_the_registry_knows_is_none(self, stream: Stream, change: str) -> None:
        self.begin(stream, 30, "m1", "x")
        assert self.rejected(stream.publish(5, *stream.require())) == 50  # those of later slots
        arguments = ("--window", "20", "--epsilon", "0.9") if change == "set" else ()
        stream.users(change, "m1", *arguments)
        text = stream.publish(10)
        assert self.rejected(text) - 40 == 5  # m1 is neither a member nor a stranger, x is one
        assert stream.audit() == []

    def test_who_was_forgotten_is_a_stranger_again(self, stream: Stream) -> None:
        self.begin(stream, 60, "m1")
        stream.publish(5, *stream.require())
        stream.users("remove", "m1")
        assert self.rejected(stream.publish(24)) - 36 == 19
        assert self.rejected(stream.publish(60)) < 19  # last membership slot 5, widest window 20

    def test_a_joiner_waits_for_the_unknown_class(self, stream: Stream) -> None:
        self.begin(stream, 2, "m1")
        stream.publish(5, *stream.require())
        stream.set("x", 5, "1.0")
        assert stream.counts_from("x") == 5 + 20
        stream.publish(30)
        assert stream.audit() == []

    @pytest.mark.parametrize("relation", ["add_remove", "replace"])
    def test_who_joins_under_the_class_of_strangers_itself_waits_where_that_is_half_of_what_they_may_have_lost(
        self, stream: Stream, relation: str
    ) -> None:
        self.begin(stream, 2, "m1")
        stream.options = ("--mechanism", "pbu", "--unknown-users", "50", "--neighbours", relation)
        stream.publish(5, *stream.require())
        window, epsilon = 20, "0.25" if relation == "add_remove" else "0.5"
        stream.set("x", window, epsilon)
        assert stream.counts_from("x") == (5 + 20 if relation == "add_remove" else 6)
        stream.publish(30)
        assert stream.audit() == []
        if relation == "add_remove":
            with apsw.Connection("run.journal") as database:  # as a version without that rule stored it
                database.execute("UPDATE members SET first = 6 WHERE user = 'x' AND last IS NULL")
            assert any("may have been a stranger" in finding["problem"] for finding in stream.audit())

    def test_a_second_wish_does_not_shorten_the_wait(self, stream: Stream) -> None:
        self.begin(stream, 2, "m1")
        stream.publish(5, *stream.require())
        stream.set("x", 5, "1.0")
        stream.publish(7)
        stream.set("x", 4, "0.9")
        assert stream.counts_from("x") == 25
        stream.users("remove", "x")
        stream.publish(9)
        del stream.wishes["x"]
        stream.set("x", 4, "0.9")
        assert stream.counts_from("x") == 25
        assert stream.audit() == []

    def test_who_is_there_from_the_start_waits_for_nothing(self, stream: Stream) -> None:
        self.begin(stream, 2, "m1")
        stream.publish(5, *stream.require())
        assert stream.counts_from("m1") == 1

    def test_an_epoch_with_another_class_for_strangers_waits(self, stream: Stream) -> None:
        self.begin(stream, 60, "x", "y")
        stream.publish(5, *stream.require())
        stream.publish(40, "--new-epoch", "--declare", "10,0.2")
        sizes = stream.sizes()
        assert [slot for slot in sizes if sizes[slot].get(self.UNKNOWN)] == list(range(1, 6))
        assert [slot for slot in sizes if sizes[slot].get((20, 10**8))] == list(range(25, 41))
        assert stream.audit() == []

    def test_nobody_can_pose_as_an_erased_id(self, stream: Stream) -> None:
        self.begin(stream, 5, "m1")
        stream.publish(3, *stream.require())
        assert "does not begin with" in stream.users("add", "erased:00", "--window", "20", "--epsilon", "1", code=2)


class TestLevels:
    """An edited level table is a change for everybody on that level, however they came to it."""

    @pytest.mark.parametrize("how", ["imported", "queued", "set"])
    def test_words_follow_the_table(self, stream: Stream, how: str) -> None:
        table = "[levels.privacy]\nHigh = {}\nLow = 0.9\n[levels.window]\nSmall = 4\nLarge = 8\n"
        Path("levels.toml").write_text(table.format(0.5))
        Path("users.csv").write_text("user,privacy,window\nm1,High,Small\nm2,Low,Large\n")
        stream.options = ("--mechanism", "pbu", "--config", "levels.toml")
        stream.publish(5, "--requirements", "users.csv")
        user = "m1"
        if how != "imported":
            user = "x"
            if how == "queued":  # asked for while another process publishes
                from wevent.journal import SqliteJournal
                from wevent.people.membership import Change

                with SqliteJournal("run.journal") as journal:
                    journal.registry.ask([Change("set", "x", (8, 5 * 10**8), "High/Large")])
            else:
                stream.users("add", "x", "--privacy", "High", "--window", "Large")
        Path("levels.toml").write_text(table.format(0.1))
        stream.publish(8, "--new-epoch")
        found = {one["user"]: one for one in json.loads(stream("users", "run.journal", "list", "--json")[1])["users"]}
        assert found[user]["epsilon"] == 0.1
        assert found["m2"]["epsilon"] == 0.9
        assert stream.audit() == []


class TestAuditOfMemberships:
    """The audit reads every history; what it is told by the rows must follow the rules, and add up."""

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE members SET nano = nano + 4000000 WHERE user = 'm1'",
            "UPDATE members SET first = first + 1 WHERE user = 'm1'",
            "UPDATE members SET level = 'High/Small' WHERE user = 'm1'",
            "DELETE FROM members WHERE user = 'm1'",
            "INSERT INTO members VALUES ('z', 20, 500000000, NULL, 1, 40, NULL)",
            "UPDATE members SET user = 'n1' WHERE user = 'm1'",
        ],
    )
    def test_an_edited_registry_does_not_add_up(self, stream: Stream, statement: str) -> None:
        stream.publish(10, *stream.require())
        database = apsw.Connection("run.journal")
        database.execute(statement)
        database.close()
        assert any("does not add up" in one["problem"] for one in stream.audit())
        assert "a damaged one" in stream.publish(12, code=2)

    def test_a_member_more_or_less_in_a_class_is_seen(self, stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
        from wevent.journal.tables.table_registry import TableRegistry

        rows = TableRegistry.rows
        monkeypatch.setattr(TableRegistry, "rows", lambda self: rows(self)[1:])
        stream.publish(10, *stream.require())
        assert {one["problem"] for one in stream.audit()} == {"a class was not as large as its members say"}
