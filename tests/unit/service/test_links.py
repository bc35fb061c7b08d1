"""Personal links: one user each, signed, until they expire or are ended; and nothing about anybody in the file."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from tests.unit.service.access_parts import NOW, Parts, parts
from wevent.errors import InvalidMembership, InvalidOption
from wevent.service.tokens import MAX_LINK_S, CredentialRefused, Links, TokenStore


@pytest.fixture
def service(tmp_path: Path) -> Parts:
    return parts(tmp_path)


def refused(service: Parts, text: str, said: str) -> None:
    with pytest.raises(CredentialRefused, match=said) as caught:
        service.links.admit(text)
    assert not text[4:] or text not in str(caught.value)


@pytest.mark.parametrize("user", ["4711", "Ann Ö.", "日本" * 40, "x" * 256, "a/b?c#d", "wel_"])
def test_a_link_is_of_one_user_until_it_expires(service: Parts, user: str) -> None:
    made = service.links.make(user, 60)
    assert service.links.admit(made.text) == made.link
    assert made.link.user == user
    assert made.text.isascii()
    service.clock.now = NOW + 59.9
    service.links.admit(made.text)
    service.clock.now = NOW + 60
    refused(service, made.text, "expired")


def test_the_key_is_made_once(service: Parts) -> None:
    first = service.links.make("ann", 60)
    kept = service.file.path.read_bytes()
    service.links.make("bob", 60)
    assert service.file.path.read_bytes() == kept  # a link leaves nothing
    service.links.make("bob", 90)
    assert service.links.admit(first.text).user == "ann"


def test_every_other_text_is_refused(service: Parts) -> None:
    text = service.links.make("ann", 60).text
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
    foreign = parts(tmp_path / "other").links.make("ann", 60).text
    refused(service, foreign, "unknown")  # no key yet
    service.links.make("ann", 60)
    refused(service, foreign, "unknown")


def test_a_file_that_goes_takes_all_links_along(service: Parts) -> None:
    text = service.links.make("ann", 60).text
    service.file.path.unlink()
    refused(service, text, "unknown")
    service.links.make("ann", 60)
    refused(service, text, "unknown")


def test_one_link_is_ended(service: Parts) -> None:
    first, second = service.links.make("ann", 60), service.links.make("ann", 60)
    service.links.end(first.link)
    refused(service, first.text, "ended")
    assert Links(TokenStore(service.file.path), service.clock).admit(second.text) == second.link


def test_all_links_of_a_person_are_ended(service: Parts) -> None:
    ann, bob = service.links.make("ann", 60), service.links.make("bob", 60)
    service.links.end_all("ann")
    refused(service, ann.text, "ended")
    assert service.links.admit(bob.text).user == "bob"
    again = service.links.make("ann", 60)  # within the same second
    assert service.links.admit(again.text) == again.link
    service.links.end_all("ann")
    refused(service, again.text, "ended")
    refused(service, ann.text, "ended")


def test_nobody_has_links_to_end(service: Parts) -> None:
    service.links.end_all("ann")
    assert not service.file.path.exists()


def test_what_was_ended_is_forgotten_when_it_would_have_expired(service: Parts) -> None:
    long = service.links.make("ann", 3600)
    service.links.end(service.links.make("bob", 60).link)
    service.links.end_all("ann")
    assert len(service.file._read().ended) == 2
    service.clock.now = NOW + 3599
    service.links.end_all("carl")
    assert len(service.file._read().ended) == 2, "the link of bob has expired"
    refused(service, long.text, "ended")
    later = service.links.make("ann", MAX_LINK_S)
    service.clock.now = NOW + MAX_LINK_S + 86_400  # a day more, in case a clock was put right
    service.links.end_all("dora")
    assert len(service.file._read().ended) == 2, "the mark of ann is gone"
    refused(service, long.text, "expired")
    refused(service, later.text, "expired")


def test_a_link_outlives_the_mark_it_was_made_under(service: Parts) -> None:
    service.links.make("ann", 3600)
    service.links.end_all("ann")
    service.clock.now = NOW + MAX_LINK_S
    kept = service.links.make("ann", 7 * 86_400)
    service.clock.now += 2 * 86_400
    service.links.end_all("bob")
    assert len(service.file._read().ended) == 1, "the mark of ann is gone"
    assert service.links.admit(kept.text) == kept.link
    service.links.end_all("ann")
    refused(service, kept.text, "ended")


def test_no_id_is_in_the_file(service: Parts) -> None:
    user = "ann@example.org"
    made = service.links.make(user, 60)
    service.links.end(made.link)
    service.links.end_all(user)
    kept = service.file.path.read_text()
    for hidden in (user, user.encode().hex(), made.link.identity, made.text):
        assert hidden not in kept
    assert user not in repr((made, made.link, service.links, service.file))


@pytest.mark.parametrize("life_s", [0, -1, MAX_LINK_S + 1])
def test_a_life_that_is_none(service: Parts, life_s: int) -> None:
    with pytest.raises(InvalidOption, match="366 days"):
        service.links.make("ann", life_s)
    assert not service.file.path.exists()


@pytest.mark.parametrize("user", ["", "x" * 257, "a\0b", "\ud800"])
def test_an_id_that_nobody_can_have(service: Parts, user: str) -> None:
    with pytest.raises(InvalidMembership):
        service.links.make(user, 60)
