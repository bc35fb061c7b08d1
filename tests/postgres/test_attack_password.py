"""A password is in no message, also where an address was written wrongly: what is shown ends up in logs and tickets."""

from __future__ import annotations

import pytest

from wevent.errors import WeventError
from wevent.journal import open_journal, parse_address

SECRET = "s3cr3tXY"


@pytest.mark.parametrize(
    "address",
    [
        "postgresql+psycopg://wevent:{}@127.0.0.1:1/db",  # as SQLAlchemy has it
        " postgresql://wevent:{}@127.0.0.1:1/db",
        "postgresql:wevent:{}@127.0.0.1/db",
        "host=127.0.0.1 port=1 user=wevent password={}",  # as libpq has it
        "postgresql://wevent:12/{}@127.0.0.1:1/db",  # a password with a slash in it
        "postgresql://wevent@127.0.0.1:1/db?scram_client_key={}",
        "postgresql://wevent@127.0.0.1:1/db?oauth_client_secret={}",
    ],
)
def test_an_address_that_is_none_shows_no_password(address: str) -> None:
    with pytest.raises(WeventError) as caught:
        open_journal(parse_address(address.format(SECRET))).close()
    assert SECRET not in f"{caught.value} {caught.value.facts}"


@pytest.mark.parametrize(
    "path", ["run.journal", "folder/a@b.journal", "postgres.journal", "C:/x.journal", "password.db"]
)
def test_a_path_stays_a_path(path: str) -> None:
    assert str(parse_address(path)) == path
