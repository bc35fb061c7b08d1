"""Personal links: one user each, signed, until they expire or are ended; and nothing about anybody in the file."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from tests.unit.service.access_parts import NOW, Clock, Parts, parts
from wevent.errors import InvalidMembership, InvalidOption
from wevent.service.tokens import MAX_LINK_S, CredentialRefused, Tokens


@pytest.fixture
def service(tmp_path: Path, clock: Clock) -> Parts:
    return parts(tmp_path)


def refused(service: Parts, text: str, said: str) -> None:
    with pytest.raises(CredentialRefused, match=said) as caught:
        service.tokens.admit(text)
    assert not text[4:] or text not in str(caught.value)


@pytest.mark.parametrize("user", ["4711", "Ann Ö.", "日本" * 40, "x" * 256, "a/b?c#d", "wel_"])
def test_a_link_is_of_one_user_until_it_expires(service: Parts, clock: Clock, user: str) -> None:
    made = service.tokens.make_link(user, 60)
    assert service.tokens.admit(made.text) == made.record
    assert made.record.user == user
    assert made.text.isascii()
    clock.now = NOW + 59.9
    service.tokens.admit(made.text)
    clock.now = NOW + 60
    refused(service, made.text, "expired")


def test_the_key_is_made_once(service: Parts) -> None:
    first = service.tokens.make_link("ann", 60)
    kept = service.tokens.path.read_bytes()
    service.tokens.make_link("bob", 60)
    assert service.tokens.path.read_bytes() == kept  # a link leaves nothing
    service.tokens.make_link("bob", 90)
    assert service.tokens.admit(first.text) == first.record


def test_every_other_text_is_refused(service: Parts) -> None:
    text = service.tokens.make_link("ann", 60).text
    data = base64.urlsafe_b64decode(text[4:] + "=" * (-len(text[4:]) % 4))
    for place in range(len(data)):
        for bit in (1, 128):
            changed = data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :]
            refused(service, "wel_" + base64.urlsafe_b64encode(changed).rstrip(b"=").decode(), "unknown")
    for other in (
        "", "wel_", "wel_é", "wel_" + "A" * 100_000, text + "=", text + "\n", text[:-1], " " + text, text[4:],
        text[:-1] + chr(ord(text[-1]) + 1), "wel_" + "A" * 87, "wel_\0",
    ):  # fmt: skip
        refused(service, other, "unknown")


def test_a_link_of_another_service(service: Parts, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    foreign = parts(tmp_path / "other").tokens.make_link("ann", 60).text
    refused(service, foreign, "unknown")  # no key yet
    service.tokens.make_link("ann", 60)
    refused(service, foreign, "unknown")


def test_one_link_is_ended(service: Parts) -> None:
    first, second = service.tokens.make_link("ann", 60), service.tokens.make_link("ann", 60)
    service.tokens.end_link(first.record)
    refused(service, first.text, "ended")
    assert Tokens(service.tokens.path).admit(second.text) == second.record


def test_all_links_of_a_person_are_ended(service: Parts) -> None:
    ann, bob = service.tokens.make_link("ann", 60), service.tokens.make_link("bob", 60)
    service.tokens.end_links("ann")
    refused(service, ann.text, "ended")
    assert service.tokens.admit(bob.text) == bob.record
    again = service.tokens.make_link("ann", 60)  # within the same second
    assert service.tokens.admit(again.text) == again.record
    service.tokens.end_links("ann")
    refused(service, again.text, "ended")
    refused(service, ann.text, "ended")


def test_what_was_ended_is_forgotten_when_it_would_have_expired(service: Parts, clock: Clock) -> None:
    long = service.tokens.make_link("ann", 3600)
    service.tokens.end_link(service.tokens.make_link("bob", 60).record)
    service.tokens.end_links("ann")
    assert len(service.tokens._read().ended) == 2
    clock.now = NOW + 3599
    service.tokens.end_links("carl")
    assert len(service.tokens._read().ended) == 2, "the link of bob has expired"
    refused(service, long.text, "ended")
    later = service.tokens.make_link("ann", MAX_LINK_S)
    clock.now = NOW + MAX_LINK_S + 86_400  # a day more, in case a clock was put right
    service.tokens.end_links("dora")
    assert len(service.tokens._read().ended) == 2, "the mark of ann is gone"
    refused(service, long.text, "expired")
    refused(service, later.text, "expired")


def test_a_link_outlives_the_mark_it_was_made_under(service: Parts, clock: Clock) -> None:
    service.tokens.make_link("ann", 3600)
    service.tokens.end_links("ann")
    clock.now = NOW + MAX_LINK_S
    kept = service.tokens.make_link("ann", 7 * 86_400)
    clock.now += 2 * 86_400
    service.tokens.end_links("bob")
    assert len(service.tokens._read().ended) == 1, "the mark of ann is gone"
    assert service.tokens.admit(kept.text) == kept.record
    service.tokens.end_links("ann")
    refused(service, kept.text, "ended")


def test_no_id_is_in_the_file(service: Parts) -> None:
    user = "ann@example.org"
    made = service.tokens.make_link(user, 60)
    service.tokens.end_link(made.record)
    service.tokens.end_links(user)
    kept = service.tokens.path.read_text()
    for hidden in (user, user.encode().hex(), made.record.identity, made.text):
        assert hidden not in kept
    assert user not in repr((made, made.record, service.tokens))


@pytest.mark.parametrize("life_s", [0, -1, MAX_LINK_S + 1])
def test_a_life_that_is_none(service: Parts, life_s: int) -> None:
    with pytest.raises(InvalidOption, match="366 days"):
        service.tokens.make_link("ann", life_s)
    assert not service.tokens.path.exists()


@pytest.mark.parametrize("user", ["", "x" * 257, "a\0b", "\ud800"])
def test_an_id_that_nobody_can_have(service: Parts, user: str) -> None:
    with pytest.raises(InvalidMembership):
        service.tokens.make_link(user, 60)
