"""One contract for every mechanism (issue 2, must show 6); `mechanism` is filled in by conftest.py."""

from __future__ import annotations

import gc
import itertools
import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import wevent
from wevent import (
    InvalidCounts,
    InvalidPopulation,
    Population,
    Publisher,
    Release,
    Requirement,
    SecureNoise,
    SeededNoise,
)
from wevent.publisher.catalogue import find_mechanism
from wevent.publisher.state import load

SHORT, MIDDLE, LONG = Requirement(1, "0.3"), Requirement(3, "1.000000007"), Requirement(7, 2)
EVERYONE = Population({SHORT: 300, MIDDLE: 200, LONG: 100})
CELLS = ["north", "south", "east"]
HUGE = 2**40


class Adversary(SeededNoise):
    """Seeded noise whose probe draws (size one) are pushed up or down by a coin, to force any publish/skip pattern."""

    def __init__(self, seed: int, publish: float) -> None:
        super().__init__(seed)
        self._coin = np.random.default_rng(seed + 1)
        self._publish = publish

    def laplace(self, permit, size):
        draws = super().laplace(permit, size)
        if size == 1:
            draws += HUGE if self._coin.random() < self._publish else -HUGE
        return draws


def stream(slots: int, seed: int = 0, population: Population = EVERYONE) -> Iterable[np.ndarray]:
    """Counts that move, stand still and jump."""
    random = np.random.default_rng(seed)
    counts = np.zeros((len(population), len(CELLS)), dtype=np.int64)
    for slot in range(slots):
        if slot % 7 == 0:
            shares = random.dirichlet(np.ones(len(CELLS) + 1), len(population))[:, : len(CELLS)]
            counts = (shares * population.sizes[:, None]).astype(np.int64)
        yield counts.copy()


def publisher(mechanism: str, seed: int = 5, **options) -> Publisher:
    return Publisher(EVERYONE, CELLS, mechanism, noise=SeededNoise(seed), **options)


def plain(releases: Iterable[Release]) -> list[dict]:
    return [release.to_dict() for release in releases]


def assert_windows_hold(classes: Iterable[Requirement], charges: list[list[int]]) -> None:
    """Every w consecutive slots of every class: at most ε, in integers. Knows nothing of the ledger."""
    for row, requirement in enumerate(classes):
        for start in range(len(charges)):
            spent = sum(slot[row] for slot in charges[start : start + requirement.window])
            assert spent <= requirement.nano, (requirement, start + 1)


def check_no_overspending(mechanism: str, publish: float, **options) -> None:
    made = Publisher(EVERYONE, CELLS, mechanism, noise=Adversary(3, publish), **options)
    charges: list[list[int]] = []
    for counts in stream(60):
        for row, requirement in enumerate(EVERYONE.classes):
            recent = [slot[row] for slot in charges[max(0, len(charges) - requirement.window + 1) :]]
            assert made.ledger.spent()[row] == sum(recent)
            assert made.ledger.remaining()[row] == requirement.nano - sum(recent)
        charges.append(made.step(counts).charges.tolist())
    assert_windows_hold(EVERYONE.classes, charges)
    assert any(sum(slot) for slot in charges), "a mechanism that never spends proves nothing"


def check_round_trip(make: Callable[[], Publisher]) -> None:
    for cut in (0, 1, 13):
        whole, halves = make(), make()
        expected = plain(whole.run(stream(40)))
        counts = list(stream(40))
        seen = plain(halves.run(counts[:cut]))
        restored = Publisher.restore(halves.state())
        assert restored.state() == halves.state()
        seen += plain(restored.run(counts[cut:]))
        assert seen == expected
        assert restored.state() == whole.state()


@pytest.mark.parametrize("publish", [0.0, 0.5, 1.0])
def test_no_overspending(mechanism: str, publish: float) -> None:
    check_no_overspending(mechanism, publish)


def test_no_overspending_with_options(mechanism: str) -> None:
    check_no_overspending(mechanism, 0.7, neighbours="replace")
    if not find_mechanism(mechanism).local:
        check_no_overspending(mechanism, 0.7, refund=True, max_cells_per_user=2)


def test_a_greedy_mechanism_is_stopped_by_the_gate() -> None:
    """It offers the whole epsilon in every slot: refused until the last charge has left the longest window."""

    class Greedy:
        def probe(self, ledger):
            return None

        def offer(self, ledger, history):
            return ledger.epsilons

    wevent.register(replace(find_mechanism("every-second"), name="greedy", policy=lambda declared, options: Greedy()))
    check_no_overspending("greedy", 1.0)
    fresh = [release.slot for release in publisher("greedy").run(stream(20)) if release.fresh]
    assert fresh == [1, 1 + LONG.window, 1 + 2 * LONG.window]


def test_the_window_check_sees_an_overspent_window() -> None:
    assert_windows_hold([MIDDLE], [[MIDDLE.nano], [0], [0], [MIDDLE.nano]])
    with pytest.raises(AssertionError):
        assert_windows_hold([MIDDLE], [[MIDDLE.nano], [0], [1]])


def test_no_overspending_with_secure_noise(mechanism: str) -> None:
    made = Publisher(EVERYONE, CELLS, mechanism)
    assert_windows_hold(EVERYONE.classes, [release.charges.tolist() for release in made.run(stream(30))])


def test_the_restored_continue_identically(mechanism: str) -> None:
    check_round_trip(lambda: publisher(mechanism))


@pytest.mark.parametrize("after", [0, 1, 4])
def test_the_restored_continue_identically_after_an_update(mechanism: str, after: int) -> None:
    fewer, more = (
        Population({MIDDLE: 150, LONG: 90}),
        Population({SHORT: 10, MIDDLE: 150, Requirement(6, 3): 7, LONG: 90}),
    )
    whole = publisher(mechanism)
    list(whole.run(stream(9)))
    whole.update(fewer)
    list(whole.run(stream(after, population=fewer)))
    restored = Publisher.restore(whole.state())
    assert restored.population == fewer
    for population in (fewer, more, fewer):
        for one in (whole, restored):
            one.update(population)
        assert plain(whole.run(stream(15, population=population))) == plain(
            restored.run(stream(15, population=population))
        )
        assert whole.ledger.spent().tolist() == restored.ledger.spent().tolist()
    assert whole.state() == restored.state()


def test_nothing_of_secure_noise_is_stored(mechanism: str) -> None:
    """Fresh states are equal byte by byte; later ones hold the public output of the last fresh release and no more."""
    made = Publisher(EVERYONE, CELLS, mechanism)
    assert made.state() == Publisher(EVERYONE, CELLS, mechanism).state()
    releases = list(made.run(stream(8)))
    saved = load(made.state())
    assert saved.noise is None
    assert saved.seeded is False
    if releases[-1].noise.law != "estimate":  # a filter publishes something else than its last measurement
        assert saved.measurement == releases[-1].histogram.tolist()
    assert Publisher.restore(made.state()).state() == made.state()
    assert type(Publisher.restore(made.state())._noise) is SecureNoise


def test_the_same_seed_gives_the_same_stream(mechanism: str) -> None:
    first, same, other = (plain(publisher(mechanism, seed).run(stream(40))) for seed in (5, 5, 6))
    assert first == same
    assert first != other


def test_errors_change_nothing(mechanism: str) -> None:
    disturbed, quiet = publisher(mechanism), publisher(mechanism)
    for slot, counts in enumerate(stream(12), start=1):
        before = disturbed.state()
        for wrong in (counts[:1], -1 - counts, counts + 0.5, counts + 10**6, counts.astype(str), counts * np.nan):
            with pytest.raises(InvalidCounts):
                disturbed.step(wrong)
        with pytest.raises(InvalidPopulation):
            disturbed.update(Population({}))
        assert disturbed.state() == before
        assert disturbed.slot == slot
        assert disturbed.step(counts).to_dict() == quiet.step(counts).to_dict()
    assert disturbed.state() == quiet.state()


def test_releases(mechanism: str) -> None:
    fresh_seen = False
    previous: Release | None = None
    for slot, release in enumerate(publisher(mechanism).run(stream(40)), start=1):
        assert release.slot == slot
        assert release.mechanism == mechanism
        assert list(release.cells) == CELLS
        assert release.histogram.dtype == np.float64
        assert release.histogram.shape == (len(CELLS),)
        assert not release.histogram.flags.writeable
        assert release.outcome in ("published", "repeated", "nullified")
        assert release.fresh == (release.outcome == "published")
        for charges in (release.probe_charges, release.publication_charges, release.charges):
            assert charges.dtype == np.int64
            assert charges.shape == (len(EVERYONE),)
            assert (charges >= 0).all()
        assert release.charges.tolist() == (release.probe_charges + release.publication_charges).tolist()
        fresh_seen = fresh_seen or release.fresh
        if not fresh_seen:
            assert release.std_error is None
            assert release.interval(0.95) is None
            assert not release.histogram.any()
        else:
            assert (release.std_error > 0).all()
            low, high = release.interval(0.95)
            assert (low <= release.histogram).all()
            assert (release.histogram <= high).all()
        if not release.fresh:
            assert not release.publication_charges.any()
            if previous is not None and find_mechanism(mechanism).smoother is find_mechanism("pbd").smoother:
                assert release.histogram.tolist() == previous.histogram.tolist()
        assert json.loads(json.dumps(release.to_dict())) == release.to_dict()
        assert len(repr(release)) < 200
        assert release._repr_html_().startswith("<table>")
        previous = release
    assert fresh_seen


def test_released_values_do_not_change_later(mechanism: str) -> None:
    made = publisher(mechanism)
    releases, copies = [], []
    for release in made.run(stream(20)):
        releases.append(release)
        copies.append(json.dumps(release.to_dict()))
    assert [json.dumps(release.to_dict()) for release in releases] == copies


def test_columns_feed_both_frame_libraries(mechanism: str) -> None:
    columns = wevent.to_columns(publisher(mechanism).run(stream(10)))
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns)):
        assert frame.shape == (30, len(columns))
        assert list(frame["cell"][:3]) == CELLS
        assert list(frame["mechanism"])[-1] == mechanism


class Away:
    """Runs a mechanism, sends the class LONG away for some slots, and keeps its own books of what LONG was charged."""

    def __init__(self, mechanism: str) -> None:
        self.publisher = Publisher(EVERYONE, CELLS, mechanism, noise=Adversary(11, 0.6))
        self.shared = find_mechanism(mechanism).shared_budget
        self.charges: list[int] = []

    def run(self, slots: int) -> None:
        """With LONG in the population."""
        self.charges += [release.charges.tolist()[2] for release in self.publisher.run(stream(slots))]

    def run_without(self, slots: int) -> None:
        """Every declared class of a shared budget is charged the same, members or not; others are charged nothing."""
        rest = Population({SHORT: 300, MIDDLE: 200})
        self.publisher.update(rest)
        for release in self.publisher.run(stream(slots, population=rest)):
            self.charges.append(release.charges.tolist()[0] if self.shared else 0)
        self.publisher.update(EVERYONE)

    def owed(self) -> int:
        return sum(self.charges[-(LONG.window - 1) :])


@pytest.mark.parametrize("away", [0, 1, 3, 5, 6, 7, 20])
def test_charges_outlive_the_last_member_by_one_window_less_a_slot(mechanism: str, away: int) -> None:
    case = Away(mechanism)
    case.run(11)
    spent = case.publisher.ledger.spent().tolist()
    assert spent[2] == case.owed() > 0
    case.run_without(away)
    assert case.publisher.ledger.spent()[2] == case.owed()
    assert case.publisher.ledger.remaining()[2] == LONG.nano - case.owed()
    if not case.shared:
        assert (case.owed() == 0) == (away >= LONG.window - 1)
    case.run(15)
    assert_windows_hold([LONG], [[charge] for charge in case.charges])


def test_windows_hold_over_any_sequence_of_populations(mechanism: str) -> None:
    """Classes come, go and come back; the books are kept here, per requirement."""
    random = np.random.default_rng(8)
    made = Publisher(EVERYONE, CELLS, mechanism, noise=Adversary(4, 0.8))
    shared = find_mechanism(mechanism).shared_budget
    books: dict[Requirement, list[int]] = {one: [] for one in EVERYONE.classes}
    for _ in range(40):
        members = [one for one in EVERYONE.classes if random.random() < 0.6] or [LONG]
        population = Population({one: int(random.integers(0, 300)) for one in members})
        made.update(population)
        for release in made.run(stream(int(random.integers(1, 5)), population=population)):
            charged = dict(zip(members, release.charges.tolist(), strict=True))
            absent = release.charges.tolist()[0] if shared else 0
            for one, book in books.items():
                book.append(charged.get(one, absent))
    for one, book in books.items():
        assert_windows_hold([one], [[charge] for charge in book])
        assert sum(book) > 0


def test_an_update_to_the_same_population_changes_nothing(mechanism: str) -> None:
    updated, quiet = publisher(mechanism), publisher(mechanism)
    for counts in stream(25):
        updated.update(Population(dict(EVERYONE.items())))
        assert updated.step(counts).to_dict() == quiet.step(counts).to_dict()
    assert updated.state() == quiet.state()


class Flat:
    """The cheapest noise there is: the memory test is about the publisher."""

    seeded = True

    def __init__(self) -> None:
        self._one = itertools.cycle([np.array([HUGE]), np.array([-HUGE]), np.array([-HUGE])])
        self._none = np.zeros(2, dtype=np.int64)

    def laplace(self, permit, size):
        return next(self._one) if size == 1 else self._none

    def binomial(self, counts, permit):
        return counts

    def respond(self, counts, permit):
        return counts


def test_memory_is_bounded_over_a_hundred_thousand_slots(mechanism: str) -> None:
    """From slot 10³ to 10⁵: the same number of live memory blocks (caches may fill), a state of the same size."""
    made = Publisher(Population({Requirement(5, 1): 50}), 2, mechanism, noise=Flat())
    counts = np.array([[20, 10]])
    step = made.step

    def run(slots: int) -> tuple[int, int]:
        for _ in range(slots):
            step(counts)
        gc.collect()
        return sys.getallocatedblocks(), len(made.state())

    early_blocks, early_state = run(1_000)
    late_blocks, late_state = run(99_000)
    assert made.slot == 100_001
    assert late_blocks - early_blocks < 3_000
    assert late_state <= early_state + 32  # numbers that became longer


def test_the_memory_check_sees_one_object_per_slot() -> None:
    kept = []
    before = sys.getallocatedblocks()
    for _ in range(99_000):
        kept.append(np.zeros(1))  # noqa: PERF401
    assert sys.getallocatedblocks() - before > 3_000


def test_a_registered_mechanism_appears_everywhere() -> None:
    assert wevent.mechanisms()["every-second"] == "twice the even share in every second slot"
    made = publisher("every-second")
    assert made.mechanism == "every-second"
    assert [release.fresh for release in made.run(stream(4))] == [True, False, True, False]
    assert Publisher.restore(made.state()).mechanism == "every-second"


def test_an_installed_mechanism_appears_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution with an entry point, as pip would leave it, goes through the same contract."""
    (tmp_path / "wevent_contract_plugin.py").write_text(
        "from dataclasses import replace\n"
        "from wevent.core.registry import BUILT_IN\n"
        "row = replace(BUILT_IN['pbd'], name='installed', summary='from a package')\n"
    )
    info = tmp_path / "wevent_contract_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: wevent-contract-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[wevent.mechanisms]\ninstalled = wevent_contract_plugin:row\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert wevent.mechanisms()["installed"] == "from a package"
    assert next(publisher("installed").run(stream(1))).mechanism == "installed"
    check_no_overspending("installed", 0.5)
    check_round_trip(lambda: publisher("installed"))


def test_a_journal_can_replay_it_bit_for_bit(mechanism: str) -> None:
    """What a journal stores of a slot, through its own encoding, rebuilds the publisher: same state, same continuation."""
    from wevent.journal.record import Shown, decode_shown, encode_shown

    whole = Publisher(EVERYONE, CELLS, mechanism, noise=SeededNoise(3))
    rebuilt = Publisher(EVERYONE, CELLS, mechanism, noise=SeededNoise(3))
    for release in whole.run(stream(40)):
        measured = whole.measured
        if measured is not None:
            stored = encode_shown(Shown(release.slot, release.histogram + 0.0, release.std_error, measured))
            measured = decode_shown(release.slot, stored).measured
        rebuilt.replay(release.probe_charges, release.publication_charges, measured)
    assert rebuilt.ledger.spent().tolist() == whole.ledger.spent().tolist()
    rebuilt._noise = SeededNoise.at(whole._noise.position())  # replaying draws nothing
    assert rebuilt.state() == whole.state()
    assert plain(rebuilt.run(stream(20))) == plain(whole.run(stream(20)))
