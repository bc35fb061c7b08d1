"""One process of the fuzzer: `python -m tests.fuzz.fuzzer PROGRAM TARGET [options of libFuzzer]`. It ends itself."""

from __future__ import annotations

import os
import sys
import tempfile

import atheris

from tests.fuzz import targets
from tests.support import quick_disk


def main() -> None:
    program, name, *options = sys.argv[1:]
    quick_disk.use()
    with atheris.instrument_imports(include=["wevent"]):
        target = targets.load(name)
    os.chdir(tempfile.mkdtemp(prefix="wevent-fuzz"))  # names in inputs are names of nothing
    atheris.Setup([program, *options], target.check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
