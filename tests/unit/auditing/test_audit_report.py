"""`make audit` takes every mechanism with options that it has; a subject takes none."""

from __future__ import annotations

import pytest

from tests.audits import subjects
from wevent.auditing.audit_subject import build_subject
from wevent.auditing.mechanism_audit import audit_mechanism
from wevent.core.builtin_mechanisms import BUILT_IN
from wevent.core.requirements import Population, Requirement
from wevent.errors import InvalidOption


def test_every_mechanism_takes_the_options_that_it_is_audited_with() -> None:
    for name, options in subjects(list(BUILT_IN)):
        build_subject(name, **options).make(Population({Requirement(2, 1): 5}), 4, None)


def test_options_beside_a_subject_are_refused() -> None:
    with pytest.raises(InvalidOption, match="takes no options"):
        audit_mechanism(build_subject("pbd"), seconds=1, audits=["exact"], neighbours="replace")
