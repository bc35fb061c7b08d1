"""Tokens: digests only, in a file that admits nobody when it cannot be trusted, and that no two commands spoil."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commands import call, run
from tests.unit.service.access_parts import NOW, Clock, Parts, parts
from wevent.errors import InvalidOption, StorageFailed
from wevent.service import tokens
from wevent.service.tokens import CredentialRefused, InvalidTokens, Link, TokenRecord, Tokens


@pytest.fixture
def service(tmp_path: Path, clock: Clock) -> Parts:
    return parts(tmp_path)


def test_a_token_admits_until_it_expires(service: Parts, clock: Clock) -> None:
    made = service.tokens.create(["read", "ingest", "read"], name="gateway", expires=NOW + 10)
    assert service.tokens.admit(made.text) == made.record
    assert made.record.roles == ("ingest", "read")
    clock.now = NOW + 10
    with pytest.raises(CredentialRefused, match="expired"):
        service.tokens.admit(made.text)
    assert service.tokens.state(made.record) == "expired"


def test_a_token_admits_until_it_is_revoked(service: Parts, clock: Clock) -> None:
    first, second = service.tokens.create(["read"]), service.tokens.create(["read"])
    service.tokens.revoke(first.record.id)
    clock.now += 5
    assert service.tokens.revoke(first.record.id).revoked == NOW  # once is enough
    with pytest.raises(CredentialRefused, match="revoked"):
        service.tokens.admit(first.text)
    assert service.tokens.admit(second.text) == second.record


def test_what_is_kept_is_no_token(service: Parts) -> None:
    made = service.tokens.create(["admin"])
    kept = service.tokens.path.read_text()
    secret = made.text.rpartition("_")[2]
    assert secret not in kept
    assert len(bytes.fromhex(secret)) == 32
    assert made.text not in repr((made, made.record, service.tokens))
    assert made.record.digest not in repr((made, made.record, service.tokens))
    assert service.tokens.path.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in service.tokens.path.parent.iterdir()] == ["run.journal.tokens"]


@pytest.mark.parametrize(
    "changed",
    [
        lambda text: "",
        lambda text: text[:-1],
        lambda text: text + "0",
        lambda text: text[:-1] + ("0" if text[-1] != "0" else "1"),
        lambda text: text.upper(),
        lambda text: text + "\n",
        lambda text: f"wev_00000000_{text[-64:]}",
        lambda text: text[:12],
        lambda text: "wev_é_ü",
        lambda text: "wev_\ud800",
        lambda text: "x" * 100_000,
        lambda text: text.replace("_", "\0"),
    ],
)
def test_another_text_admits_nobody(service: Parts, changed: Callable[[str], str]) -> None:
    made = service.tokens.create(["admin"])
    with pytest.raises(CredentialRefused) as caught:
        service.tokens.admit(changed(made.text))
    assert made.text[-64:] not in str(caught.value)
    assert "unknown" in str(caught.value)


def test_unknown_ids_are_compared_too(service: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    monkeypatch.setattr("hmac.compare_digest", lambda one, other: compared.append((len(one), len(other))) or False)
    for text in (service.tokens.create(["read"]).text, "wev_00000000_" + "0" * 64, "nonsense"):
        with pytest.raises(CredentialRefused):
            service.tokens.admit(text)
    assert compared == [(64, 64)] * 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"roles": []}, "has no role"),
        ({"roles": ["read"], "name": "a\x1b[31m"}, "cannot be shown"),
        ({"roles": ["read"], "name": "a" * 101}, "at most 100"),
    ],
)
def test_what_is_no_token(service: Parts, arguments: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidOption, match=said):
        service.tokens.create(**arguments)  # type: ignore[arg-type]
    assert not service.tokens.path.exists()


def test_a_service_sees_what_commands_change(service: Parts) -> None:
    """Also twice within the tick of a file system's clock, and of equal length."""
    others = Tokens(service.tokens.path)
    for _ in range(30):
        made = others.create(["read"])
        assert service.tokens.admit(made.text) == made.record
        others.revoke(made.record.id)
        with pytest.raises(CredentialRefused):
            service.tokens.admit(made.text)


def flip_bit(kept: bytes, number: int) -> bytes:
    place = random.Random(number).randrange(len(kept) - 1)
    return kept[:place] + bytes([kept[place] ^ (1 << number % 7)]) + kept[place + 1 :]


def assert_refused(service: Parts, text: str, said: str) -> None:
    """Every method refuses the file and leaves it as it is."""
    kept = service.tokens.path.read_bytes() if service.tokens.path.is_file() else b""
    for call_it in (
        lambda: service.tokens.admit(text),
        lambda: service.tokens.admit("wev_00000000_" + "0" * 64),
        lambda: service.tokens.create(["admin"]),
        lambda: service.tokens.records(),
        lambda: service.tokens.make_link("ann", 60),
        lambda: service.tokens.admit("wel_" + "A" * 100),
        lambda: service.tokens.end_links("ann"),
    ):
        with pytest.raises(InvalidTokens, match=said):
            call_it()
    assert not service.tokens.path.is_file() or service.tokens.path.read_bytes() == kept


def test_a_file_that_was_changed_is_refused(service: Parts) -> None:
    made = service.tokens.create(["admin"])
    service.tokens.make_link("ann", 60)
    kept = service.tokens.path.read_bytes()
    odd = [b"", b"{}", b"\xff\xfe", b"[" * 100_000, b"null", b'{"sha256":"","contents":{}}']
    for data in (*(flip_bit(kept, number) for number in range(40)), *odd, kept[:1], kept[:100], kept[:-1]):
        assert service.tokens.admit(made.text) == made.record
        service.tokens.path.write_bytes(data)
        assert_refused(service, made.text, "damaged or changed")
        service.tokens.path.write_bytes(kept)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601])
def test_a_file_that_others_may_use_is_refused(service: Parts, mode: int) -> None:
    made = service.tokens.create(["admin"])
    service.tokens.admit(made.text)
    service.tokens.path.chmod(mode)
    assert_refused(service, made.text, "mode 0600")
    service.tokens.path.chmod(0o600)
    assert service.tokens.admit(made.text) == made.record


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])  # opening a pipe would wait for a writer
def test_something_that_is_no_file_is_refused(service: Parts, make: Callable[[Path], None]) -> None:
    make(service.tokens.path)
    assert_refused(service, "wev_x", "cannot be used")


def test_a_file_that_goes_takes_its_tokens_along(service: Parts) -> None:
    made = service.tokens.create(["admin"])
    service.tokens.admit(made.text)
    service.tokens.path.unlink()
    with pytest.raises(CredentialRefused):
        service.tokens.admit(made.text)


def test_a_folder_that_cannot_be_written(service: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    made = service.tokens.create(["read"])

    def full(file: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tokens.os, "fsync", full)
    with pytest.raises(StorageFailed, match="No space left"):
        service.tokens.create(["admin"])
    assert service.tokens.records() == (made.record,)
    assert len(list(service.tokens.path.parent.iterdir())) == 1


def test_a_mistake_in_the_configuration_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "wevent.toml").write_text('journal = "run.journal"\n[service]\nlink_hours = "72"\n')
    done = call(tmp_path, "token", "--config", "wevent.toml", "link", "ann")
    assert done.code == 2
    assert "link_hours in [service] must be a whole number" in done.err


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed, match="No such file or directory"):
        parts(tmp_path / "nowhere").tokens.create(["read"])


def test_a_link_to_the_file_stays_one(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "run.journal.tokens").symlink_to(tmp_path / "kept" / "tokens")
    service = parts(tmp_path)
    made = service.tokens.create(["read"])
    assert service.tokens.path.is_symlink()
    assert service.tokens.admit(made.text) == made.record


def _forked(work: Callable[[], object]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        work()
    finally:
        os._exit(0)


def test_many_writers_lose_nothing(tmp_path: Path) -> None:
    def work() -> None:
        for _ in range(20):
            parts(tmp_path).tokens.create(["read"])

    for child in [_forked(work) for _ in range(4)]:
        os.waitpid(child, 0)
    assert len(parts(tmp_path).tokens.records()) == 80


@pytest.mark.slow
def test_a_kill_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    service, chance = parts(tmp_path), random.Random(7)
    service.tokens.create(["read"])

    def work() -> None:
        while True:
            parts(tmp_path).tokens.create(["read"])

    known, kills = 1, 0
    while kills < 25 or known == 1:
        kills += 1
        child = _forked(work)
        time.sleep(chance.uniform(0.001, 0.03) * (1 + kills // 25))  # on a slow machine little happens at first
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        records = parts(tmp_path).tokens.records()
        assert len(records) >= known
        known = len(records)
    service.tokens.create(["read"])
    assert [path.name for path in tmp_path.iterdir()] == ["run.journal.tokens"]  # no leftovers after the next command


class TestTheCommand:
    def test_a_token_is_shown_once(self, tmp_path: Path) -> None:
        done = call(
            tmp_path, "token", "run.journal", "create", "--role", "ingest", "--role", "read", "--expires", "30d"
        )
        text = done.out.strip()
        assert done.code == 0
        assert text not in done.err
        record = Tokens(tmp_path / "run.journal.tokens").admit(text)
        assert isinstance(record, TokenRecord)
        assert record.expires is not None
        assert record.expires - record.created == 30 * 86_400
        listed = call(tmp_path, "token", "run.journal", "list")
        assert record.id in listed.out
        assert text[-64:] not in listed.out + listed.err
        assert call(tmp_path, "token", "run.journal", "revoke", record.id).code == 0
        (row,) = json.loads(call(tmp_path, "token", "run.journal", "list", "--json").out)["tokens"]
        assert (row["state"], row["roles"]) == ("revoked", ["ingest", "read"])

    def test_the_configuration_names_the_journal(self, tmp_path: Path) -> None:
        (tmp_path / "wevent.toml").write_text('journal = "run.journal"\n')
        assert call(tmp_path, "token", "create", "--role", "read", "--expires", "2100-01-01T00:00:00Z").code == 0
        assert call(tmp_path, "token", "--config", "wevent.toml", "create", "--role", "read").code == 0
        assert len(parts(tmp_path).tokens.records()) == 2

    def test_a_token_that_nobody_saw_is_revoked(self, tmp_path: Path) -> None:
        with open("/dev/full", "w") as full:
            done = run(tmp_path, "token", "run.journal", "create", "--role", "admin", stdout=full)
        assert done.code == 75, done
        (record,) = parts(tmp_path).tokens.records()
        assert record.revoked is not None

    def test_a_token_pasted_for_its_id_is_not_repeated(self, tmp_path: Path) -> None:
        text = call(tmp_path, "token", "run.journal", "create", "--role", "read").out.strip()
        done = call(tmp_path, "token", "run.journal", "revoke", text)
        assert done.code == 2
        assert text not in done.err

    def test_a_link_and_its_end(self, tmp_path: Path) -> None:
        made = call(tmp_path, "token", "run.journal", "link", "4711", "--url", "https://stats.example/", "--json")
        url = json.loads(made.out)["url"]
        assert url.startswith("https://stats.example/choose#wel_")
        service = parts(tmp_path)
        link = service.tokens.admit(url.partition("#")[2])
        assert isinstance(link, Link)
        assert link.user == "4711"
        assert call(tmp_path, "token", "run.journal", "unlink", "4711").code == 0
        with pytest.raises(CredentialRefused):
            service.tokens.admit(url.partition("#")[2])
        assert "4711" not in service.tokens.path.read_text().replace(service.tokens._read().link_key or "", "")
