"""Runs that are killed: a child publishes, SIGKILL ends it, the next one resumes; then everything must add up.

The child is forked after import, so a round costs milliseconds. What it emitted is read from the output file right
after its death: bytes that were public once.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from tests.support.commands import wait_for
from tests.support.emitted import charges_of
from tests.support.synthetic import SyntheticSource, make_journal
from tests.support.window_checker import violated_windows
from wevent.journal import SqliteJournal
from wevent.noise import SecureNoise
from wevent.outputs import StreamOutput, open_output
from wevent.outputs.lines import ndjson_line
from wevent.publishing import loop
from wevent.publishing.loop import Publication, Running
from wevent.verification import verify_journal

STEPS = (
    "stepped", "written ahead", "began", "slots stored", "version stored", "position stored", "committed", "emitted",
)  # fmt: skip


class Broken(AssertionError):
    """The promise of exactly one release per slot, or of the windows, did not survive."""


class Rounds:
    """One stream that is published in many killed rounds.

    Args:
        folder: where journal and output are.
        publication: the loop under test.
        journal: the journal under test.
        batch: slots per transaction.
        stream: emit as to standard output, where slots may be sent again, but only with the same bytes.
    """

    def __init__(
        self,
        folder: Path,
        publication: type[Publication] = Publication,
        journal: type[SqliteJournal] = SqliteJournal,
        batch: int = 1,
        *,
        stream: bool = False,
    ) -> None:
        self.path, self.out = folder / "run.journal", folder / "out.ndjson"
        self._stream = stream
        self._publication, self._journal, self._batch = publication, journal, batch
        self._seen: dict[int, bytes] = {}
        self.killed = 0  # rounds that a signal ended; others were done before it came
        self.killed_midway = 0  # those of them that had committed something
        make_journal(self.path).close()

    def killed_at(self, step: str, occurrence: int, end: int) -> None:
        """A round that dies at a labelled step."""
        left = [occurrence]

        def at(reached: str) -> None:
            if reached == step:
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        self._wait(self._start(end, at))

    def killed_after(self, delay_s: float, end: int, *, midway: bool) -> None:
        """A round that dies after some time, wherever it is; `midway`: the time begins when something was emitted."""
        before = self._emitted()
        child = self._start(end, lambda step: None)
        if midway:
            wait_for(lambda: self._emitted() > before, "a release")
        time.sleep(delay_s)
        os.kill(child, signal.SIGKILL)
        self._wait(child)

    def _emitted(self) -> int:
        return self.out.stat().st_size if self.out.exists() else 0

    def finish(self, end: int) -> None:
        """A last round that nobody kills, then all checks."""
        status = self._wait(self._start(end, lambda step: None))
        if status != 0:
            raise Broken(f"the last round ended with {status}")
        self.check(end)

    def check(self, end: int) -> None:
        """Every slot once, the journal's bytes, windows of what was emitted within epsilon, the audit clean."""
        if sorted(self._seen) != list(range(1, end + 1)):
            raise Broken("slots are missing")
        with SqliteJournal(self.path) as journal:
            for record in journal.releases():
                if self._seen[record.slot] != ndjson_line(record):
                    raise Broken(f"slot {record.slot} was emitted otherwise than it is stored")
                charges = (record.probe + record.publication).tolist()
                if not any(charges):  # every slot of this mechanism has a probe
                    raise Broken(f"slot {record.slot} was charged to nobody")
        if violated_windows([charges_of(self._seen[slot]) for slot in sorted(self._seen)]):
            raise Broken("a window was overspent")
        report = verify_journal(self.path)
        if not report.ok:
            raise Broken(f"audit: {report.violations[0]}")

    def _start(self, end: int, at: Callable[[str], None]) -> int:
        child = os.fork()
        if child:
            return child
        try:
            loop.state_interval = lambda publisher: 5  # stored states are killed and resumed from, too
            with self._journal(self.path, write=True) as journal:
                output = StreamOutput(self.out.open("ab", buffering=0)) if self._stream else open_output(str(self.out))
                running = Running(last=end, batch=self._batch, at=at)
                self._publication(journal, SyntheticSource(end), output, running=running).run()
                output.close()
            os._exit(0)
        except BaseException:  # noqa: BLE001  a child must never return into the test run
            traceback.print_exc()
            os._exit(70)

    def _wait(self, child: int) -> int:
        """Wait for a round's death and read what it made public: whole lines, in order, never another text."""
        _, status = os.waitpid(child, 0)
        before = len(self._seen)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 70:
            raise Broken("a round failed by itself")
        data = self.out.read_bytes() if self.out.exists() else b""
        lines = data[: data.rfind(b"\n") + 1].splitlines(keepends=True)
        for place, line in enumerate(lines, start=1):
            number = json.loads(line)["slot"] if self._stream else place
            if not line.startswith(b'{"format":2,"slot":%d,' % number):
                raise Broken(f"line {number} is not slot {number}")
            if self._seen.setdefault(number, line) != line:
                raise Broken(f"slot {number} was emitted twice with different bytes")
        if not self._stream and len(lines) < len(self._seen):
            raise Broken("an emitted slot is gone")
        if os.WIFSIGNALED(status):
            self.killed += 1
            self.killed_midway += len(self._seen) > before
        return status


def random_rounds(rounds: Rounds, number: int, seed: int) -> int:
    """Go on until `number` rounds were killed: at the labelled steps in turn, every other one at a random moment.

    Returns the last slot. A round that was done before its random moment came does not count.
    """
    chance = random.Random(seed)
    end, index = 0, 0
    while rounds.killed < number:
        end += chance.randint(2, 6)
        if index % 2:
            rounds.killed_after(chance.uniform(0.0, 0.06), end, midway=index % 4 == 1)
        else:
            rounds.killed_at(STEPS[(index // 2) % len(STEPS)], 1 + chance.randint(0, 1), end)
        index += 1
    rounds.finish(end)
    return end


def warm_up() -> None:
    """Load what a round needs, before forking: OpenDP first of all."""
    from wevent import Population, Publisher, Requirement

    Publisher(Population({Requirement(2, 1): 5}), 2, "uniform", noise=SecureNoise()).step([[1, 2]])
