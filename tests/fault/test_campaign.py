"""A small fault campaign, and that it can fail: every kind catches a wrong way to publish. `make soak` runs a large one."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fault.campaign.commands import load_everything, quick_folder
from tests.fault.campaign.damage import TARGETS, harm, strike
from tests.fault.campaign.kills import KINDS, kill
from tests.fault.campaign.power import SCENARIOS, cut_power, rebuild
from tests.fault.campaign.recording import Effect, Recording, record, state_after
from tests.fault.campaign.stream import publish, write_stream
from tests.fault.campaign.witness import Witness
from tests.fault.campaign.wrong import charges_apart, emit_before_commit, late_witness, unchecked_output
from tests.fault.killing import Broken

NUMBER = int(os.environ.get("WEVENT_FAULTS", "16"))
SEED = int(os.environ.get("WEVENT_FAULTS_SEED", "1"))


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    load_everything()


@pytest.fixture
def folder() -> Iterator[Path]:
    made = quick_folder()
    yield made
    shutil.rmtree(made)


@pytest.mark.parametrize("kind", KINDS)
def test_kills(folder: Path, kind: str) -> None:
    assert kill(kind, NUMBER, SEED, folder, every=10)["faults"] == NUMBER


@pytest.mark.parametrize("names", [("first", "users", "epoch", "compaction"), ("live", "backup", "parquet")])
def test_power_cuts(folder: Path, names: tuple[str, ...]) -> None:
    assert set(names) <= set(SCENARIOS)
    result = cut_power(NUMBER, SEED, folder, names=names, each=max(1, NUMBER // len(names)))
    assert result["faults"] == NUMBER
    assert not [one for one in result["refused"] if one.startswith("parquet")], "the old file or the new one, whole"


def test_a_parquet_file_is_on_disk_before_it_takes_the_place_of_the_old_one(folder: Path) -> None:
    place = folder / "parquet"
    place.mkdir()
    write_stream(place, 300)
    effects = record(place, publish(4, out="out.parquet")).effects
    moved = next(number for number, one in enumerate(effects) if one.target == "out.parquet")
    of_it = [one.kind for one in effects[:moved] if one.file == effects[moved].file]
    assert "write" in of_it
    assert "sync" in of_it[len(of_it) - of_it[::-1].index("write") :], "after the last write"
    assert "sync folder" in [one.kind for one in effects[moved:]]


@pytest.mark.parametrize("target", [*TARGETS, "output"])
def test_damage(folder: Path, target: str) -> None:
    result = strike(target, NUMBER, SEED, folder, each=max(1, NUMBER // 4))
    assert result["faults"] == NUMBER
    assert result["harmless"] + sum(result["refused"].values()) > 0


class TestItCanFail:
    """Draws may agree by chance, and moments be missed: a wrong way has many chances to be caught.

    With these seeds it is caught within a few kills, almost always.
    """

    def test_killing_catches_a_release_before_its_commit(self, folder: Path) -> None:
        with pytest.raises(Broken, match=r"different bytes|was refused"):
            kill("live", 900, 3, folder, every=2, variant=emit_before_commit)  # until it is caught

    def test_killing_catches_charges_in_a_transaction_of_their_own(self, folder: Path) -> None:
        with pytest.raises(Broken):
            kill("live", 900, 7, folder, every=2, variant=charges_apart)

    def test_cutting_the_power_catches_a_draw_that_is_synced_nowhere(self, folder: Path) -> None:
        with pytest.raises(Broken):
            cut_power(60, SEED, folder, names=("live",), variant="no sync")

    def test_damage_catches_a_witness_that_is_not_written_with_every_slot(self, folder: Path) -> None:
        with pytest.raises(Broken, match="different bytes"):
            strike("log", 60, SEED, folder, outs=("-",), each=6, variant=late_witness)

    def test_damage_catches_an_output_that_is_repaired_without_a_check(self, folder: Path) -> None:
        with pytest.raises(Broken, match="output: "):
            strike("output", 20, SEED, folder, outs=("out.ndjson",), variant=unchecked_output)


class TestRebuilding:
    """What a power cut may leave."""

    recording = Recording(
        {"a": b"old" * 400},
        [
            Effect("write", 0, 0, b"1" * 600),
            Effect("sync", 0),
            Effect("write", 0, 512, b"2" * 1024),
            Effect("create", 7, name="b"),
            Effect("write", 7, 0, b"3" * 10),
        ],
    )

    def test_what_was_synced_is_there_and_what_was_not_may_be_torn_by_sectors(self) -> None:
        seen = set()
        for seed in range(400):
            disk = rebuild(self.recording, 5, random.Random(seed))
            assert disk["a"][:512] == b"1" * 512
            sectors = [disk["a"][512:1024], disk["a"][1024:1536]]
            seen.add((sectors[0] == b"2" * 512, sectors[1] == b"2" * 512, disk.get("b")))
        assert {one[:2] for one in seen} == {(False, False), (True, False), (False, True), (True, True)}
        assert {one[2] for one in seen} == {None, b"", b"3" * 10}

    def test_everything_kept_is_the_folder_after(self) -> None:
        assert state_after(self.recording) == {"a": b"1" * 512 + b"2" * 1024, "b": b"3" * 10}


def test_damage_changes_something_almost_always() -> None:
    data = bytes(range(256)) * 8
    assert sum(harm(data, random.Random(seed), len(data)) != data for seed in range(50)) >= 48


def test_the_witness_notices_other_bytes_gaps_and_overspending() -> None:
    line = b'{"slot":%d,"classes":[{"window":2,"epsilon":0.00000001}],"charges":[0.00000000%d]}\n'
    witness = Witness()
    witness.hear(line % (1, 5) + line % (2, 5) + line % (1, 5))
    witness.check()
    with pytest.raises(Broken, match="different bytes"):
        witness.hear(line % (2, 4))
    witness.hear(line % (3, 6))
    with pytest.raises(Broken, match="overspent"):
        witness.check()
    gap = Witness()
    gap.hear(line % (1, 5) + line % (3, 5))
    with pytest.raises(Broken, match="missing"):
        gap.check()
