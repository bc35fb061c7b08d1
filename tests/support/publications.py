"""A run over a journal, for tests: a made-up stream, published to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.synthetic import SyntheticSource
from wevent.journal import Journal
from wevent.outputs import open_output
from wevent.publishing.loop import Publication, Running


def publish(journal: Journal, out: Path, end: int, **running: Any) -> Publication:
    """Publish through a slot."""
    output = open_output(str(out))
    publication = Publication(journal, SyntheticSource(end), output, running=Running(last=end, **running))
    publication.run()
    output.close()
    return publication
