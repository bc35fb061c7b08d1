"""Events of open slots, sealed: nothing read from events outlives its slot in any file (spec 1).

What is committed stays for a while on pages of the database and its write-ahead log, whatever is overwritten later. So
pending events are stored encrypted, under a fresh key for every commit. The key is in the side file alone, in one of two
fixed places: it is written before the commit, and the key before it is overwritten after the commit. Of slots that have
closed there is then only ciphertext under a destroyed key. Its length is a power of two, so that it tells little.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

from wevent.journal.sealing import KEY_BYTES as _KEY
from wevent.journal.sealing import seal, unseal

_MAGIC = b"sealed1\0"
_PURPOSE = b"wevent pending events"
_LEAST = 4096
KEYS_AT = 8192  # of the side file: behind its text
KEYS_SIZE = 2 * _KEY


class PendingKeys:
    """The keys of pending events, in two places of a file.

    Args:
        read: bytes of the file, by number and place.
        write: overwrites bytes in place.
    """

    def __init__(self, read: Callable[[int, int], bytes], write: Callable[[bytes, int], None]) -> None:
        self._read, self._write = read, write
        self._used: int | None = None

    def seal(self, events: bytes) -> bytes:
        """Encrypt events under a fresh key, which is written to the place that is not in use; nothing stays nothing."""
        if not events:
            self._next: int | None = None
            return b""
        self._next = 0 if self._used != 0 else 1
        key = secrets.token_bytes(_KEY)
        self._write(key, _place(self._next))
        return _seal(key, events)

    def committed(self) -> None:
        """What `seal` gave last is stored: destroy every other key."""
        self._used = self._next
        self._destroy_others()

    def unseal(self, sealed: bytes) -> bytes | None:
        """The events, b"" if there are none, None if no key opens them; every other key is destroyed."""
        self._used, events = None, b"" if not sealed else None
        for number in (0, 1):
            if sealed and events is None:
                events = _unseal(self._read(_KEY, _place(number)), sealed)
                self._used = None if events is None else number
        self._destroy_others()
        return events

    def _destroy_others(self) -> None:
        for number in (0, 1):
            if number != self._used and self._read(_KEY, _place(number)).strip(b"\0"):
                self._write(bytes(_KEY), _place(number))


def _place(number: int) -> int:
    return KEYS_AT + number * _KEY


def _seal(key: bytes, events: bytes) -> bytes:
    return _MAGIC + seal(key, events, least=_LEAST, purpose=_PURPOSE)


def _unseal(key: bytes, sealed: bytes) -> bytes | None:
    return unseal(key, sealed[len(_MAGIC) :], purpose=_PURPOSE) if sealed.startswith(_MAGIC) else None
