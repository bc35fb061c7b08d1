"""Texts as bytes in one buffer, and an index that finds texts by a hash and then compares them in full.

A Python string per event would take most of the time and memory of a live stream. The hash is keyed by random numbers of
this process, so no sender can choose texts that collide.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from wevent.core.arrays import BoolArray, IntArray

_PADDING = bytes(8)  # a word can be read at every byte of a text
_ODD, _START = (np.uint64(secrets.randbits(64) | 1) for _ in range(2))
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(9)], dtype=np.uint64)  # the bytes of a word that belong to it
_LONG = 256  # of so many texts the longest one does not decide how many words the index keeps of each
_CHUNK = 1 << 16  # texts at once: the arrays in between are larger than the texts
_FEW = 64  # texts that are copied one by one
_EMPTY = -1
_WHOLE_DIGITS = 18

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class StringColumn:
    """Texts in UTF-8: text i is data[starts[i]:starts[i] + sizes[i]], and eight bytes follow the last one."""

    data: Bytes
    starts: IntArray
    sizes: IntArray

    @classmethod
    def from_texts(cls, texts: Sequence[str]) -> StringColumn:
        """Return a column of Python strings."""
        joined = "".join(texts)
        if joined.isascii():
            return cls.from_sizes(joined.encode("ascii"), np.fromiter(map(len, texts), np.int64, len(texts)))
        parts = [text.encode(errors="surrogatepass") for text in texts]
        return cls.from_sizes(b"".join(parts), np.fromiter(map(len, parts), np.int64, len(parts)))

    @classmethod
    def from_sizes(cls, data: bytes | bytearray, sizes: IntArray) -> StringColumn:
        """Return the texts that stand in `data` one after the other."""
        return cls(padded(data), np.cumsum(sizes) - sizes, sizes)

    @classmethod
    def from_separated(cls, data: bytes) -> StringColumn:
        """Return the texts between NULs, at least one."""
        whole = padded(data)
        nuls = np.flatnonzero(whole[: len(data)] == 0)
        starts = np.concatenate(([0], nuls + 1))
        return cls(whole, starts, np.append(nuls, len(data)) - starts)

    @classmethod
    def joined(cls, columns: Sequence[StringColumn]) -> StringColumn:
        """Return one column after the other, without the bytes between the texts."""
        compact = [column.compact() for column in columns if len(column)]
        if len(compact) == 1:
            return compact[0]
        offsets = np.cumsum([0, *(len(part.data) for part in compact)])[:-1].tolist()
        nothing = np.empty(0, dtype=np.int64)
        return cls(
            np.concatenate([padded(b""), *(part.data for part in compact)][1 if compact else 0 :]),
            np.concatenate([nothing, *(part.starts + start for part, start in zip(compact, offsets, strict=True))]),
            np.concatenate([nothing, *(part.sizes for part in compact)]),
        )

    def __len__(self) -> int:
        return len(self.starts)

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts())

    def where(self, chosen: IntArray | BoolArray | slice) -> StringColumn:
        """Return some of the texts, in the same buffer."""
        return StringColumn(self.data, self.starts[chosen], self.sizes[chosen])

    def texts(self) -> list[str]:
        """Return the texts as Python strings."""
        places = zip(self.starts.tolist(), (self.starts + self.sizes).tolist(), strict=True)
        if len(self) < _FEW:
            return [self.data[start:end].tobytes().decode(errors="surrogatepass") for start, end in places]
        data = self.data.tobytes()
        if data.isascii():
            text = data.decode("ascii")
            return [text[start:end] for start, end in places]
        return [data[start:end].decode(errors="surrogatepass") for start, end in places]

    tolist = texts

    def order(self) -> IntArray:
        """Return the places of the texts in the order of their bytes."""
        words = self.words(max(1, self.words_for(len(self))))
        keys = words.view(f"S{8 * words.shape[1]}").reshape(-1)
        return np.arange(len(self)) if (keys[1:] >= keys[:-1]).all() else keys.argsort(kind="stable")

    def compact(self) -> StringColumn:
        """Return the same texts in a buffer of at most about twice their size."""
        total = int(self.sizes.sum())
        if len(self.data) <= 2 * total + len(_PADDING):
            return self
        words = self.words_for(len(self))
        if 8 * words * len(self) <= 2 * total:
            copied = np.concatenate((self.words(words).reshape(-1).view(np.uint8), padded(b"")))
            return StringColumn(copied, np.arange(len(self)) * (8 * words), self.sizes)
        return self.tight()

    def tight(self) -> StringColumn:
        """Return the same texts with no bytes between them."""
        starts = np.cumsum(self.sizes) - self.sizes
        places = np.repeat(self.starts - starts, self.sizes) + np.arange(int(self.sizes.sum()))
        return StringColumn(np.concatenate((self.data[places], padded(b""))), starts, self.sizes)

    def words_for(self, number: int) -> int:
        """Return how many words hold each of the `number` shortest texts."""
        most = -(-int(self.sizes.max(initial=0)) // 8)
        counts = np.zeros(most + 1, dtype=np.int64)
        for start in range(0, len(self), _CHUNK):
            counts += np.bincount(-(-self.sizes[start : start + _CHUNK] // 8), minlength=most + 1)
        sizes = counts.cumsum()
        return int(sizes.searchsorted(number)) if number else 0

    def words(self, number: int) -> Words:
        """Return the first 8·number bytes of each text, a column per eight bytes; zeros follow the end of a text."""
        found = np.zeros((len(self), number), dtype=np.uint64)
        if len(self) > _CHUNK:
            for start in range(0, len(self), _CHUNK):
                found[start : start + _CHUNK] = self.where(slice(start, start + _CHUNK)).words(number)
            return found
        view, rows = words_of(self.data), None
        for column in range(number):
            left = (self.sizes if rows is None else self.sizes[rows]) - 8 * column
            if int(left.min(initial=1)) <= 0:
                some = np.flatnonzero(left > 0)
                rows, left = some if rows is None else rows[some], left[some]
            starts = self.starts if rows is None else self.starts[rows]
            words = view[starts + 8 * column]
            if int(left.min(initial=8)) < 8:
                words &= _MASKS[np.minimum(left, 8)]
            found[slice(None) if rows is None else rows, column] = words
        return found

    def whole_numbers(self) -> tuple[IntArray, BoolArray]:
        """Return the texts as numbers, and which of them are canonical whole numbers of at most 18 digits."""
        numbers, valid = np.zeros(len(self), dtype=np.int64), np.zeros(len(self), dtype=np.bool_)
        for start in range(0, len(self), _CHUNK):
            part = slice(start, start + _CHUNK)
            numbers[part], valid[part] = _whole_numbers(self.data, self.starts[part], self.sizes[part])
        return numbers, valid


class StringIndex:
    """Hash table with open addressing over texts without NULs; a dictionary holds unusually long texts.

    Attributes:
        duplicates: number of texts that occur again.
    """

    def __init__(self, texts: StringColumn) -> None:
        self._columns = texts.words_for(len(texts) - len(texts) // _LONG)
        short = texts.sizes <= 8 * self._columns
        self._rows = None if short.all() else np.flatnonzero(short)
        long = np.flatnonzero(~short)
        self._long = dict(zip(texts.where(long).texts(), long.tolist(), strict=True))
        self.duplicates = len(long) - len(self._long)
        self._words = (texts if self._rows is None else texts.where(self._rows)).words(self._columns)
        size = 1 << max(3, (3 * len(self._words) // 2).bit_length())
        self._table = np.full(size, _EMPTY, dtype=np.int32 if len(texts) < 1 << 31 else np.int64)
        for start in range(0, len(self._words), _CHUNK):
            part = self._words[start : start + _CHUNK]
            self._insert(np.arange(start, start + len(part)), self._places(part))

    def find(self, texts: StringColumn) -> IntArray:
        """Return the place of each text, -1 if it is missing."""
        found = np.full(len(texts), -1, dtype=np.int64)
        for start in range(0, len(texts), _CHUNK):
            part = texts.where(slice(start, start + _CHUNK))
            long = np.flatnonzero(part.sizes > 8 * self._columns)
            if not len(long):
                found[start : start + _CHUNK] = self._find(part.words(self._columns))
                continue
            short = np.flatnonzero(part.sizes <= 8 * self._columns)
            found[start + short] = self._find(part.where(short).words(self._columns))
            if self._long:
                found[start + long] = [self._long.get(text, -1) for text in part.where(long).texts()]
        return found

    def _find(self, words: Words) -> IntArray:
        places = self._places(words)
        there = self._table.take(places)
        same = self._has(there, words)
        found = np.where(same, there, np.int64(-1))
        rows = np.flatnonzero(~same & (there != _EMPTY))
        places, words = self._next(places[rows]), words[rows]
        while len(rows):
            there = self._table.take(places)
            same = self._has(there, words)
            found[rows[same]] = there[same]
            left = ~same & (there != _EMPTY)
            rows, places, words = rows[left], self._next(places[left]), words[left]
        return found if self._rows is None else np.where(found >= 0, self._rows[found], -1)

    def _has(self, there: npt.NDArray[Any], words: Words) -> BoolArray:
        """Return which rows of the table have these words."""
        if not len(self._words):
            return np.zeros(len(words), dtype=np.bool_)
        same = _equal(words, self._words.take(there, axis=0))
        same &= there != _EMPTY
        return same

    def _insert(self, rows: IntArray, places: IntArray) -> None:
        while len(rows):
            free = self._table[places] == _EMPTY
            self._table[places[free]] = rows[free]  # of several the last one stays
            there = self._table[places]
            left = there != rows
            rows, places, there = rows[left], places[left], there[left]
            twins = _equal(self._words[rows], self._words[there])
            self.duplicates += int(np.count_nonzero(twins))
            rows, places = rows[~twins], self._next(places[~twins])

    def _places(self, words: Words) -> IntArray:
        mixed = np.full(len(words), _START)
        for column in range(words.shape[1]):
            mixed ^= words[:, column]
            mixed *= _ODD
            mixed ^= mixed >> np.uint64(32)
        mixed *= _ODD  # the highest bits depend on every byte of a text, the lowest on its first bytes alone
        return (mixed >> np.uint64(65 - len(self._table).bit_length())).view(np.int64)

    def _next(self, places: IntArray) -> IntArray:
        return (places + 1) & (len(self._table) - 1)


def _equal(left: Words, right: Words) -> BoolArray:
    same = np.ones(len(left), dtype=np.bool_)
    for column in range(left.shape[1]):
        same &= left[:, column] == right[:, column]
    return same


def padded(data: bytes | bytearray) -> Bytes:
    """Return an array in which a word can be read at every byte of the data."""
    return np.frombuffer(data + _PADDING, dtype=np.uint8)


def words_of(data: Bytes) -> Words:
    """Return the eight bytes from every place on as one number."""
    view: Words = np.ndarray((len(data) - 7,), dtype="<u8", buffer=data, strides=(1,))
    return view


def _whole_numbers(data: Bytes, starts: IntArray, sizes: IntArray) -> tuple[IntArray, BoolArray]:
    numbers = np.zeros(len(starts), dtype=np.int64)
    negative = data[starts] == ord("-")
    starts, lengths = starts + negative, sizes - negative
    head = data[starts]
    valid = (lengths > 0) & (lengths <= _WHOLE_DIGITS)
    valid &= (head >= ord("1")) & (head <= ord("9")) | (head == ord("0")) & (lengths == 1) & ~negative
    if not valid.any():
        return numbers, valid
    last = len(data) - 1
    for place in range(int(lengths[valid].max())):
        digit = data[np.minimum(starts + place, last)] - np.uint8(ord("0"))  # wraps: above 9 if it is none
        inside = place < lengths
        valid &= (digit <= 9) | ~inside
        numbers = np.where(inside & valid, numbers * 10 + digit, numbers)
    return np.where(negative, -numbers, numbers), valid
