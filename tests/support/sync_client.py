"""Generator of the blocking client from the asynchronous one.

`python -m tests.support.sync_client` writes src/wevent/client/sync_client.py anew; a test compares.
"""

from __future__ import annotations

import re
from pathlib import Path

_FOLDER = Path(__file__).parents[2] / "src/wevent/client"
TARGET = _FOLDER / "sync_client.py"
_REPLACEMENTS = {
    r'\A""".*?"""': '"""The client for blocking programs.\n\n'
    'Generated from `async_client.py` by `python -m tests.support.sync_client`. Edit that file.\n"""',
    r"asynchronous programs": "blocking programs",
    r" *import anyio\n": "",
    r"anyio\.sleep": "time.sleep",
    r"\b(async|await) ": "",
    r"\bAsync(?=[A-Z])": "",
    r"handle_async_request": "handle_request",
    r"\b(__)?a(?=(enter__|exit__|closing|close|iter_bytes|read)\b)": r"\1",
}


def text() -> str:
    """Return the source of the blocking client."""
    source = (_FOLDER / "async_client.py").read_text()
    for pattern, replacement in _REPLACEMENTS.items():
        source = re.sub(pattern, replacement, source, flags=re.DOTALL)
    return source


if __name__ == "__main__":
    TARGET.write_text(text())
