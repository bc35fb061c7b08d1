"""`wevent doctor` of a database: what is wrong is said before anything is published, and nothing is changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.postgres.journal_parts import begun, place_at
from tests.support.commands import call
from tests.support.postgres_server import own_schema, shared_url

NAMES = ["database", "commits", "schema", "witness"]


def examined(folder: Path, address: str) -> dict[str, tuple[bool, str]]:
    """What is found of the database."""
    done = call(folder, "doctor", "--journal", address, "--json")
    answer: dict[str, Any] = json.loads(done.out)
    assert done.code == (0 if answer["ok"] else 1)
    found = {one["check"]: (one["ok"], one["found"]) for one in answer["checks"]}
    assert list(found)[-4:] == NAMES
    assert "disk" not in found, "which is of journals in files"
    return found


@pytest.fixture
def address(tmp_path: Path) -> str:
    (tmp_path / "side").mkdir(mode=0o700)
    return f"{shared_url()}?schema={own_schema()}&witness={tmp_path / 'side'}"


def schemas() -> set[str]:
    with psycopg.connect(shared_url()) as connection:
        return {row[0] for row in connection.execute("SELECT nspname FROM pg_namespace")}


def test_a_database_where_a_journal_can_be_made(tmp_path: Path, address: str) -> None:
    schema = address.partition("schema=")[2].partition("&")[0]
    found = examined(tmp_path, address)
    assert all(found[name][0] for name in NAMES), found
    assert found["database"][1].startswith("PostgreSQL ")
    assert "is not there yet; the role may make it" in found["schema"][1]
    assert schema not in schemas(), "nothing is changed"
    assert not list((tmp_path / "side").iterdir())


def test_one_with_a_journal_says_who_writes(tmp_path: Path) -> None:
    place = place_at(tmp_path)
    with begun(place):
        (tmp_path / "wevent.toml").write_text(
            f'journal = "{place.conninfo}?schema={place.schema}&witness={place.folder}"\n'
        )
        done = call(tmp_path, "doctor", "--config", "wevent.toml")
        assert done.code == 0, done
        assert f"{place.schema} holds a journal, written by process " in done.out


def test_what_is_wrong_is_said(tmp_path: Path, address: str) -> None:
    (tmp_path / "side").chmod(0o755)
    forgetful = examined(tmp_path, address + "&options=-csynchronous_commit%3Doff")
    assert (forgetful["database"][0], forgetful["schema"][0]) == (True, True)
    assert not forgetful["commits"][0]
    assert "synchronous_commit = off" in forgetful["commits"][1]
    assert not forgetful["witness"][0]
    assert "chmod 700" in forgetful["witness"][1]


def test_a_role_without_rights(tmp_path: Path, address: str) -> None:
    role = own_schema()
    with psycopg.connect(shared_url(), autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'secret'")
    own = address.split("@")[1]
    found = examined(tmp_path, f"postgresql://{role}:secret@{own}")
    assert found["database"] == (True, found["database"][1])
    assert not found["schema"][0]
    assert "secret" not in str(found)


def test_no_database_at_all(tmp_path: Path) -> None:
    found = examined(tmp_path, f"postgresql://127.0.0.1:1/city?witness={tmp_path}")
    assert [found[name][0] for name in NAMES[:3]] == [False] * 3
    assert "Connection refused" in found["database"][1]
    assert "see above" in found["schema"][1]
