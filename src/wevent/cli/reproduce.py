"""`wevent reproduce`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from wevent.cli.answers import ClaimAnswer, ReproduceAnswer, as_json
from wevent.cli.console import progress_bar, remarks
from wevent.cli.parameter_types import MECHANISMS, parse_list
from wevent.cli.pictures import require
from wevent.cli.simulation import DATA, SEED, VARIANT
from wevent.errors import InvalidOption
from wevent.experiments.mechanism_specs import select
from wevent.experiments.reproduce.campaign import FIGURES, QUICK, SETTINGS, STREAMS, Campaign
from wevent.experiments.reproduce.claims import judge
from wevent.experiments.reproduce.results import Results, open_streams, run


@click.command("reproduce", epilog="Example: wevent reproduce --streams tlns,sin,log --jobs 2 --out results")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default="reproduction",
    show_default=True,
    help="Folder for results, pictures and report.",
)
@click.option("--quick", is_flag=True, help="A small version of everything: 400 slots, 5 repeats.")
@click.option("--figures", default=",".join(FIGURES), show_default=True, help="Which, comma-separated.")
@click.option("--streams", default=",".join(STREAMS), show_default=True, help="Which, comma-separated.")
@click.option(
    "--mechanisms",
    type=MECHANISMS,
    default=None,
    help="Comma-separated.  [default: those of the paper and their ancestors]",
)
@click.option("--repeats", type=click.IntRange(1), help="Repeats of every setting.  [default: 10; 5 with --quick]")
@click.option("--slots", type=click.IntRange(10), help="Slots per run.  [default: 10,000; 400 with --quick]")
@click.option("--users", type=click.IntRange(10), help="Users of the synthetic streams.  [default: 10,000]")
@VARIANT
@SEED
@click.option(
    "--jobs", default=1, show_default=True, type=click.IntRange(1), help="Processes; times are always taken alone."
)
@DATA
@click.option("--redraw", is_flag=True, help="Draw the pictures in --out again; run nothing.")
@click.option("--json", "wants_json", is_flag=True, help="Print an object, nothing else.")
def command(**given: Any) -> None:
    """Reproduce the experiments of the paper.

    Writes a picture per figure, and a report that ends in a table of claims.

    A simulation with seeded noise. A killed run resumes in the same folder. Real streams whose files are not there are
    listed as absent, never replaced.
    """
    console = remarks(silent=given["wants_json"])
    require("matplotlib")
    from wevent.experiments.reproduce.report import write_report

    campaign = _campaign(given)
    figures = _known(given["figures"], list(FIGURES), "figures")
    streams, absent = open_streams(_known(given["streams"], list(STREAMS), "streams"), campaign, given["data"])
    if given["redraw"]:
        results = Results(given["out"])
    else:
        for reason in absent.values():
            console.print(f"Absent: {reason}", markup=False)
        if not streams:
            raise InvalidOption("None of the streams is there.", "Add tlns, sin or log.", option="streams")
        results = Results(given["out"], campaign)
        axes = {FIGURES[name].axis for name in figures}
        settings = [setting.key for setting in SETTINGS.values() if axes & set(setting.places)]
        with progress_bar(console, "settings", stays=True) as show:
            run(results, campaign, streams, settings, jobs=given["jobs"], progress=show)
    claims = judge(results)
    report = write_report(results, figures, claims, absent)
    if given["wants_json"]:
        rows = [ClaimAnswer(**vars(claim)) for claim in claims]
        click.echo(as_json(ReproduceAnswer(claims=rows, absent=absent, report=str(report))))
    console.print(f"Report: {report}", markup=False)


def _campaign(given: dict[str, Any]) -> Campaign:
    campaign = replace(QUICK if given["quick"] else Campaign(), seed=given["seed"], variant=given["variant"])
    for name in ("repeats", "slots", "users"):
        if given[name] is not None:
            campaign = replace(campaign, **{name: given[name]})
    if given["mechanisms"]:
        chosen = tuple(spec.label for spec in select(parse_list(given["mechanisms"])).taken)
        campaign = replace(campaign, mechanisms=chosen)
    return campaign


def _known(text: str, known: list[str], option: str) -> list[str]:
    chosen = parse_list(text)
    unknown = [name for name in chosen if name not in known]
    if unknown or not chosen:
        raise InvalidOption(
            f"--{option} names {', '.join(unknown) or 'none'}.",
            f"Choose from {', '.join(known)}, separated by commas.",
            option=option,
            value=text,
        )
    return chosen
