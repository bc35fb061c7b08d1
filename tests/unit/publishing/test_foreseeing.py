"""What changes mean, in words."""

from __future__ import annotations

import pytest

from wevent.core.settings import Options
from wevent.publishing.foreseeing import Consequences, Wait, strictest_sentences


def test_consequences_in_words() -> None:
    first, last = Wait(42, "2026-01-01T00:41:00Z", 3), Wait(50, None, 1)
    assert Consequences(9, (first,)).sentences() == ["3 of 9 people wait until slot 42 (2026-01-01T00:41:00Z)."]
    assert Consequences(9, (first, last), returning=2).sentences() == [
        "2 people who had left join again.",
        "4 of 9 people wait, the first until slot 42 (2026-01-01T00:41:00Z), the last until slot 50.",
    ]
    assert Consequences(1, (last,)).sentences() == ["1 of 1 person waits until slot 50."]
    (many,) = Consequences(9, alone=((4, 10**9), (5, 10**8), (6, 1), (7, 1), (8, 1))).sentences()
    assert "each of window 4, epsilon 1; window 5, epsilon 0.1; window 6, epsilon 1e-09; and 2 more. How" in many


@pytest.mark.parametrize(
    ("options", "warned"),
    [
        ({"mechanism": "bd"}, True),
        ({"mechanism": "uniform"}, True),
        ({"mechanism": "pft", "unbiased": True}, True),
        ({"mechanism": "pft"}, False),
        ({"mechanism": "pbd"}, False),
    ],
)
def test_a_warning_where_a_few_users_set_the_noise_for_all(options: dict[str, object], warned: bool) -> None:
    chosen = Options.checked(options)
    usual = {(40, 10**9): 500, (120, 6 * 10**8): 500}
    assert strictest_sentences(chosen, usual) == []
    sentences = strictest_sentences(chosen, {**usual, (120, 10**6): 1})
    assert len(sentences) == warned
    assert not warned or "1 of 1,001 users" in sentences[0]
