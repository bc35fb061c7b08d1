"""Checks of what comes out: releases of the right form, with noise, finite for every draw, under every option."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from wevent.checks.adversaries import ENDS, HUGE, ScriptedDraws
from wevent.checks.spending import expect_windows_hold
from wevent.checks.subject import CELLS, EVERYONE, Subject, expect, expect_same, expect_same_state
from wevent.checks.watching import watched_smoother
from wevent.core.filter import Hold
from wevent.core.limits import MAX_USERS
from wevent.core.requirements import Population, Requirement
from wevent.core.settings import Options
from wevent.errors import InvalidOption
from wevent.publisher.catalogue import mechanisms
from wevent.publisher.confidence import OUTCOMES
from wevent.publisher.publisher import Publisher
from wevent.publisher.release import Release


def named(subject: Subject) -> None:
    """It is in the list that people choose from, with one line about it; publishers and releases bear its name."""
    name, summary = subject.row.name, subject.row.summary
    expect_same(summary, mechanisms().get(name), "the list of mechanisms to have its summary")
    expect(bool(name.strip()) and bool(summary.strip()), "a name and a summary", f"{name!r} and {summary!r}")
    expect("\n" not in name + summary, "a summary of one line", repr(summary))
    publisher = subject.publisher()
    expect_same(name, next(publisher.run(subject.stream(1))).mechanism, "a release to bear its name")
    expect_same(name, Publisher.restore(publisher.state()).mechanism, "a restored publisher to bear its name")


def releases(subject: Subject) -> None:
    """Every slot has a release of the right form; one that repeats charges no publication, and errors are stated."""
    fresh = False
    held = isinstance(subject.row.smoother(Options(mechanism=subject.row.name)), Hold)
    previous: Release | None = None
    for slot, release in enumerate(subject.publisher().run(subject.stream()), start=1):
        fresh = fresh or release.fresh
        _expect_form(release, slot, subject.row.name)
        _expect_error(release, fresh=fresh)
        if not release.fresh:
            expect(not release.publication_charges.any(), "no charge for a repeated release", "one", slot)
            if previous is not None and held:
                before = previous.histogram.tolist()
                expect_same(before, release.histogram.tolist(), "a repeated release to show the last", slot)
        previous = release
    expect(fresh, f"a publication within {subject.slots} slots", "none")


def _expect_form(release: Release, slot: int, name: str) -> None:
    histogram, charges = release.histogram, (release.probe_charges, release.publication_charges, release.charges)
    expect_same(slot, release.slot, "a release's slot", slot)
    expect_same((name, list(CELLS)), (release.mechanism, list(release.cells)), "its mechanism and cells", slot)
    form = histogram.dtype == np.float64 and histogram.shape == (len(CELLS),) and not histogram.flags.writeable
    expect(form, "a read-only histogram of a float64 per cell", f"{histogram.dtype} {histogram.shape}", slot)
    expect(release.outcome in OUTCOMES, "an outcome", release.outcome, slot)
    expect_same(release.fresh, release.measured == slot, "a fresh release to be one measured in its slot", slot)
    for part in charges:
        form = part.dtype == np.int64 and part.shape == (len(EVERYONE),) and bool((part >= 0).all())
        expect(form, "charges of a whole number per class, none below 0", f"{part.dtype} {part.shape}", slot)
    total = (release.probe_charges + release.publication_charges).tolist()
    expect_same(total, release.charges.tolist(), "charges to be the sum of both parts", slot)
    expect_same(release.to_dict(), json.loads(json.dumps(release.to_dict())), "plain types that JSON knows", slot)
    expect(len(repr(release)) < 200, "a short representation", len(repr(release)), slot)
    expect(release._repr_html_().startswith("<table>"), "a table for notebooks", "another text", slot)


def _expect_error(release: Release, *, fresh: bool) -> None:
    interval = release.noise_interval(0.95)
    if not fresh:
        silent = release.std_error is None and interval is None and release.measured is None
        empty = silent and not release.histogram.any() and release.to_dict()["histogram"] is None
        expect(empty, "zeros and no error before the first publication", release.histogram.tolist(), release.slot)
    else:
        stated = release.std_error is not None and bool((release.std_error > 0).all())
        expect(stated, "an error above 0 in every cell", release.std_error, release.slot)
        assert interval is not None
        inside = (interval[0] <= release.histogram).all() and (release.histogram <= interval[1]).all()
        expect(bool(inside), "an interval around the histogram", interval, release.slot)


def releases_stay(subject: Subject) -> None:
    """What was released does not change when later slots are stepped."""
    kept, copies = [], []
    for release in subject.publisher().run(subject.stream()):
        kept.append(release)
        copies.append(json.dumps(release.to_dict()))
    for release, copy in zip(kept, copies, strict=True):
        expect_same(copy, json.dumps(release.to_dict()), "a release to stay as it was", release.slot)


def noise_in_every_cell(subject: Subject) -> None:
    """Every cell of a measurement moves with what is drawn: an estimator that leaves noise out publishes the truth."""
    quiet, moved = subject.publisher(ScriptedDraws([0])), subject.publisher(ScriptedDraws([HUGE], mirrored=True))
    random = np.random.default_rng(subject.seed)
    published = 0
    for _ in range(subject.slots):
        counts = np.tile(random.permuted(np.arange(6) * 5 + 1)[: len(CELLS)], (len(EVERYONE), 1))
        slot = quiet.slot
        quiet.step(counts)
        moved.step(counts)
        first, second = quiet.measured, moved.measured
        if first is None or second is None:
            continue
        published += 1
        still = [str(CELLS[cell]) for cell in np.flatnonzero(np.asarray(first.values) == second.values)]
        if subject.row.local:  # a mirrored answer stays in the middle if there is one
            still = still if len(still) == len(CELLS) else []
        expect(not still, "every cell to move with the noise", f"the same values in {still}", slot)
    expect(published > 0, f"a publication within {subject.slots} slots", "none")


_CROWDS = (
    Population({Requirement(1, "18e-9"): 3, Requirement(9, 50): 0}),
    Population({Requirement(3, "0.000001"): 10**9, Requirement(9, 2): 1}),
    Population({Requirement(2, 50): MAX_USERS // 3, Requirement(60, 1): 1000, Requirement(7, 1): 0}),
)


def finite(subject: Subject) -> None:
    """Whatever is drawn and whoever is there, what is published is finite, and a replay comes to the same state.

    A smoother that fails is passed over by a guard, which keeps the stream going; here that is a broken check.
    """
    failures: list[str] = []
    with subject.as_row(smoother=watched_smoother(subject.row, failures)) as watched:
        for population in _CROWDS:
            for turn in range(len(ENDS)):
                draws = (*ENDS[turn:], *ENDS[:turn])
                live, again = (watched.publisher(ScriptedDraws(draws, draws), population) for _ in range(2))
                _expect_finite(live, again, failures)


def _expect_finite(live: Publisher, again: Publisher, failures: list[str]) -> None:
    population = live.population
    with np.errstate(all="ignore"):
        for slot in range(1, 21):
            counts = np.zeros((len(population), len(CELLS)), dtype=np.int64)
            counts[:, slot % 3] = population.sizes if slot % 4 else 0
            release = live.step(counts)
            expect(not failures, "a smoother that takes every measurement", "; ".join(failures), slot)
            interval = release.noise_interval(0.95) or ()
            shown = [release.histogram, release.std_error, release.dissimilarity, *interval]
            numbers = [part for part in shown if part is not None]
            expect(all(np.isfinite(part).all() for part in numbers), "finite numbers", numbers, slot)
            expect(
                release.std_error is None or bool((release.std_error >= 0).all()),
                "no error below 0",
                release.std_error,
                slot,
            )
            again.replay(release.probe_charges, release.publication_charges, live.measured)
    expect_same_state(live, again, "a replay of extreme draws")


def options(subject: Subject) -> None:
    """Options that are for everyone are taken and kept; any other is taken, with windows that hold, or refused by name."""
    users = EVERYONE.users
    for taken in ({"neighbours": "replace"}, {"nonnegative": True}, {"round": True}):
        expect(_run_with(subject, taken), f"{taken} to be taken", "a refusal")
    expect(_run_with(subject, {"neighbours": "replace", "known_total": users}), "a known total", "a refusal")
    row = subject.row
    for refused, applies in (
        ({"known_total": users}, True),
        ({"max_cells_per_user": len(CELLS) + 1}, True),
        ({"threshold": "std"}, row.threshold != "scale"),
        ({"class_weights": "equal"}, not row.tracks),
        ({"class_weights": "calibrated"}, not row.tracks),
        ({"class_weights": "all"}, True),
        ({"seasonality": 12}, not row.tracks),
        ({"special_days": (12, 24)}, True),
        ({"max_cells_per_user": 2}, row.local),
        ({"refund": True}, row.local),
        ({"estimator": "weighting"}, row.local),
        ({"smoothing": "filter"}, row.local),
        ({"estimator": "sampling"}, row.tracks),
        ({"smoothing": "hold"}, row.tracks),
    ):
        taken_all_the_same = _run_with(subject, refused)
        expect(not (applies and taken_all_the_same), f"{refused} to be refused", "a publisher")
    for both in ({"estimator": "sampling", "smoothing": "hold"}, {"estimator": "weighting", "smoothing": "filter"}):
        _run_with(subject, both)


def _run_with(subject: Subject, chosen: dict[str, Any]) -> bool:
    """Whether the options are taken; if so, a stream under them keeps its windows and does what they say."""
    try:
        publisher = subject.publisher(**chosen)
    except InvalidOption as refusal:
        expect(refusal.facts["option"] in chosen, f"a refusal that names one of {list(chosen)}", refusal)
        return False
    books: list[list[int]] = [[] for _ in EVERYONE.classes]
    for release in publisher.run(subject.stream()):
        for book, charge in zip(books, release.charges.tolist(), strict=True):
            book.append(charge)
        values = release.histogram
        expect(bool(np.isfinite(values).all()), "finite numbers", values, release.slot)
        positive = bool((values >= 0).all()) or "nonnegative" not in chosen
        expect(positive, "no value below 0", values.tolist(), release.slot)
        expect("round" not in chosen or bool((values == np.rint(values)).all()), "whole numbers", values, release.slot)
        total = chosen.get("known_total")
        met = total is None or abs(float(values.sum()) - total) < 1e-6 * total
        expect(met, f"a total of {total}", float(values.sum()), release.slot)
    for requirement, book in zip(EVERYONE.classes, books, strict=True):
        expect_windows_hold(requirement, book)
    return True
