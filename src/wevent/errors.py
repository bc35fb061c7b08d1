"""Errors: one base class and a few children that carry their facts as attributes.

A message has two sentences: the problem, and the fix. It never contains a count or a user id, since it may end up in a log.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Any

_PASSING = {
    "ENOSPC", "EDQUOT", "EFBIG", "EIO", "EMFILE", "ENFILE", "ENOMEM", "EAGAIN", "ENOLCK", "ESTALE", "ETIMEDOUT",
}  # fmt: skip


class WeventError(Exception):
    """Base class of all errors that a user can cause.

    Args:
        problem: sentence that names the problem. Never contains a true count or a user id.
        fix: sentence that tells the user what to do, or "" if the problem says it all.
        **facts: details for programs, available as attributes.
    """

    def __init__(self, problem: str, fix: str = "", **facts: Any) -> None:
        super().__init__(f"{problem} {fix}".rstrip())
        self.problem, self.fix, self.facts = problem, fix, facts
        for name, value in facts.items():
            setattr(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.problem, self.fix, self.facts)


def _rebuild(kind: type[WeventError], problem: str, fix: str, facts: dict[str, Any]) -> WeventError:
    error = kind.__new__(kind)
    WeventError.__init__(error, problem, fix, **facts)
    return error


class InvalidRequirement(WeventError, ValueError):
    """A window or an epsilon that no promise can be built on. Facts: `window`, `epsilon` or `level`."""


class InvalidPopulation(WeventError, ValueError):
    """A population that cannot be published for: no classes, a bad size. Facts: `requirement` if one is at fault."""


class InvalidRoster(WeventError, ValueError):
    """A list of users that is not one requirement per user. Facts: `duplicates` (how many ids) or `lengths`."""


class InvalidCells(WeventError, ValueError):
    """A cell domain that is empty or names a cell twice. Facts: `cells` or `duplicate`."""


class InvalidCounts(WeventError, ValueError):
    """Counts of a slot that cannot be true. Facts: `shape`, `dtype`, `class_index`, `cell_index`; never a value."""


class InvalidEvents(WeventError, ValueError):
    """Event columns that do not fit together. Facts: `lengths`."""


class InvalidOption(WeventError, ValueError):
    """An option with an unknown value, or one that does not apply to the mechanism. Facts: `option`, `value`."""


class InvalidReports(WeventError, ValueError):
    """Local-model reports outside the answer range. Facts: `index` of the first bad report."""


class InvalidState(WeventError, ValueError):
    """Bytes that are not a publisher's state, or are one of a newer format. Facts: `format` if it could be read."""


class UnknownMechanism(WeventError, ValueError):
    """A mechanism name that is not registered. Facts: `name`, `suggestion`, `known`."""


class InsufficientBudget(WeventError, ValueError):
    """The ledger refused a reservation: it would overspend a class's window (spec 4).

    Args:
        requirement: the class that would be overspent.
        requested: nano-epsilons asked for in this slot.
        remaining: nano-epsilons left in the class's window.
    """

    def __init__(self, requirement: Any, requested: int, remaining: int) -> None:
        super().__init__(
            f"{requirement} has {remaining} nano-epsilons left, fewer than the {requested} requested.",
            "Wait until earlier charges leave the window, or request less.",
            requirement=requirement,
            requested=requested,
            remaining=remaining,
        )


class InvalidJournal(WeventError, ValueError):
    """A file that is no journal, is damaged, or was written by a newer wevent. Facts: `path`, `format` if known."""


class JournalLocked(WeventError):
    """Another process publishes into the journal. Facts: `path`, `holder` (pid, host, since)."""


class SettingsDiffer(WeventError, ValueError):
    """A journal was opened with other settings than it pins. Facts: `names`, `permanent` (no epoch changes them)."""


class StaleJournal(WeventError):
    """A journal that may lack slots already released (spec 10). Facts: `committed`, `released` if it is known."""


class StorageFailed(WeventError):
    """The disk is full, the folder read-only or the file not writable; what was stored stays intact.

    Facts: `path`; `passing` if the fault may pass without a person, as a full disk does.
    """

    passing = False


class ReaderGone(StorageFailed):
    """Who reads standard output has closed it. Facts: `path`."""


class JournalUnreachable(StorageFailed):
    """The database of a journal does not answer; what it has committed stays intact.

    Facts: `path`; `passing` is false if the server refuses this client or the host is unknown.
    """

    passing = True


def find_nearest(word: str, known: Iterable[str]) -> tuple[str, float]:
    """Return the most similar known word and the similarity, from 0 to 1; among equals one with the same letters.

    >>> find_nearest("pdb", ["pbu", "pbd"])[0]
    'pbd'
    """
    found = [
        (SequenceMatcher(None, word.lower(), one.lower()).ratio(), sorted(word) == sorted(one), one) for one in known
    ]
    similarity, _, nearest = max(found, default=(0.0, False, ""))
    return nearest, similarity


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """Return a question for the end of an error: the nearest word, or `otherwise` if none is near."""
    nearest, similarity = find_nearest(word, known)
    return f"Did you mean {nearest!r}?" if similarity > 0.6 else otherwise


def may_pass(error: OSError) -> bool:
    """Return whether an error of the operating system may pass without a person: no room, a failed write, no descriptors."""
    return errno.errorcode.get(error.errno or 0) in _PASSING


class InvalidMembership(WeventError, ValueError):
    """A change of the registry that cannot be made. Facts: `line` or `requirement`; never a user id."""


class NotRegistered(InvalidMembership):
    """Somebody whom the registry does not know, or who has left. Facts: none; never a user id."""


class BatchConflict(WeventError):
    """A batch of events under an id that stands for other content. No facts: ids are the sender's."""


class ServiceStopping(WeventError):
    """A service that is starting or stopping takes no events now; the same batch may be sent again soon. No facts."""


class InvalidOutput(WeventError, ValueError):
    """An output file that does not continue this journal's releases. Facts: `path`, `slot` if one is at fault."""


class InvalidSettings(WeventError, ValueError):
    """A setting that is missing, unknown or has no meaning, in the TOML file or on the command line. Facts: `key`."""


class InvalidInput(WeventError, ValueError):
    """An input file that is missing, empty, or lacks a column or a field. Facts: `path`, `column` or `place` at fault."""


class ServiceRefused(WeventError):
    """A request that a service refused. Facts: `status`, `title`, `answer` (all fields of the reply).

    Args:
        sentence: message of the service, which is the message of the error.
        status: HTTP status.
        title: name of the status.
        answer: all fields of the reply.
    """

    def __init__(self, sentence: str, status: int, title: str = "", answer: dict[str, Any] | None = None) -> None:
        super().__init__(sentence, status=status, title=title, answer=answer or {})

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problem, *(self.facts[name] for name in ("status", "title", "answer")))


class ServiceUnreachable(WeventError):
    """A service gave no answer for as long as its client had patience. Facts: `reason`."""
