"""What every test run needs: the right wevent, quick files, hypothesis profiles, and a catalogue that stays as it was."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import wevent
from tests.support import (
    profiles,  # noqa: F401  registers and loads the hypothesis profile
    quick_disk,
)
from wevent.publisher import catalogue

quick_disk.use()


def pytest_configure(config: pytest.Config) -> None:
    """With WEVENT_EXPECT_INSTALLED=1 the built wheel is under test, never the source tree."""
    if os.environ.get("WEVENT_EXPECT_INSTALLED") == "1" and "site-packages" not in Path(wevent.__file__).parts:
        raise pytest.UsageError(f"expected the installed wheel, but wevent comes from {Path(wevent.__file__).parent}")


@pytest.fixture(autouse=True)
def _own_catalogue() -> Iterator[None]:
    """What a test registers is gone after it: no other test of the process meets it."""
    before = dict(catalogue._registered)
    yield
    catalogue._registered.clear()
    catalogue._registered.update(before)
