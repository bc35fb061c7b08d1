"""Bytes that only the holder of a key can read, and whose length tells little: a keystream, a tag, and padding."""

from __future__ import annotations

import hashlib
import hmac

import numpy as np

KEY_BYTES = 32
_TAG = 32
_SIZE = 8


def seal(key: bytes, text: bytes, *, least: int, purpose: bytes) -> bytes:
    """Encrypt under a key that is used for nothing else.

    Args:
        key: 32 bytes.
        text: what to hide.
        least: the length that it is padded to, or else the next power of two.
        purpose: keeps streams apart that are made for different ends.
    """
    size = len(text) + _SIZE
    padded = len(text).to_bytes(_SIZE, "little") + text + bytes(max(least, 1 << (size - 1).bit_length()) - size)
    hidden = _masked(key, padded, purpose)
    return _tag(key, hidden) + hidden


def unseal(key: bytes, sealed: bytes, *, purpose: bytes) -> bytes | None:
    """The counterpart of `seal`; None if the key is another one, or the bytes are not as they were sealed."""
    hidden = sealed[_TAG:]
    if len(key) != KEY_BYTES or len(hidden) < _SIZE or not hmac.compare_digest(_tag(key, hidden), sealed[:_TAG]):
        return None
    padded = _masked(key, hidden, purpose)
    return padded[_SIZE : _SIZE + int.from_bytes(padded[:_SIZE], "little")]


def _masked(key: bytes, text: bytes, purpose: bytes) -> bytes:
    """XOR with a keystream of the same length."""
    stream = hashlib.shake_256(purpose + key).digest(len(text))
    return np.bitwise_xor(np.frombuffer(text, np.uint8), np.frombuffer(stream, np.uint8)).tobytes()


def _tag(key: bytes, hidden: bytes) -> bytes:
    return hashlib.blake2b(hidden, key=key, digest_size=_TAG, person=b"wevent tag").digest()
