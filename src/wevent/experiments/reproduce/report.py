"""Tables, pictures and one page that opens offline."""

from __future__ import annotations

import base64
import csv
import html
import io
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from wevent.errors import InvalidOption
from wevent.experiments.reproduce.campaign import FIGURES, Figure
from wevent.experiments.reproduce.claims import Judged, judge
from wevent.experiments.reproduce.results import Results
from wevent.experiments.reproduce.store import Store
from wevent.file_io import atomic_write_text


def write_report(store: Store, figures: Sequence[str], absent: Mapping[str, str], command: str) -> Path:
    """CSV and PNG per figure, `claims.csv`, `README.md` and `report.html` in the store's folder; returns the page."""
    results = Results(store.results())
    settings = store.settings()
    tables = {}
    for figure in (figure for figure in FIGURES if figure.name in figures):
        rows = results.rows(figure)
        if rows:
            _write_csv(store.folder / f"{figure.name}.csv", rows, settings)
            tables[figure] = rows
    judged = judge(results)
    _write_csv(store.folder / "claims.csv", [vars(claim) for claim in judged], settings)
    return _write_pages(store, tables, judged, absent, command)


def redraw_report(store: Store, figures: Sequence[str], absent: Mapping[str, str]) -> Path:
    """Pictures and pages once more, from the CSV files of a finished reproduction; nothing is run.

    Raises:
        InvalidOption: if the folder has no reproduction.
    """
    folder = store.folder
    if not all((folder / name).is_file() for name in ("settings.json", "claims.csv", "README.md")):
        raise InvalidOption(
            "a folder with a finished reproduction (settings.json, claims.csv, README.md and a CSV file per figure)",
            f"{str(folder)!r}",
            "Name it with --out, or run it first.",
            option="out",
            value=str(folder),
        )
    with (folder / "claims.csv").open(encoding="utf-8", newline="") as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file))
    judged = [Judged(**{field.name: row[field.name] for field in fields(Judged)}) for row in rows]
    tables = {}
    for figure in (figure for figure in FIGURES if figure.name in figures):
        path = folder / f"{figure.name}.csv"
        if path.is_file():
            tables[figure] = _read_csv(path, figure)
    command = (folder / "README.md").read_text(encoding="utf-8").partition("`")[2].partition("`")[0]
    return _write_pages(store, tables, judged, absent, command)


def _write_pages(
    store: Store,
    tables: Mapping[Figure, Sequence[Mapping[str, Any]]],
    judged: Sequence[Judged],
    absent: Mapping[str, str],
    command: str,
) -> Path:
    from wevent.experiments.reproduce.figure_panels import draw_figure  # needs matplotlib

    settings = store.settings()
    pictures = []
    for figure, rows in tables.items():
        path = store.folder / f"{figure.name}.png"
        draw_figure(figure, rows, path, settings)
        pictures.append((figure, path))
    names = [figure.name for figure in tables]
    atomic_write_text(store.folder / "README.md", _markdown(judged, settings, absent, command, names))
    page = store.folder / "report.html"
    atomic_write_text(page, _page(judged, settings, absent, command, pictures))
    return page


def _read_csv(path: Path, figure: Figure) -> list[dict[str, Any]]:
    numbers = (figure.axis, figure.measure, "low", "high")
    with path.open(encoding="utf-8", newline="") as file:
        return [{**row, **{name: float(row[name]) for name in numbers}} for row in csv.DictReader(file)]


def _write_csv(path: Path, rows: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]) -> None:
    """Every row carries seed, version and commit."""
    origin = {name: settings[name] for name in ("seed", "version", "commit")}
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, [*rows[0], *origin], lineterminator="\n")
    writer.writeheader()
    writer.writerows({**row, **origin} for row in rows)
    atomic_write_text(path, buffer.getvalue())


def _facts(settings: Mapping[str, Any]) -> str:
    drawn = "printed in the paper" if settings["variant"] == "printed" else "drawn by the authors' code"
    return (
        f"wevent {settings['version']}, commit {settings['commit']}, seed {settings['seed']}; "
        f"{settings['users']} users (synthetic streams), {settings['slots']} slots, {settings['repeats']} repeats; "
        f"streams as {drawn}; times over {settings['timed_slots']} slots of single runs with secure noise."
    )


_NOTES = (
    "AMRE is the mean squared error per slot and cell: the paper's formula, which it calls relative; pictures have a "
    "logarithmic axis where the paper draws ln(AMRE). Intervals are 95 % over repeats (Student's t). Changes in the "
    "claims table are typical ones (mean of log ratios, repeat by repeat on the same people), followed by the ratio of "
    "means, which is how the paper averages. A claim holds if every comparison agrees beyond noise, partly if some do. "
    "The published BA and PBA errors came from code that did not record the spent budget; honest ones are larger, so "
    "absolute numbers are not compared here."
)


def _markdown(
    judged: Sequence[Judged],
    settings: Mapping[str, Any],
    absent: Mapping[str, str],
    command: str,
    figures: Sequence[str],
) -> str:
    lines = ["# Reproduction of the paper's experiments", "", f"`{command}`", "", _facts(settings), "", _NOTES, ""]
    for name, reason in absent.items():
        lines += [f"Absent: **{name}**. {html.escape(reason, quote=False)}", ""]
    lines += ["", *(f"![{name}]({name}.png)" for name in figures), "", "## Claims", ""]
    lines += ["| claim | paper | BD/BA at | verdict | measured |", "|---|---|---|---|---|"]
    for claim in judged:
        lines.append(f"| {claim.claim} | {claim.paper} | {claim.baseline} | **{claim.verdict}** | {claim.measured} |")
    return "\n".join(lines) + "\n"


_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
img { max-width: 100%; }
table { border-collapse: collapse; font-size: .85rem; }
td, th { border: 1px solid #bbb; padding: .3rem .5rem; text-align: left; vertical-align: top; }
.holds { background: #d8f0d8; } .partly { background: #fff1cc; } .does { background: #f8d7d7; }
.not { background: #eee; }
code { background: #f2f2f2; padding: .1rem .3rem; }
"""


def _page(
    judged: Sequence[Judged],
    settings: Mapping[str, Any],
    absent: Mapping[str, str],
    command: str,
    pictures: Sequence[tuple[Figure, Path]],
) -> str:
    escape = html.escape
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'><title>wevent: the paper's experiments</title>"
        f"<style>{_STYLE}</style></head><body><h1>The paper's experiments, run again</h1>",
        f"<p><code>{escape(command)}</code></p><p>{escape(_facts(settings))}</p><p>{escape(_NOTES)}</p>",
    ]
    if absent:
        listed = "".join(f"<li><b>{escape(name)}</b>: {escape(reason)}</li>" for name, reason in absent.items())
        parts.append(f"<h2>Absent streams</h2><p>Not run, and not replaced by anything:</p><ul>{listed}</ul>")
    for figure, path in pictures:
        encoded = base64.b64encode(path.read_bytes()).decode("ascii")
        parts.append(
            f"<h2>{escape(figure.title)}</h2><img alt='{escape(figure.title)}' src='data:image/png;base64,{encoded}'>"
        )
    parts.append("<h2>Claims</h2><table><tr><th>claim<th>paper<th>BD/BA at<th>verdict<th>measured</tr>")
    for claim in judged:
        cells = "".join(f"<td>{escape(text)}</td>" for text in (claim.claim, claim.paper, claim.baseline))
        verdict = f"<td class='{claim.verdict.split()[0]}'>{claim.verdict}</td>"
        parts.append(f"<tr>{cells}{verdict}<td>{escape(claim.measured).replace('; ', '<br>')}</td></tr>")
    parts.append("</table></body></html>\n")
    return "\n".join(parts)
