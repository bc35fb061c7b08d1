"""Seeded runs of the whole product whose numbers must never change: the library, files, live lines; plain types."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.emitted import nano
from tests.support.live_events import pipe_source
from tests.support.streams import DAY, SECOND, ScriptedInbox, Wall, settings
from tests.support.synthetic import CLASSES, make_terms, register
from wevent import Population, Publisher, Release, Requirement, SeededNoise, mechanisms
from wevent.journal import SqliteJournal
from wevent.outputs import open_output
from wevent.people.membership import Change
from wevent.publishing.loop import Publication, Running
from wevent.streams import FileSource, SlotClock, Source

SLOTS, HALF, CELLS = 40, 20, 5
VARIANTS: dict[str, dict[str, Any]] = {
    **{name: {"mechanism": name} for name in mechanisms()},
    "pft": {"mechanism": "pft", "class_weights": "budget"},
    "pbd replace": {"mechanism": "pbd", "neighbours": "replace", "known_total": 600},
    "pba refund": {"mechanism": "pba", "refund": True, "max_cells_per_user": 2},
    "ba std": {"mechanism": "ba", "threshold": "std"},
    "pbd filter": {
        "mechanism": "pbd",
        "estimator": "weighting",
        "smoothing": "filter",
        "round": True,
    },
    "pft unbiased": {"mechanism": "pft", "class_weights": "equal"},
    "pft nonnegative": {"mechanism": "pft", "class_weights": "equal", "nonnegative": True},
    "pft anchors": {"mechanism": "pft", "class_weights": "calibrated"},
    "pft cycle": {
        "mechanism": "pft",
        "class_weights": "budget",
        "seasonality": 12.0,
        "special_days": (13, 25),
    },
}
KINDS = {"fresh": "published", "repeated": "repeated", "estimated": "repeated", "nullified": "nullified"}
"""Outcomes in the form of the golden files."""

JOURNALS = {name: VARIANTS[name] for name in ("pbd", "pba refund", "bd", "pft", "pbd filter", "lbu", "sample")}


def library_run(variant: str) -> list[dict[str, Any]]:
    """Forty slots through `Publisher`; the population changes in slot 11; restored from its state after slot 20."""
    publisher = Publisher(_population(), CELLS, noise=SeededNoise(7), **VARIANTS[variant])
    releases = []
    for slot in range(1, SLOTS + 1):
        if slot == 11:
            publisher.update(
                Population({one: size + 30 for one, size in _population().items()}), turnover=30 * len(_population())
            )
        releases.append(publisher.step(_counts(slot, publisher.population)))
        if slot == HALF:
            publisher = Publisher.restore(publisher.state())
    return [_plain(release) for release in releases]


def journal_run(variant: str, way: str, folder: Path) -> dict[str, Any]:
    """Thirty slots over a journal, in two runs with changes of requirements between; output lines and stored charges."""
    journal = SqliteJournal(folder / "run.journal", write=True)
    options = {key: value for key, value in VARIANTS[variant].items() if key != "mechanism"}
    journal.begin(make_terms(origin_us=DAY, cells=4, mechanism=VARIANTS[variant]["mechanism"], **options))
    register(journal, 90)
    _publish(journal, way, folder, 1, 15, variant)
    journal.registry.ask([Change("set", "u0", CLASSES[1]), Change("remove", "u1"), Change("set", "u500", CLASSES[0])])
    _publish(journal, way, folder, 16, 30, variant)
    charges = [[record.probe.tolist(), record.publication.tolist()] for record in journal.releases()]
    journal.close()
    lines = [golden_line(line) for line in (folder / "out.ndjson").read_text().splitlines()]
    return {"lines": lines, "charges": charges}


def golden_line(text: str) -> dict[str, Any]:
    """Return a line in the form of the golden files, with the same numbers.

    Epsilons are whole nano-epsilons, which the decimals must be exactly; before the first measurement there are zeros.
    """
    line, exact = json.loads(text), json.loads(text, parse_float=Decimal)
    classes = [[held["window"], nano(held["epsilon"])] for held in exact["classes"]]
    return {
        "slot": line["slot"],
        "time": line["start"],
        "mechanism": line["mechanism"],
        "outcome": KINDS[line["outcome"]],
        "fresh": line["measured"] == line["slot"],
        "histogram": [0] * line["cells"] if line["histogram"] is None else line["histogram"],
        "std_error": line["std_error"],
        "classes": classes,
        "charges": [nano(charge) for charge in exact["charges"]],
        "threshold": None if exact["threshold"] is None else nano(exact["threshold"]),
        "dissimilarity": line["dissimilarity"],
    }


def _publish(journal: SqliteJournal, way: str, folder: Path, first: int, last: int, variant: str) -> None:
    k = VARIANTS[variant].get("max_cells_per_user", 1)
    clock = SlotClock(DAY, 60 * SECOND)
    source: Source
    if way == "files":
        (folder / "events.csv").write_text("time,user,cell\n" + "".join(_events(1, 30, "{time},{user},{cell}\n")))
        source = FileSource(settings([str(folder / "events.csv")], max_cells_per_user=k), clock, last)
    else:
        lines = _events(first, last, '{{"time": {time}, "user": "{user}", "cell": {cell}}}\n', '{{"close": {time}}}\n')
        inbox = ScriptedInbox(["".join(lines).encode()], wall := Wall())
        chosen = settings(close_slots_by="lines", max_cells_per_user=k)
        source = pipe_source(chosen, clock, last, inbox=inbox, now_us=wall)
    output = open_output(str(folder / "out.ndjson"))
    running = Running(last=last, batch=7 if way == "files" else 1)
    Publication(journal, source, output, running=running, noise=SeededNoise(first)).run()
    output.close()


def _events(first: int, last: int, form: str, close: str = "") -> list[str]:
    lines = []
    for slot in range(first, last + 1):
        for user in range(0, 95, 2):
            time = DAY // SECOND + (slot - 1) * 60 + user % 60
            lines.append(form.format(time=time, user=f"u{user}", cell=(user * 7 + slot * (user % 5)) % 4))
        lines.append(close.format(time=DAY // SECOND + slot * 60))
    return lines


def _population() -> Population:
    return Population({Requirement.from_nano(*key): 100 * (row + 1) for row, key in enumerate(CLASSES)})


def _counts(slot: int, population: Population) -> Any:
    shares = 1.0 + np.floor(4.0 * np.sin(slot / 5.0 + np.arange(CELLS))) / 8.0
    return np.floor(population.sizes[:, None] * shares[None, :] / 12.0).astype(np.int64)


def _plain(release: Release) -> dict[str, Any]:
    return {
        "outcome": KINDS[release.outcome],
        "histogram": release.histogram.tolist(),
        "std_error": None if release.std_error is None else release.std_error.tolist(),
        "probe": release.probe_charges.tolist(),
        "publication": release.publication_charges.tolist(),
        "threshold": release.threshold,
        "dissimilarity": release.dissimilarity,
    }
