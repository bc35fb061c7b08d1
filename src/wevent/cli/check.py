"""`wevent check`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click
import msgspec

from wevent.cli.answers import CheckAnswer, as_json
from wevent.cli.console import new_table, print_table
from wevent.cli.flags import GroupedCommand, chosen_settings, run_flags, setting_flags, take_run_options
from wevent.cli.standard_output import without_controls
from wevent.core.options import option_values
from wevent.core.requirements import Levels, Requirement
from wevent.experiments.datasets.synthetic import Daily
from wevent.experiments.formatting import short
from wevent.experiments.planning import expect, population_warnings
from wevent.journal.terms import Terms
from wevent.publishing.configuration import PUBLISHING
from wevent.publishing.dry_run import DryRun, dry_run
from wevent.publishing.importing import Difference
from wevent.settings.values import SECOND_US, format_time, span_text
from wevent.streams.source import MALFORMED, REJECTED

PRIVATE = "For the operator, private: what follows depends on events. Do not publish it. Nothing was spent or written."
_LIVE = (
    "Live lines cannot be checked before they come: keep some of them in a file and check that, "
    "as in `wevent check sample.ndjson --config wevent.toml`."
)
_SLOTS = 500  # of the invented stream, at most
_ROOM = 20_000_000  # numbers that it may have: slots × classes × cells
_DAY_US = 86_400 * SECOND_US


@click.command("check", cls=GroupedCommand, epilog="Example: wevent check wevent.toml")
@click.argument("inputs", metavar="[CONFIG | EVENTS...]", nargs=-1)
@setting_flags
@run_flags
@click.option("--json", "wants_json", is_flag=True, help="Print everything as JSON; as private as the rest.")
def command(inputs: tuple[str, ...], config: Path | None, wants_json: bool, **options: Any) -> None:
    """Validate settings and inputs without publishing.

    Reads the inputs like `publish` and reports rejected events, classes and the expected error. Stores nothing and spends
    no budget. The report depends on private events: do not share it. Exit code 2 if the settings are invalid, otherwise 0.
    """
    if config is None and len(inputs) == 1 and inputs[0].endswith(".toml"):
        config, inputs = Path(inputs[0]), ()
    run_options = take_run_options(options)
    settings, _ = chosen_settings(config, {**options, "inputs": inputs or None}, PUBLISHING[1:])
    found = dry_run(settings, run_options)
    facts = _facts(found)
    answer = msgspec.convert(facts, CheckAnswer)
    if wants_json:
        click.echo(as_json(answer))
    else:
        _print(facts, found.imported)


def _facts(found: DryRun) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "private": PRIVATE,
        "journal": None if found.settings.journal is None else str(found.settings.journal),
        "mechanism": found.terms.mechanism,
        "clock": {
            "first_slot": found.first,
            "last_slot": found.last,
            "slot_seconds": None if found.settings.slot_column else found.clock.length_us / SECOND_US,
            "start": None if found.settings.slot_column else format_time(found.clock.origin_us),
            "end": _end(found),
        },
        "inputs": None,
        "matching": None,
        "not_counted": None,
        "first_malformed": found.malformed,
        "people": {
            "counted": found.population.users,
            "changes": None if found.imported is None else found.imported.to_dict(),
        },
        "classes": [
            _class(found, held, size)
            for held, size in found.population.items()
            if size or held.key in found.terms.declared  # no user can choose the corner
        ],
        "expected_error": _expected(found),
        "hints": [*found.settings.notes, *found.hints],
        "warnings": list(population_warnings(found.population)) if found.population.users else [],
    }
    inspection, totals = found.inspection, found.totals
    if inspection is None:
        facts["hints"].append(_LIVE)
        return facts
    span = inspection.span
    facts["inputs"] = [{"file": file, "columns": names} for file, names in inspection.columns.items()]
    facts["matching"] = {
        "events": inspection.events,
        "first_event": None if span is None else _when(found, span[0]),
        "last_event": None if span is None else _when(found, span[1]),
        "of_registered_users": inspection.users_found,
        "in_declared_cells": inspection.cells_found,
        "registered_who_occur": inspection.people,
    }
    facts["not_counted"] = {
        **{name: totals[name] for name in ("rejected", "malformed")},
        "reasons": [
            {"reason": words, "events": totals[name], "looks_like": inspection.outlines.get(name)}
            for name, words in (REJECTED | MALFORMED).items()
        ],
    }
    return facts


def _end(found: DryRun) -> str | None:
    if found.last is None or found.settings.slot_column:
        return None
    return format_time(found.clock.start_of(found.last + 1))


def _when(found: DryRun, time_us: int) -> str:
    """Return a time to the second, or the number of a slot."""
    if found.settings.slot_column:
        return f"slot {time_us + 1}"
    try:
        return format_time(time_us // SECOND_US * SECOND_US)
    except OverflowError:
        return "beyond any calendar"


def _class(found: DryRun, held: Requirement, size: int) -> dict[str, Any]:
    length_us = None if found.settings.slot_column else found.clock.length_us
    return {
        "window": held.window,
        "span": None if length_us is None else span_text(held.window * length_us),
        "epsilon": held.epsilon,
        "level": _words(found.terms).get(held),
        "users": size,
    }


def _words(terms: Terms) -> dict[Requirement, str]:
    """Return the levels by requirement; without a table of its own a stream has the default one."""
    offered = (terms.level_table or Levels.default()).offered()
    return {requirement: level for level, requirement in reversed(offered.items())}


def _expected(found: DryRun) -> dict[str, Any] | None:
    """Return the error on a synthetic stream with the same users, cells and slots; it does not depend on events."""
    population, cells = found.population, len(found.settings.cells)
    widest = max(held.window for held in population.classes)
    slots = min(_SLOTS, max(2 * widest, 100), _ROOM // (len(population) * cells))
    if not population.users or slots < 20:
        return None
    per_day = 24.0 if found.settings.slot_column else max(1.0, _DAY_US / found.clock.length_us)
    options = option_values(found.terms)
    stream = Daily(population.users, slots, cells, per_day)
    scores = expect(population, stream, options.pop("mechanism"), options)
    return {
        "mechanism": found.terms.mechanism,
        "typical_error": math.sqrt(scores.amre.mean()),
        "stream": f"invented: a daily rhythm, half of the people present, {slots} slots",
        "fresh_share": float(scores.fresh.mean()) / slots,
    }


def _print(facts: dict[str, Any], imported: Difference | None) -> None:
    click.echo(facts["private"])
    clock = facts["clock"]
    for entry in facts["inputs"] or ():
        names = ", ".join(map(without_controls, entry["columns"]))  # of NDJSON they come with events
        click.echo(f"{entry['file']}: columns {names or 'none'}")
    slots = f"Slots {clock['first_slot']} to {'…' if clock['last_slot'] is None else clock['last_slot']}"
    if clock["start"] is not None:
        slots += f" of {span_text(round(clock['slot_seconds'] * SECOND_US))}, from {clock['start']}"
        slots += "" if clock["end"] is None else f" to {clock['end']}"
    click.echo(f"{slots}.")
    if facts["matching"] is not None:
        _print_matching(facts)
    _print_people(facts, imported)
    expected = facts["expected_error"]
    if expected is not None:
        click.echo(
            f"Expected error with {expected['mechanism']}: about {short(expected['typical_error'])} users per cell and "
            f"slot ({expected['stream']}; not your data)."
        )
    for kind in ("hints", "warnings"):
        for sentence in facts[kind]:
            click.echo(f"{kind[:-1].capitalize()}: {sentence}")


def _print_matching(facts: dict[str, Any]) -> None:
    matching, rejected = facts["matching"], facts["not_counted"]
    events = matching["events"]
    if events:
        click.echo(f"Events from {matching['first_event']} to {matching['last_event']}: {events:,}.")
    click.echo(
        f"Of registered users: {_share(matching['of_registered_users'], events)}. "
        f"In declared cells: {_share(matching['in_declared_cells'], events)}. "
        f"Registered people who occur: {matching['registered_who_occur']:,}."
    )
    if not rejected["rejected"] + rejected["malformed"]:
        click.echo("Every event would count.")
        return
    table = new_table("Events that would not count", ["reason", "looks like"], ["events"])
    for row in rejected["reasons"]:
        if row["events"]:
            table.add_row(row["reason"], row["looks_like"] or "-", f"{row['events']:,}")
    print_table(table)
    for place in facts["first_malformed"]:
        click.echo(f"Malformed: {place}")


def _share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,} ({part / whole:.1%})" if whole else "none of none"


def _print_people(facts: dict[str, Any], imported: Difference | None) -> None:
    table = new_table("Classes", ["level"], ["slots", "window", "epsilon", "users"])
    for row in facts["classes"]:
        table.add_row(
            row["level"] or "-",
            str(row["window"]),
            row["span"] or "-",
            f"{row['epsilon']:g}",
            f"{row['users']:,}",
        )
    print_table(table)
    if imported is not None:
        click.echo(" ".join((f"Requirements: {imported}.", *imported.sentences())))
