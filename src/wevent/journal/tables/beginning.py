"""The first rows of a journal: what it will always know of itself."""

from __future__ import annotations

import hashlib
import secrets
import time
import uuid

from wevent.journal.tables.database import Database
from wevent.journal.tables.facts import Facts
from wevent.journal.tables.fingerprint import Fingerprint


def begin_rows(database: Database) -> None:
    """The rows of a new journal, whose tables are there and empty; inside a transaction."""
    identity = uuid.uuid4().hex
    genesis = hashlib.sha256(b"wevent journal" + identity.encode()).digest()
    database.execute("INSERT INTO head VALUES (1, 0, 0, 'null', ?, 1, ?, 0)", (genesis, genesis))
    facts = Facts(database)
    facts["id"] = identity
    facts["salt"] = secrets.token_bytes(32)
    facts["created"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    facts["unsafe"] = "[]"
    facts["revision"] = 0
    facts["registry chain"] = bytes(32).hex()
    facts["changes lost"] = 0
    facts["registry"] = Fingerprint(facts.data("salt")).value()
