"""`wevent serve`, with hooks that write down when each slot closed, when its release was ready, and what that took.

`python -m benchmarks.watched_service FILE serve …`. The service itself shows such times to nobody.
"""

import sys
import time
from pathlib import Path

from wevent.events.live_source import LiveSource
from wevent.publishing.loop import DueMoments


def watch(file: Path) -> None:
    """Write a line per slot: its number, the moment it was ready, wall and CPU seconds of the thread since it had closed."""
    asked, waited = DueMoments.of, LiveSource._wait_for
    closed = [0.0, 0.0]

    def wait_for(self: LiveSource, slot: int) -> bool:
        done = waited(self, slot)
        closed[:] = time.time(), time.thread_time()
        return done

    def of(self: DueMoments, slot: int) -> int:
        now = time.time()
        with file.open("a") as out:
            out.write(f"{slot} {now:.6f} {now - closed[0]:.6f} {time.thread_time() - closed[1]:.6f}\n")
        return asked(self, slot)

    LiveSource._wait_for = wait_for  # type: ignore[method-assign]
    DueMoments.of = of  # type: ignore[method-assign]


if __name__ == "__main__":
    watch(Path(sys.argv[1]))
    sys.argv = ["wevent", *sys.argv[2:]]
    from wevent.cli import main

    main()
