"""How the events of a slot are hidden in a database: every record under a key of its own, made from the slot's."""

from __future__ import annotations

import hashlib
import secrets

from wevent.journal.sealing import seal, unseal

_NONCE = 16
_LEAST = 512  # bytes of a sealed record; a batch of a few events says little by its length
_PURPOSE = b"wevent events of a slot"


def batch_digest(key: bytes, name: bytes) -> bytes:
    """What a batch is found by among those of a slot; it tells its name to nobody who lacks the slot's key."""
    return hashlib.blake2b(name, key=key, digest_size=32, person=b"wevent batch").digest()


def sealed_record(key: bytes, record: bytes) -> bytes:
    """A record under the key of its slot; the same record comes out different each time."""
    nonce = secrets.token_bytes(_NONCE)
    return nonce + seal(_record_key(key, nonce), record, least=_LEAST, purpose=_PURPOSE)


def opened_record(key: bytes, sealed: bytes) -> bytes | None:
    """The counterpart of `sealed_record`; None if the key is another one."""
    return unseal(_record_key(key, sealed[:_NONCE]), sealed[_NONCE:], purpose=_PURPOSE)


def _record_key(key: bytes, nonce: bytes) -> bytes:
    return hashlib.blake2b(nonce, key=key, digest_size=32, person=b"wevent record").digest()
