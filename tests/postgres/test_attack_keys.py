"""The key of a committed slot is nowhere any more, in no memory either: archives of the database keep its ciphertext."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.postgres.replica_parts import Clock, key_slots, lines, new_place, replicas


def test_no_process_keeps_the_key_of_a_committed_slot(tmp_path: Path) -> None:
    now, place = Clock(), new_place(tmp_path)
    with replicas(place, now, 2) as (writer, standby):
        for slot in range(1, 4):
            now.seconds = 10 * (slot - 1) + 3
            for one in (writer, standby):
                one.receiver.receive("a", f"{slot} {id(one)}", lines((now.seconds - 1, 7, "north")))
            now.seconds = 10 * slot
            writer.counted(slot)
            writer.source.forget(slot)  # the writer, after the commit
            standby.store.destroy(slot)  # every replica's follower
            assert slot not in key_slots(place)
            for one in (writer, standby):
                for store in (one.intake, one.store):
                    assert store.open_keys().get(slot) is None, f"the key of slot {slot} is still in memory"


def test_destroying_keys_takes_the_same_whether_anybody_sent_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release goes out after it: how late says nothing of a slot but that it is one (spec 10)."""
    now, place, forced = Clock(), new_place(tmp_path), []
    real = os.fsync

    def counting(file: int) -> None:
        forced.append(file)
        real(file)

    waits = []
    with replicas(place, now, 1) as (writer,):
        for slot, sent in ((1, True), (2, False), (3, True), (4, False)):
            now.seconds = 10 * (slot - 1) + 3
            if sent:
                writer.receiver.receive("a", f"{slot}", lines((now.seconds - 1, 7, "north")))
            now.seconds = 10 * slot
            assert writer.counted(slot) == [[int(sent), 0]]
            forced.clear()
            with monkeypatch.context() as patched:
                patched.setattr(os, "fsync", counting)
                writer.store.destroy(slot)
            waits.append(len(forced))
            writer.source.forget(slot)
    assert len(set(waits)) == 1, f"writes that are waited for, of slots with and without events: {waits}"
