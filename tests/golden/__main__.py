"""Record the golden numbers: `python -m tests.golden`. Run it only when a change of the numbers is the intention."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path

from tests.golden.runs import JOURNALS, VARIANTS, journal_run, library_run

DATA = Path(__file__).parent / "data"


def main() -> None:
    library = {name: library_run(name) for name in VARIANTS}
    journals = {}
    for name in JOURNALS:
        for way in ("files", "live"):
            with tempfile.TemporaryDirectory() as folder:
                journals[f"{name}, {way}"] = journal_run(name, way, Path(folder))
    for file, content in (("library", library), ("journals", journals)):
        data = json.dumps(content, separators=(",", ":")).encode()
        (DATA / f"{file}.json.gz").write_bytes(gzip.compress(data, mtime=0))


if __name__ == "__main__":
    main()
