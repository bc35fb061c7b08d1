"""What a side file says, whatever is in it: a text that means nothing is none, and stops nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from wevent.journal.witness import read_witness


@pytest.mark.parametrize(
    "text",
    [b"\0" * 4096, b" " * 4096, b"[" * 4096, b'{"x":' + b"[" * 4000, b'{"committed":1e400}', b'{"journal":"\xff"}'],
)
def test_a_text_that_means_nothing_cannot_be_read(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "side").write_bytes(text)
    assert not read_witness(tmp_path / "side").readable
