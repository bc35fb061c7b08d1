"""`wevent reproduce`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from wevent.cli.answers import ClaimAnswer, ReproduceAnswer, as_json
from wevent.cli.parameter_types import MECHANISMS
from wevent.cli.pictures import require_matplotlib
from wevent.cli.progress import progress_bar
from wevent.cli.screen import remarks
from wevent.cli.simulation import DATA, SEED, VARIANT
from wevent.cli.words import parse_list
from wevent.errors import InvalidOption
from wevent.experiments.choices import choose
from wevent.experiments.reproduce.campaign import FIGURES, QUICK, STREAMS, Campaign
from wevent.experiments.reproduce.report import redraw_report, write_report
from wevent.experiments.reproduce.runner import absent_streams, plan_tasks, run_tasks
from wevent.experiments.reproduce.store import Store


@click.command("reproduce", epilog="Example: wevent reproduce --streams tlns,sin,log --jobs 2 --out results")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default="reproduction",
    show_default=True,
    help="Folder for figures and report.",
)
@click.option("--quick", is_flag=True, help="A small version of everything: 400 slots, 5 repeats.")
@click.option(
    "--figures", default=",".join(figure.name for figure in FIGURES), show_default=True, help="Which, comma-separated."
)
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
@click.option("--redraw", is_flag=True, help="Draw the pictures in --out again from its CSV files; run nothing.")
@click.option("--json", "wants_json", is_flag=True, help="Print an object, nothing else.")
def command(**given: Any) -> None:
    """Run the paper's experiments again: every figure as CSV and PNG, and an HTML report that ends in a claims table.

    A simulation with seeded noise. A killed run resumes in the same folder. Real streams whose files are not there are
    listed as absent, never replaced.
    """
    console = remarks(silent=given["wants_json"])
    require_matplotlib()
    campaign = _campaign(given)
    figures = _known(given["figures"], [figure.name for figure in FIGURES], "figures")
    streams = _known(given["streams"], list(STREAMS), "streams")
    absent = absent_streams(streams, given["data"])
    present = [stream for stream in streams if stream not in absent]
    if given["redraw"]:
        page = redraw_report(Store(given["out"]), figures, absent)
        if given["wants_json"]:
            click.echo(as_json(ReproduceAnswer(claims=[], absent=absent, report=str(page))))
        console.print(f"Report: {page}", markup=False)
        return
    for reason in absent.values():
        console.print(f"Absent: {reason}", markup=False)
    if not present:
        raise InvalidOption("at least one stream that is there", "none", "Add tlns, sin or log.", option="streams")
    store = Store(given["out"])
    store.open_for(campaign)
    _run(console, store, campaign, figures, present, given)
    page = write_report(store, figures, absent, _command_line(given))
    if given["wants_json"]:
        from wevent.experiments.reproduce.claims import judge
        from wevent.experiments.reproduce.results import Results

        claims = [ClaimAnswer(**vars(claim)) for claim in judge(Results(store.results()))]
        click.echo(as_json(ReproduceAnswer(claims=claims, absent=absent, report=str(page))))
    console.print(f"Report: {page}", markup=False)


def _run(
    console: Console, store: Store, campaign: Campaign, figures: list[str], streams: list[str], given: dict[str, Any]
) -> None:
    wanted = [figure for figure in FIGURES if figure.name in figures]
    axes = sorted({figure.axis for figure in wanted})
    timing = any(figure.measure == "ms_per_slot" for figure in wanted)
    tasks = plan_tasks(campaign, streams, axes, timing=timing, data=given["data"])
    with progress_bar(console, "tasks", stays=True) as show:
        run_tasks(tasks, store, jobs=given["jobs"], progress=show)


def _campaign(given: dict[str, Any]) -> Campaign:
    campaign = replace(QUICK if given["quick"] else Campaign(), seed=given["seed"], variant=given["variant"])
    for name in ("repeats", "slots", "users"):
        if given[name] is not None:
            campaign = replace(campaign, **{name: given[name]})
    if given["mechanisms"]:
        chosen = tuple(choice.label for choice in choose(parse_list(given["mechanisms"])).taken)
        campaign = replace(campaign, mechanisms=chosen)
    return campaign


def _known(text: str, known: list[str], option: str) -> list[str]:
    chosen = parse_list(text)
    unknown = [name for name in chosen if name not in known]
    if unknown or not chosen:
        raise InvalidOption(
            f"{option} out of {', '.join(known)}",
            f"{', '.join(unknown) or 'none'}",
            "Separate several by commas.",
            option=option,
            value=text,
        )
    return chosen


def _command_line(given: dict[str, Any]) -> str:
    """The command that gives these results again."""
    words = ["wevent reproduce"]
    words += ["--quick"] if given["quick"] else []
    context = click.get_current_context()
    for name in ("figures", "streams", "mechanisms", "repeats", "slots", "users", "variant", "seed", "jobs", "out"):
        if context.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE:
            words.append(f"--{name} {given[name]}")
    return " ".join(words)
