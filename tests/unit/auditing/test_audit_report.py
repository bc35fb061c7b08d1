"""The page of `make audit` says what its figures say."""

from __future__ import annotations

from typing import Any

import pytest

from tests.audits.__main__ import subjects
from tests.audits.report import as_markdown
from wevent.auditing.audit_subject import Finding, build_subject
from wevent.auditing.mechanism_audit import AuditReport, audit_mechanism
from wevent.core.registry import BUILT_IN
from wevent.core.requirements import Population, Requirement
from wevent.errors import InvalidOption

PROMISE = Requirement(2, 1)


def _audited(options: dict[str, Any], shown: float) -> dict[str, Any]:
    broken = shown > PROMISE.epsilon
    finding = Finding("black box: library", PROMISE, shown, broken, 0.95, "victim alone", 1200, 3.0)
    return AuditReport("pbd", options, 0.95, [finding], seconds=3.0).to_dict()


def test_the_page_has_a_row_for_every_audit_and_the_false_alarms() -> None:
    unclear = Finding("exact", PROMISE, 0.5, False, None, "", 1, 1.0, "cannot say", "a state that cannot be copied")
    open_audit = AuditReport("pbd", {"refund": False}, 0.95, [unclear], seconds=1.0).to_dict()
    page = as_markdown(
        {
            "version": "1",
            "python": "3",
            "confidence": 0.95,
            "seconds_each": 60.0,
            "trials_each": 20_000,
            "outside": [
                {
                    "mechanism": "pft",
                    "ok": True,
                    "seconds": 7,
                    "findings": [
                        {"window": 2, "epsilon": 1.0, "shown": 0.81, "event": ""},
                        {"window": 1, "epsilon": 2e-9, "shown": 0.0, "event": ""},
                    ],
                }
            ],
            "audits": [_audited({}, 0.625), _audited({"refund": True}, float("inf")), open_audit],
            "clean": {"runs": 200, "false_alarms": 3, "alarms": [], "seconds": 10},
        }
    )
    assert "| pbd | black box: library | 2 | 1 | 0.625 | 62% | nothing found | 1,200 | 3.0 |" in page
    assert "20,000 runs of each mechanism" in page
    assert "| mechanism | w = 2, ε = 1 | seconds |" in page
    assert "| pft | 81% | 7 |" in page
    assert "| pbd | refund True | **broken** |" in page
    assert "| pbd | refund False | **cannot say** |" in page
    assert "3 called broken (1.5%; the stated level allows 5%)" in page


def test_every_mechanism_is_audited_and_takes_the_options_it_is_audited_with() -> None:
    tried = list(subjects(None))
    assert {name for name, _ in tried} == set(BUILT_IN)
    for name, options in tried:
        build_subject(name, **options).make(Population({PROMISE: 5}), 4, None)


def test_options_beside_what_was_made_already_are_refused_not_forgotten() -> None:
    with pytest.raises(InvalidOption, match="neighbours"):
        audit_mechanism(build_subject("pbd"), seconds=1, audits=["exact"], neighbours="replace")
