"""The privacy statement of a journal: what is promised, to whom, by what means, and what weakens it; for programs."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from wevent.core.budget import NANO
from wevent.core.settings import option_values
from wevent.journal.contract import Journal
from wevent.journal.terms import Epoch, time_text

_RELATIONS = {
    "add_remove": "in some slots of one span of `window` slots a user is in a cell in one stream and absent in the "
    "other; hiding which cell a present user was in costs up to twice epsilon",
    "replace": "in the slots of one span of `window` slots a user's record is any other",
}


def privacy_statement(journal: Journal) -> dict[str, Any]:
    """Everything a reader of the releases may want to know about their privacy; plain types (spec 1 and 10)."""
    head = journal.head()
    terms = head.epoch.terms
    return {
        "promise": "(w, epsilon)-EPDP: for every user and any two neighbouring streams the probability of any set of "
        "outputs differs by at most a factor e^epsilon, epsilon and window being the user's own",
        "neighbours": terms.neighbours,
        "neighbouring_streams": _RELATIONS[terms.neighbours],
        "sensitivity": terms.sensitivity,
        "max_cells_per_user": terms.max_cells_per_user,
        "stream": terms.stream,
        "slot_length_us": terms.length_us if terms.has_clock else None,
        "slot_origin": time_text(terms.origin_us) if terms.has_clock else None,
        "epochs": [_epoch(epoch) for epoch in journal.epochs()],
        "slots": head.committed,
        "charges": "integer nano-epsilons; every window of every class stays within its epsilon (wevent audit)",
        "composition": "another journal over the same people adds its epsilons to these",
        "unsafe": list(head.unsafe),
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Of what releases are made with."""
    return {"wevent": _version("wevent"), "opendp": _version("opendp"), "python": platform.python_version()}


def _epoch(epoch: Epoch) -> dict[str, Any]:
    terms = epoch.terms
    unknown = epoch.classes.unregistered
    return {
        "number": epoch.number,
        "first_slot": epoch.first,
        **option_values(terms),
        "cells": terms.number_of_cells,
        "classes": [{"window": held.window, "epsilon": held.epsilon} for held in terms.requirements],
        "unknown_users": None
        if unknown is None
        else {"number": terms.unknown_users, "window": unknown[0], "epsilon": unknown[1] / NANO},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
