"""What every test run needs: the right wevent, quick files, and hypothesis profiles."""

import os
from pathlib import Path

import pytest

import wevent
from tests.support import (
    profiles,  # noqa: F401  registers and loads the hypothesis profile
    quick_disk,
)

quick_disk.use()


def pytest_configure(config: pytest.Config) -> None:
    """With WEVENT_EXPECT_INSTALLED=1 the built wheel is under test, never the source tree."""
    if os.environ.get("WEVENT_EXPECT_INSTALLED") == "1" and "site-packages" not in Path(wevent.__file__).parts:
        raise pytest.UsageError(f"expected the installed wheel, but wevent comes from {Path(wevent.__file__).parent}")
