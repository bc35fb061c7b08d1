"""Labels of cells in outputs: whatever is in them, two labels stay two, and reading gives back what was declared."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wevent
from wevent.errors import InvalidInput
from wevent.outputs.lines import CSV_HEADER

ODD = [
    "a\nb",
    "a\\nb",
    "a\\\nb",
    "a\\\\nb",
    "\\",
    "\\\\",
    "\r",
    "\\r",
    "\r\n",
    "\n",
    "",
    " ",
    '"',
    '\\"',
    ",",
    ";\t'",
    "\u2028",
]
LABELS = st.lists(
    st.one_of(
        st.sampled_from(ODD),
        st.text(st.sampled_from("\\\\nr\n\r\",' ab;\t"), max_size=8),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    ),
    min_size=1,
    max_size=12,
    unique=True,
)


def unescaped(field: str) -> str:
    """The rule of docs/reference/releases.md, word by word."""
    label, signs = "", iter(field)
    for sign in signs:
        label += sign if sign != "\\" else {"\\": "\\", "n": "\n", "r": "\r"}[next(signs)]
    return label


def check(labels: list[str], endings: tuple[str, ...]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        event = {"time": 1_767_225_605, "user": "ann", "cell": labels[0]}
        (folder / "events.ndjson").write_text(json.dumps(event) + "\n")
        for ending in endings:
            out = folder / f"out.{ending}"
            wevent.publish(
                str(folder / "events.ndjson"),
                slot="60s",
                start="2026-01-01T00:00:00Z",
                end="2026-01-01T00:02:00Z",
                cells=labels,
                requirements={"ann": wevent.Requirement(4, 1.0)},
                journal=str(folder / f"{ending}.journal"),
                out=str(out),
                mechanism="uniform",
            )
            assert wevent.read_releases(str(out)).columns["cell"] == labels * 2, ending
            if ending == "csv":
                text = out.read_bytes()
                assert text.count(b"\n") == 1 + 2 * len(labels), "a row is one line"
                rows = list(csv.DictReader(io.StringIO(text.decode(), newline="")))
                assert [unescaped(row["cell"]) for row in rows] == labels * 2


def test_every_format_gives_back_odd_labels() -> None:
    check(ODD, ("csv", "ndjson", "parquet"))


@pytest.mark.hypothesis
@given(labels=LABELS)
def test_tables_give_back_any_labels(labels: list[str]) -> None:
    check(labels, ("csv", "parquet"))


@pytest.mark.parametrize("field", ["a\\", "a\\x", "\\\\\\"])
def test_an_escape_that_is_never_written_is_refused(tmp_path: Path, field: str) -> None:
    path = tmp_path / "out.csv"
    path.write_bytes(CSV_HEADER + f"1,,,{field},3,,,,fresh,1,pbd\n".encode())
    with pytest.raises(InvalidInput):
        wevent.read_releases(str(path))
