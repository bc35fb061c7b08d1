"""Changes of requirement, restores, unregistered users and copies, with the shipped commands (spec 10 and 15)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.support.stored_slots import read_blob, read_entry
from wevent.cli import main
from wevent.journal.terms import class_history

RunCommand = Callable[..., tuple[int, str, str]]
START = datetime(2026, 1, 1, tzinfo=UTC)
ENDINGS = ("-wal", "-shm")
Key = tuple[int, int]
MEMBERS: Key = (20, 5 * 10**8)
LOOSE: Key = (5, 10**9)
STRICT: Key = (100, 10**8)


class Stream:
    """A stream in a folder of its own, driven through the command line."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd = capfd
        self.wishes = {f"m{user}": (20, "0.5") for user in range(12)}
        self.options: tuple[str, ...] = ("--declare", "100,0.1", "--declare", "5,1", "--mechanism", "pbu")
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

    def counted(self, key: Key, first: int = 1) -> list[int]:
        """Return the slots from `first` on in which users are counted in a class."""
        return [slot for slot, sizes in self.sizes().items() if slot >= first and sizes.get(key)]

    def stored(self, user: str) -> list[tuple[int, int, int, int | None]]:
        """Return window, nano-epsilons, first and last slot of every row of a user."""
        database = apsw.Connection("run.journal")
        query = "SELECT window, nano, first, last FROM members WHERE user = ? ORDER BY first"
        rows: list[Any] = database.execute(query, (user,)).fetchall()
        database.close()
        return rows

    def backup(self) -> None:
        assert self("backup", "run.journal", "backup.journal")[0] == 0

    def restore(self, *, witness_file: bool) -> None:
        for ending in ENDINGS:
            Path("run.journal" + ending).unlink(missing_ok=True)
        shutil.copy("backup.journal", "run.journal")
        if not witness_file:
            Path("run.journal.witness").unlink()

    def audit(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self("verify", "run.journal", "--json")[1])["violations"]
        return found

    def charges(self) -> dict[int, dict[Key, int]]:
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

    def sizes(self) -> dict[int, dict[Key, int]]:
        """n_g of every slot, as the journal has them."""
        database = apsw.Connection("run.journal")
        slots: list[Any] = database.execute("SELECT slot FROM slots ORDER BY slot").fetchall()
        database.close()
        path, found = Path("run.journal"), {}
        for (slot,) in slots:
            rows = json.loads(read_blob(path, read_entry(path, slot)["population"]))["classes"]
            found[slot] = {(row[0], row[1]): row[2] for row in rows}
        return found


@pytest.fixture
def stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Stream:
    monkeypatch.chdir(tmp_path)
    return Stream(capfd)


class TestChanges:
    """A change takes effect at once; earlier choices stay in force for their windows."""

    def test_a_looser_requirement_counts_when_the_earlier_one_has_ended(self, stream: Stream) -> None:
        stream.publish(10, *stream.require())
        stream.set("m1", 5, "1")
        stream.publish(28)
        stream.publish(40)  # begins with the last slot in which the earlier one is in force
        assert {sizes[MEMBERS] for slot, sizes in stream.sizes().items() if slot < 30} == {12}
        assert stream.counted(LOOSE) == list(range(30, 41))
        assert stream.audit() == []

    def test_a_stricter_one_counts_at_once(self, stream: Stream) -> None:
        stream.publish(10, *stream.require())
        stream.set("m1", 100, "0.1")
        stream.publish(40)
        assert stream.counted(STRICT) == list(range(11, 41))
        assert stream.audit() == []

    def test_one_that_is_neither_is_counted_in_a_class_as_strict_as_both(self, stream: Stream) -> None:
        stream.options += ("--declare", "100,0.9")
        stream.publish(10, *stream.require())
        stream.set("m1", 100, "0.9")
        stream.publish(40)
        assert stream.counted(STRICT) == list(range(11, 30))
        assert stream.counted((100, 9 * 10**8)) == list(range(30, 41))
        assert stream.audit() == []

    def test_a_change_back_leaves_the_other_choice_in_force(self, stream: Stream) -> None:
        stream.publish(10, *stream.require())
        stream.set("m1", 100, "0.1")
        stream.publish(12)
        stream.set("m1", 20, "0.5")
        stream.publish(130)
        assert stream.counted(STRICT) == list(range(11, 12 + 100))
        assert stream.audit() == []

    @pytest.mark.parametrize("how", ["remove", "erase"])
    def test_leaving_does_not_end_a_choice(self, stream: Stream, how: str) -> None:
        stream.publish(10, *stream.require())
        stream.users(how, "m1")
        del stream.wishes["m1"]
        stream.publish(15)
        stream.set("m1", 5, "1")
        stream.publish(40)
        sizes = stream.sizes()
        assert [sizes[slot][MEMBERS] for slot in (10, 11, 15, 16, 29, 30)] == [12, 11, 11, 12, 12, 11]
        assert stream.counted(LOOSE) == list(range(30, 41))
        assert stream.audit() == []

    def test_a_requirement_that_was_not_declared_is_refused(self, stream: Stream) -> None:
        stream.publish(10, *stream.require())
        for asked in (("7", "0.7"), ("300", "0.5")):
            err = stream.users("set", "m1", "--window", asked[0], "--epsilon", asked[1], code=2)
            assert "was not declared" in err
        stream.publish(12)
        assert stream.stored("m1") == [(*MEMBERS, 1, None)]


class TestRestoredBackup:
    """A backup lacks every change that was made after it."""

    def life(self, stream: Stream) -> None:
        stream.publish(10, *stream.require())
        stream.backup()
        stream.set("u", 100, "0.1")
        stream.publish(60)
        stream.set("u", 5, "1")
        stream.publish(120)

    @pytest.mark.parametrize("witness_file", [True, False])
    def test_lost_changes_have_to_be_imported_again(self, stream: Stream, witness_file: bool) -> None:
        self.life(stream)
        stream.restore(witness_file=witness_file)
        stated = ("--released-through", "120", *(() if witness_file else ("--same-settings",)))
        assert "--accept-lost-changes" in stream.publish(121, *stated, code=2)
        assert "wevent users JOURNAL import FILE" in stream.publish(121, code=2)
        stream.require()
        stream.users("import", "users.csv")
        stream.publish(230)
        sizes = stream.sizes()
        assert {sizes[slot][STRICT] for slot in range(121, 220)} == {13}  # any id may have held any class
        assert (sizes[220][MEMBERS], sizes[220][LOOSE]) == (12, 1)
        assert stream.audit() == []

    def test_or_their_loss_accepted(self, stream: Stream) -> None:
        self.life(stream)
        stream.restore(witness_file=True)
        stream.publish(121, "--released-through", "120", "--accept-lost-changes")
        stream.publish(123)
        assert stream.sizes()[123][STRICT] == 12  # u is not there
        assert stream.audit() == []

    def test_changes_of_some_users_do_not_bring_back_those_of_others(self, stream: Stream) -> None:
        from wevent.publishing.registrations import import_file

        self.life(stream)
        stream.restore(witness_file=True)
        stream.publish(121, "--released-through", "120", code=2)
        stream.users("add", "u", "--window", "5", "--epsilon", "1")
        stream.require()
        import_file(Path("run.journal"), Path("users.csv"), partial=True)
        assert "--accept-lost-changes" in stream.publish(121, code=2)

    def test_an_id_that_registers_later_is_in_doubt_too(self, stream: Stream) -> None:
        self.life(stream)
        stream.restore(witness_file=True)
        stream.publish(125, "--released-through", "120", "--accept-lost-changes")
        stream.set("v", 5, "1")
        stream.publish(230)
        assert stream.counted(LOOSE, 121) == list(range(220, 231))
        assert stream.audit() == []

    def test_a_witness_of_the_same_registry_leaves_nobody_in_doubt(self, stream: Stream) -> None:
        stream.publish(10, *stream.require())
        stream.set("u", 5, "1")
        stream.publish(12)
        stream.backup()
        stream.publish(60)
        stream.restore(witness_file=True)
        stream.publish(65, "--released-through", "60")
        assert (stream.sizes()[61][MEMBERS], stream.sizes()[61][LOOSE]) == (12, 1)
        assert stream.audit() == []

    def test_nobody_changes_the_registry_of_a_copy(self, stream: Stream) -> None:
        self.life(stream)
        stream.restore(witness_file=False)
        for arguments in (("import", "users.csv"), ("add", "u", "--window", "5", "--epsilon", "1"), ("remove", "m1")):
            assert "--released-through" in stream.users(*arguments, code=2)

    def test_nor_of_an_old_file_put_back_in_place(self, stream: Stream) -> None:
        stream.publish(10, *stream.require())
        shutil.copy("run.journal", "backup.journal")
        stream.publish(20)
        stream.publish(
            30
        )  # a file that lacks only the last commit is one whose writer died before it: that is recovered
        stream.restore(witness_file=True)
        assert "shows slot 30" in stream.users("remove", "m1", code=2)

    def test_without_the_witness_file_settings_may_be_lost(self, stream: Stream) -> None:
        self.life(stream)
        stream.restore(witness_file=False)
        err = stream.publish(125, "--released-through", "120", code=2)
        assert "--same-settings" in err
        assert "--widest-window" in err
        stated = ("--released-through", "120", "--widest-window", "150", "--accept-lost-changes")
        stream.publish(280, *stated)
        assert {sum(sizes.values()) for slot, sizes in stream.sizes().items() if 120 < slot <= 270} == {0}
        assert stream.sizes()[271][MEMBERS] == 12
        assert stream.audit() == []

    def test_a_mark_older_than_what_went_out_shows_nothing(self, stream: Stream) -> None:
        """Journal and witness file rolled back together, as by a snapshot of the folder."""
        stream.publish(10, *stream.require())
        stream.backup()
        shutil.copy("run.journal.witness", "side")
        stream.set("m1", 5, "1")
        stream.publish(30)
        stream.restore(witness_file=True)
        shutil.copy("side", "run.journal.witness")
        assert "--same-settings" in stream.publish(31, "--released-through", "30", code=2)
        assert "--accept-lost-changes" in stream.publish(31, "--released-through", "30", "--same-settings", code=2)
        stream.publish(31, "--accept-lost-changes")
        assert stream.sizes()[31][STRICT] == 12

    def test_a_version_that_was_lost_silences_for_its_window(self, stream: Stream) -> None:
        stream.publish(10, *stream.require())
        stream.backup()
        stream.publish(15, "--reconfigure", "--declare", "300,0.5")
        stream.set("u", 300, "0.5")
        stream.publish(20)
        stream.restore(witness_file=True)
        stated = ("--released-through", "20", "--accept-lost-changes")
        assert "--widest-window" in stream.publish(21, *stated, code=2)
        assert "--widest-window" in stream.publish(
            21, *stated, "--same-settings", code=2
        )  # the witness shows otherwise
        stream.publish(330, *stated, "--widest-window", "300")
        assert {sum(sizes.values()) for slot, sizes in stream.sizes().items() if 20 < slot <= 320} == {0}
        assert stream.sizes()[321][MEMBERS] == 12
        assert stream.audit() == []

    def test_a_second_restore_of_one_backup_lacks_what_the_first_one_did(self, stream: Stream) -> None:
        self.life(stream)
        stream.restore(witness_file=True)
        stream.publish(121, "--released-through", "120", "--accept-lost-changes")
        stream.set("m2", 5, "1")
        stream.publish(125)
        stream.restore(witness_file=True)
        assert "--accept-lost-changes" in stream.publish(130, "--released-through", "125", code=2)

    def test_a_change_is_witnessed_before_a_slot_counts_it(self, stream: Stream) -> None:
        """No slot is released after it."""
        from wevent.journal import SqliteJournal
        from wevent.journal.witness import read_witness
        from wevent.people.membership import Change

        stream.publish(10, *stream.require())
        stream.backup()
        with SqliteJournal("run.journal", write=True) as journal:
            before = journal.registry.revision()
            journal.registry.ask([Change("remove", "m1")])
            assert read_witness(Path("run.journal.witness")).revision == before
            journal.registry.apply(11, class_history(journal.epochs()))
            assert read_witness(Path("run.journal.witness")).revision == journal.registry.revision() != before
        stream.restore(witness_file=True)
        assert "--accept-lost-changes" in stream.publish(12, "--released-through", "10", code=2)

    def test_slots_released_elsewhere_charge_every_class_what_it_had_left(self, stream: Stream) -> None:
        stream.publish(10, *stream.require())
        stream.backup()
        stream.publish(40)
        stream.restore(witness_file=True)
        stream.publish(60, "--released-through", "40")
        charges = stream.charges()
        for window, nano in (LOOSE, MEMBERS, STRICT):
            assert sum(charges[slot][window, nano] for slot in range(max(1, 41 - window), 41)) == nano
            assert charges[39][window, nano] == 0
        assert stream.audit() == []

    def test_a_restore_that_crashed_before_its_mark_is_no_other_copy(self, stream: Stream) -> None:
        """The witness file then still has the link of the lost journal for the last slot that went out."""
        self.life(stream)
        side = Path("run.journal.witness").read_bytes()
        stream.restore(witness_file=True)
        stream.publish(120, "--released-through", "120", "--accept-lost-changes")
        Path("run.journal.witness").write_bytes(side)
        stream.publish(125)
        assert stream.sizes()[125][STRICT] == 12
        assert stream.audit() == []

    def test_revisions_of_a_copy_that_went_on_are_others(self, stream: Stream) -> None:
        """Both copies have the same number of changes, but not the same ones."""
        stream.publish(30, *stream.require())
        for ending in ("", ".witness"):
            shutil.copy("run.journal" + ending, "copy.journal" + ending)
        stream.set("m1", 5, "1")
        stream.publish(60)
        assert stream("users", "copy.journal", "add", "q", "--window", "20", "--epsilon", "0.5")[0] == 0
        for ending in ENDINGS:
            Path("run.journal" + ending).unlink(missing_ok=True)
        shutil.copy("copy.journal", "run.journal")
        assert "--accept-lost-changes" in stream.publish(61, "--released-through", "60", code=2)

    def test_an_id_whose_rows_were_dropped_elsewhere_may_have_been_unregistered(self, stream: Stream) -> None:
        stream.options = ("--mechanism", "pbu", "--unknown-users", "5", "--declare", "5,1")
        stream.publish(3, *stream.require())
        stream.users("remove", "m1")
        stream.publish(4)
        stream.backup()
        stream.publish(40)
        stream.restore(witness_file=True)
        stream.publish(40, "--released-through", "40")
        del stream.wishes["m1"]
        stream.set("m1", 5, "1")
        stream.publish(70)
        assert stream.counted(LOOSE) == list(range(60, 71))  # through slot 40 it may have been counted as unregistered
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
        assert "which the journal dropped" in stream.publish(1110, code=2)

    def test_a_backup_of_the_last_slot_leaves_no_class_in_doubt(self, stream: Stream) -> None:
        """Changes after that slot may be lost, though."""
        stream.publish(10, *stream.require())
        stream.backup()
        stream.restore(witness_file=False)
        assert "--accept-lost-changes" in stream.publish(12, "--released-through", "10", code=2)
        stream.publish(12, "--accept-lost-changes")
        assert stream.sizes()[11][MEMBERS] == 12
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
        code, _, err = stream("verify", "empty.journal")
        assert code == 0, err

    def test_rows_dropped_at_the_boundary_of_a_wider_epoch(self, stream: Stream) -> None:
        stream.wishes = {f"m{user}": (5, "0.5") for user in range(4)}
        stream.options = ("--mechanism", "pbu")
        stream.publish(10, *stream.require())
        stream.users("remove", "m1")
        stream.publish(14)
        stream.users("remove", "m2")
        stream.publish(20, "--reconfigure", "--declare", "30,0.5")
        assert stream.audit() == []


class TestUnregisteredUsers:
    """An unregistered user is an id that the registry does not know at all."""

    UNREGISTERED: Key = (20, 25 * 10**7)

    def begin(self, stream: Stream, last: int, *users: str) -> None:
        """Everybody in `users` has an event in cell 1 of every slot; up to 50 unregistered users count."""
        declared = ("--declare", "20,0.9", "--declare", "5,1", "--declare", "4,0.9")
        stream.options = ("--mechanism", "uniform", "--unknown-users", "50", "--round", *declared)
        rows = [
            f"{(START + timedelta(minutes=minute)).isoformat()},{user},1" for minute in range(last) for user in users
        ]
        Path("events.csv").write_text("\n".join(["time,user,cell", *rows]) + "\n")

    def rejected(self, text: str) -> int:
        return int(text.split(" rejected")[0].split()[-1]) if " rejected" in text else 0

    @pytest.mark.parametrize("change", ["set", "remove", "erase"])
    def test_an_id_that_the_registry_knows_is_none(self, stream: Stream, change: str) -> None:
        self.begin(stream, 30, "m1", "x")
        assert self.rejected(stream.publish(5, *stream.require())) == 50  # those of later slots
        arguments = ("--window", "20", "--epsilon", "0.9") if change == "set" else ()
        stream.users(change, "m1", *arguments)
        text = stream.publish(10)
        assert self.rejected(text) - 40 == (0 if change == "set" else 5)
        assert stream.audit() == []

    def test_an_id_whose_rows_were_dropped_is_unregistered_again(self, stream: Stream) -> None:
        self.begin(stream, 60, "m1")
        stream.publish(5, *stream.require())
        stream.users("remove", "m1")
        assert self.rejected(stream.publish(24)) - 36 == 19
        assert self.rejected(stream.publish(60)) < 19  # last slot of the membership 5, widest window 20

    def test_a_joiner_is_counted_in_their_class_and_displaces_nobody(self, stream: Stream) -> None:
        self.begin(stream, 2, "m1")
        stream.publish(5, *stream.require())
        stream.set("x", 5, "1")
        stream.publish(30)
        sizes = stream.sizes()
        assert [sizes[slot][self.UNREGISTERED] for slot in (5, 6, 24, 25)] == [50, 51, 51, 50]
        assert stream.counted(LOOSE) == list(range(25, 31))
        assert stream.audit() == []

    def test_a_second_change_does_not_end_that(self, stream: Stream) -> None:
        self.begin(stream, 2, "m1")
        stream.publish(5, *stream.require())
        stream.set("x", 5, "1")
        stream.publish(7)
        stream.set("x", 4, "0.9")
        stream.publish(8)
        stream.users("remove", "x")
        stream.publish(9)
        del stream.wishes["x"]
        stream.set("x", 4, "0.9")
        stream.publish(30)
        assert stream.counted((4, 9 * 10**8)) == list(range(25, 31))
        assert stream.audit() == []

    def test_members_from_the_start_were_never_unregistered(self, stream: Stream) -> None:
        self.begin(stream, 2, "m1")
        stream.publish(5, *stream.require())
        assert stream.stored("m1") == [(*MEMBERS, 1, None)]
        assert stream.sizes()[1][MEMBERS] == 12

    def test_an_epoch_with_another_class_for_them_counts_them_at_once(self, stream: Stream) -> None:
        self.begin(stream, 60, "x", "y")
        stream.publish(5, *stream.require())
        stream.publish(40, "--reconfigure", "--declare", "10,0.2")
        assert stream.counted(self.UNREGISTERED) == list(range(1, 6))
        assert stream.counted((20, 10**8)) == list(range(6, 41))
        assert {slot for slot, sizes in stream.sizes().items() if self.UNREGISTERED in sizes} == set(range(1, 26))
        assert stream.audit() == []

    def test_an_epoch_without_them_retains_their_class_for_a_window(self, stream: Stream) -> None:
        self.begin(stream, 60, "x", "y")
        stream.publish(5, *stream.require())
        stream.options = tuple("0" if option == "50" else option for option in stream.options)
        stream.publish(8, "--reconfigure")
        stream.set("x", 5, "1")  # may have been counted as unregistered through slot 5
        stream.publish(40)
        assert stream.counted(self.UNREGISTERED) == [*range(1, 6), *range(9, 25)]
        assert stream.counted(LOOSE) == list(range(25, 41))
        assert stream.audit() == []

    def test_after_a_restore_in_doubt_they_are_not_counted_for_a_window(self, stream: Stream) -> None:
        self.begin(stream, 60, "x")
        stream.publish(5, *stream.require())
        stream.backup()
        stream.users("remove", "m1")
        stream.publish(10)
        stream.restore(witness_file=True)
        stream.publish(40, "--released-through", "10", "--accept-lost-changes")
        sizes = stream.sizes()
        assert [sizes[slot][self.UNREGISTERED] for slot in (11, 29, 30, 40)] == [12, 12, 50, 50]
        assert stream.audit() == []

    def test_nobody_can_pose_as_an_erased_id(self, stream: Stream) -> None:
        self.begin(stream, 5, "m1")
        stream.publish(3, *stream.require())
        assert "does not begin with" in stream.users("add", "erased:00", "--window", "20", "--epsilon", "0.5", code=2)


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
        stream.publish(8, "--reconfigure")
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
            "INSERT INTO members VALUES ('z', 20, 500000000, NULL, 1, NULL)",
            "UPDATE members SET user = 'n1' WHERE user = 'm1'",
        ],
    )
    def test_an_edited_registry_does_not_add_up(self, stream: Stream, statement: str) -> None:
        stream.publish(10, *stream.require())
        database = apsw.Connection("run.journal")
        database.execute(statement)
        database.close()
        assert any("does not add up" in one["problem"] for one in stream.audit())
        assert "is damaged" in stream.publish(12, code=2)

    def test_a_member_more_or_less_in_a_class_is_seen(self, stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
        from wevent.journal.user_registry import Registry
        from wevent.people.membership import MemberColumns

        rows, others = Registry.rows, slice(1, None)

        def fewer(self: Registry) -> MemberColumns:
            users, keys = rows(self)
            return MemberColumns(users.where(others), keys.where(others))

        monkeypatch.setattr(Registry, "rows", fewer)
        stream.publish(10, *stream.require())
        problem = "the size of a class is not the number of users that the rules count in it"
        assert {one["problem"] for one in stream.audit()} == {problem}
