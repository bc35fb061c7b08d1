"""What changes mean, in words."""

from __future__ import annotations

import pytest

from wevent.core.settings import Options
from wevent.people.preview import Preview
from wevent.publishing.foreseeing import preview_sentences, preview_to_dict, strictest_sentences


def test_a_preview_in_words() -> None:
    assert preview_sentences(Preview(9)) == []
    assert preview_sentences(Preview(9, 3, 42, until_time="2026-01-01T00:41:00Z")) == [
        "3 users are counted in a stricter class until slot 42 (2026-01-01T00:41:00Z) at the latest."
    ]
    assert preview_sentences(Preview(9, 1, 42, returning=1200)) == [
        "1,200 users return after leaving.",
        "1 user is counted in a stricter class until slot 42 at the latest.",
    ]
    (many,) = preview_sentences(Preview(9, alone=((4, 10**9), (5, 10**8), (6, 1), (7, 1), (8, 1))))
    assert "each of window 4, epsilon 1; window 5, epsilon 0.1; window 6, epsilon 1e-09; and 2 more. How" in many


def test_a_preview_in_plain_types() -> None:
    assert preview_to_dict(Preview(9, 1, 42, 2, ((4, 10**9),), "noon")) == {
        "registered": 9,
        "in_transition": 1,
        "until": 42,
        "until_time": "noon",
        "returning": 2,
        "alone": [{"window": 4, "epsilon": 1.0}],
    }


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
