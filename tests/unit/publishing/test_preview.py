"""Effect of changes before they are stored: by the rule, user by user, and alike for users who are alike."""

from __future__ import annotations

import pytest

from tests.unit.people.test_classes import Chosen, history
from wevent.core.options import Options
from wevent.people.classes import ClassHistory, Key, Restore
from wevent.people.membership import Change, Membership, erased_id
from wevent.publishing.importing import Preview, preview_changes, strictest_sentences

SHORT, LONG, OTHER = (4, 20), (8, 10), (3, 30)
DECLARED = Chosen((SHORT, LONG, OTHER))
PLAIN = history((1, DECLARED))
SALT = b"salt"


def member(user: str, key: Key, first: int = 1, last: int | None = None) -> Membership:
    return Membership(user, *key, None, first, last)


def preview(
    sizes: dict[Key, int],
    requests: list[tuple[list[Membership], list[Change]]],
    slot: int = 6,
    classes: ClassHistory = PLAIN,
) -> Preview:
    return preview_changes(classes, slot, SALT, sizes, requests)


def choose(user: str, *keys: Key) -> list[Change]:
    return [Change("set", user, key) for key in keys]


def test_who_chooses_a_looser_requirement_is_in_transition() -> None:
    held = [([member(user, LONG)], choose(user, SHORT)) for user in "ab"]
    assert preview({LONG: 3}, held) == Preview(3, 2, 5 + 8, 0, (LONG,))


def test_who_chooses_a_stricter_one_is_counted_in_it_at_once() -> None:
    requests = [([member("a", SHORT)], choose("a", LONG)), ([], choose("d", OTHER))]
    assert preview({SHORT: 3, OTHER: 2}, requests) == Preview(6, 0, None, 0, (LONG,))


def test_the_last_tail_to_end_decides() -> None:
    changed = [member("a", LONG, 1, 2), member("a", OTHER, 3)]
    assert preview({OTHER: 1}, [(changed, choose("a", SHORT))]) == Preview(
        1,
        1,
        2 + 8,
        0,
        (SHORT, LONG),  # the one who holds SHORT is the only one counted in LONG
    )
    assert preview({OTHER: 1}, [(changed, choose("a", SHORT))], slot=9).until == 8 + 3
    later = preview({OTHER: 1}, [([member("a", OTHER)], choose("a", SHORT))])
    assert (later.in_transition, later.until) == (0, None)  # SHORT is at least as strict as OTHER


def test_rows_that_are_no_longer_kept_are_not_looked_at() -> None:
    counting = history((1, Chosen((SHORT, LONG, OTHER), 5)))
    gone = [member("a", SHORT, 1, 5)]
    assert preview({}, [(gone, choose("a", SHORT))], 13, counting) == Preview(
        1, 1, 12 + 8, 0, (SHORT,)
    )  # unknown again
    assert preview({}, [(gone, choose("a", SHORT))], 12, counting) == Preview(1, 0, None, 1, (SHORT,))


def test_a_joiner_may_have_been_an_unregistered_user() -> None:
    counting = history((1, Chosen((SHORT, LONG, OTHER), 5)))
    assert preview({}, [([], choose("a", LONG))], classes=counting) == Preview(1, 1, 5 + 8, 0, (LONG,))
    assert preview({}, [([], choose("a", LONG))], 1, counting) == Preview(1, 0, None, 0, (LONG,))


def test_all_changes_of_a_user_are_looked_at() -> None:
    there_and_back = choose("a", LONG, SHORT)
    assert preview({SHORT: 1}, [([member("a", SHORT)], there_and_back)]) == Preview(1, 0, None, 0, ())


def test_who_left_or_was_erased_and_comes_back_is_returning() -> None:
    gone, erased = member("a", SHORT, 1, 4), member(erased_id("b", SALT), SHORT, 1, 4)
    requests = [([gone], choose("a", SHORT)), ([erased], choose("b", SHORT)), ([], choose("c", SHORT))]
    assert preview({}, requests) == Preview(3, 0, None, 2, ())


def test_a_note_is_no_membership_to_return_to() -> None:
    counting = history((1, Chosen((SHORT, LONG, OTHER), 5)))
    note = member("a", (8, 5), 0, 4)
    assert preview({}, [([note], choose("a", SHORT))], classes=counting) == Preview(1, 1, 4 + 8, 0, (SHORT,))


def test_classes_that_no_change_touches_are_left_alone() -> None:
    leaving = [([member("a", SHORT)], [Change("remove", "a")])]
    assert preview({SHORT: 2, OTHER: 1}, leaving) == Preview(2, 0, None, 0, (SHORT,))


def test_a_queued_change_may_have_been_applied_for_a_later_slot_meanwhile() -> None:
    """The queue and the rows of its users are two reads, and a publisher may go on between them."""
    applied = [([member("a", SHORT, 7)], choose("a", SHORT))]
    assert preview({SHORT: 2}, applied, slot=6) == Preview(2)


def test_after_a_restore_everybody_is_in_doubt() -> None:
    classes = history((1, DECLARED), restores=(Restore(5, 0, (SHORT, LONG)),))
    requests: list[tuple[list[Membership], list[Change]]] = [([], choose("a", SHORT)), ([], choose("b", LONG))]
    assert preview({}, requests, 6, classes) == Preview(2, 1, 5 + 8, 0, (SHORT, LONG))
    assert preview({}, requests, 13, classes).in_transition == 0


def test_a_preview_in_words() -> None:
    assert Preview(9).sentences() == []
    assert Preview(9, 3, 42, until_time="2026-01-01T00:41:00Z").sentences() == [
        "3 users are counted in a stricter class until slot 42 (2026-01-01T00:41:00Z) at the latest."
    ]
    assert Preview(9, 1, 42, returning=1200).sentences() == [
        "1,200 users return after leaving.",
        "1 user is counted in a stricter class until slot 42 at the latest.",
    ]
    (many,) = Preview(9, alone=((4, 10**9), (5, 10**8), (6, 1), (7, 1), (8, 1))).sentences()
    assert "each of window 4, epsilon 1; window 5, epsilon 0.1; window 6, epsilon 1e-09; and 2 more. The" in many


def test_a_preview_in_plain_types() -> None:
    assert Preview(9, 1, 42, 2, ((4, 10**9),), "noon").to_dict() == {
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
        ({"mechanism": "pft", "class_weights": "equal"}, True),
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
