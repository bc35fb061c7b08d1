"""Ending although the database of the journal does not answer: a statement that waits for a frozen server waits for ever.

No timeout of its own may end a slot that is being drawn or stored, since the next run would draw it again (spec 10). So
what ends a process is the operator's signal together with a database that does not answer, which no draw has a part in:
for as long as it answers, the run is let finish. What became of a commit that was on its way is read by the next run
before it draws anything.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from pathlib import Path
from typing import NoReturn, Self

from wevent.journal import JournalPlace, PostgresPlace, share_journal

END_S = 20.0
"""So long after a signal an orderly end is waited for; a second signal ends the wait, not the run."""

_ANSWER_S = 5.0  # so long the database has to answer when it is asked
_EXIT_CODE = 75  # the fault may pass: EX_TEMPFAIL


class ForcedEnd:
    """Ends the process some time after a signal, if the database of its journal does not answer; a context manager.

    Args:
        place: the journal; of one in a file nothing happens.
    """

    def __init__(self, place: JournalPlace) -> None:
        self._place = place
        self._hurry = threading.Event()
        self._is_asked = self._is_over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._hurry.set()

    def asked(self) -> None:
        """A signal has come."""
        if isinstance(self._place, Path):
            return
        if self._is_asked:
            self._hurry.set()
            return
        self._is_asked = True
        threading.Thread(target=self._watch, name="wevent-ending", daemon=True).start()

    def _watch(self) -> None:
        assert isinstance(self._place, PostgresPlace)
        shared = share_journal(self._place)
        while True:
            self._hurry.wait(END_S)
            self._hurry.clear()
            if self._is_over:
                return
            if not shared.answers(_ANSWER_S) and not self._is_over:
                self._end()

    def _end(self) -> NoReturn:
        """Leave at once: threads that wait for the database cannot be ended, and would keep the interpreter from ending."""
        sentence = (
            f"Error: Expected the database of the journal to answer before the end; received nothing ({self._place}). Ended "
            "as asked without it: what is committed is intact, and the next run reads what became of the last slot before "
            "it draws anything."
        )
        logging.shutdown()
        sys.stdout.flush()
        os.write(2, f"{sentence}\n".encode())
        os._exit(_EXIT_CODE)
