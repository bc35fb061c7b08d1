"""Every mechanism keeps its promise in the exact audit, with every option; `mechanism` is filled in by conftest.py.

WEVENT_AUDIT_SECONDS says for how long each is searched; without it every case is tried once or twice.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from wevent.auditing.audit_subject import build_subject
from wevent.auditing.exact.cases import SEARCHED, SEARCHED_LOCAL, TINY, TINY_LOCAL, responds
from wevent.auditing.exact.enumeration import Enumeration
from wevent.auditing.exact.exact_audit import audit_exactly
from wevent.auditing.exact.pairs import Case
from wevent.core.builtin_mechanisms import BUILT_IN
from wevent.core.requirements import Population, Requirement
from wevent.errors import InvalidOption
from wevent.publisher.publisher import Publisher

SECONDS = float(os.environ.get("WEVENT_AUDIT_SECONDS", "0"))
TIGHT = {"uniform", "pbu", "pba", "ba", "pft", "sample", "lbu", "plbu", "every-second"}

_TRIED: tuple[Mapping[str, Any], ...] = (
    {},
    {"neighbours": "replace"},
    {"max_cells_per_user": 2},
    {"neighbours": "replace", "max_cells_per_user": 2},
    {"refund": True},
    {"threshold": "std"},
    {"estimator": "weighting"},
    {"estimator": "weighting", "refund": True},
    {"smoothing": "filter"},
    {"class_weights": "calibrated"},
    {"class_weights": "equal"},
    {"class_weights": "budget"},
    {"seasonality": (3.0,), "special_days": (3, 5)},
    {"nonnegative": True, "round": True},
    {"neighbours": "replace", "known_total": 5, "round": True},
    {
        "neighbours": "replace",
        "max_cells_per_user": 2,
        "estimator": "weighting",
        "smoothing": "filter",
        "refund": True,
    },
)


def variants(mechanism: str) -> list[dict[str, Any]]:
    return [dict(options) for options in _TRIED if _takes(mechanism, options)]


def _takes(mechanism: str, options: Mapping[str, Any]) -> bool:
    try:
        Publisher(Population({Requirement(2, 1): 1}), 4, mechanism, **options)
    except InvalidOption:
        return False
    return True


pytestmark = pytest.mark.slow


def test_no_transcript_is_found_that_breaks_it(mechanism: str) -> None:
    findings = audit_exactly(build_subject(mechanism), seconds=SECONDS, seed=7, tiny=SECONDS > 0)
    assert [(finding.requirement, finding.witness) for finding in findings if finding.broken] == []
    used = [finding.shown / finding.requirement.epsilon for finding in findings]
    assert max(used) > (0.99 if mechanism in TIGHT else 0.87)  # what finds nothing would pass everything


@pytest.mark.parametrize("name", BUILT_IN)
def test_options_keep_it_too(name: str) -> None:
    for options in variants(name):
        subject = build_subject(name, **options)
        worlds = SEARCHED_LOCAL[1:2] if responds(subject) else SEARCHED[1:2]
        findings = audit_exactly(subject, seconds=SECONDS / 10, seed=7, tiny=False, worlds=worlds)
        assert [(options, finding.witness) for finding in findings if finding.broken] == []
        assert max(finding.shown for finding in findings) > 0.05


def test_all_transcripts_of_a_tiny_case_keep_it(mechanism: str) -> None:
    subject = build_subject(mechanism)
    population, cells, _ = (TINY_LOCAL if responds(subject) else TINY)[0]
    case = Case(subject, population, cells, 0)
    tree = Enumeration(case, np.zeros((len(population.classes), cells), dtype=np.int64))
    while tree.complete < (1 if mechanism.startswith("pft") else 2):
        assert tree.deepen(time.monotonic() + 3600)
    assert 0.4 < float(tree.found.ratio) <= case.requirement.epsilon
