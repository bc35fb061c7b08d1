"""The public face: names, version, no side effects."""

from __future__ import annotations

import re

import wevent


def test_every_public_name_is_there_and_documented() -> None:
    for name in wevent.__all__:
        assert getattr(wevent, name).__doc__, name
    assert sorted(wevent.__all__) == wevent.__all__


def test_the_version_is_semantic() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", wevent.__version__)
