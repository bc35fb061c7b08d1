"""docs/reference/http.md knows every call of the API, what it answers, and every object."""

from __future__ import annotations

from tests.support.http_reference import MARKER, TARGET, tables


def test_the_reference_is_made_from_the_document() -> None:
    assert TARGET.read_text().partition(MARKER)[1:] == (MARKER, tables().removeprefix(MARKER)), (
        "run python -m tests.support.http_reference"
    )
