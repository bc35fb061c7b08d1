"""Columns of byte strings that stand in a buffer, and what they say: labels and numbers, many at once."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wevent.core.arrays import IntArray
from wevent.core.limits import MAX_LABEL_BYTES
from wevent.counting.lookup import Labels
from wevent.counting.spelling import Spelled, padded, whole_numbers

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Fields:
    """Byte strings of valid UTF-8: field i is data[starts[i]:ends[i]]."""

    data: bytes
    starts: IntArray
    ends: IntArray

    @classmethod
    def of(cls, texts: Sequence[str]) -> Fields:
        """Texts, one after the other."""
        joined = "".join(texts)
        sized: Sequence[str | bytes] = texts if joined.isascii() else [text.encode() for text in texts]
        ends = np.cumsum(np.fromiter(map(len, sized), dtype=np.int64, count=len(texts)))
        return cls(joined.encode(), np.concatenate((ends[:1] * 0, ends[:-1])), ends)

    def __len__(self) -> int:
        return len(self.starts)

    def where(self, chosen: IntArray | Mask) -> Fields:
        """Some of them."""
        return Fields(self.data, self.starts[chosen], self.ends[chosen])

    def lengths(self) -> IntArray:
        """Bytes per field."""
        return self.ends - self.starts

    def texts(self) -> list[str]:
        """As Python strings."""
        places = zip(self.starts.tolist(), self.ends.tolist(), strict=True)
        if self.data.isascii():
            text = self.data.decode("ascii")
            return [text[start:end] for start, end in places]
        return [self.data[start:end].decode() for start, end in places]

    def labels(self) -> Labels:
        """Ids or cell labels; `label_sized` ones only."""
        numbers, whole = self.whole_numbers()
        if whole.all():
            return Labels(numbers)
        texts = self if not whole.any() else self.where(~whole)
        return Labels.placed(numbers, whole, texts.spelled().compact())

    def spelled(self) -> Spelled:
        """The same texts where a word can be read at every place."""
        return Spelled(padded(self.data), self.starts, self.lengths())

    def label_sized(self) -> Mask:
        """Which can be ids or labels: neither empty nor longer than MAX_LABEL_BYTES, and without a NUL."""
        lengths = self.lengths()
        sized = (lengths > 0) & (lengths <= MAX_LABEL_BYTES)
        if b"\0" in self.data:
            nuls = np.flatnonzero(np.frombuffer(self.data, dtype=np.uint8) == 0)
            sized &= nuls.searchsorted(self.starts) == nuls.searchsorted(self.ends)
        return sized

    def whole_numbers(self) -> tuple[IntArray, Mask]:
        """Each as a number, where its text is how a whole number of at most 18 digits is written."""
        return whole_numbers(np.frombuffer(self.data, dtype=np.uint8), self.starts, self.ends)


class Numbers(NamedTuple):
    """Whole numbers as labels, for where `Fields` stand otherwise."""

    keys: IntArray

    def where(self, chosen: IntArray | Mask) -> Numbers:
        """Some of them."""
        return Numbers(self.keys[chosen])

    def label_sized(self) -> Mask:
        """All of them."""
        return np.ones(len(self.keys), dtype=np.bool_)

    def labels(self) -> Labels:
        """As labels."""
        return Labels.of(self.keys)


def int64_column(values: Sequence[Any]) -> IntArray | None:
    """Return whole numbers as an array; None if something else is among them, or a number of more than 64 bits."""
    try:
        return np.array(array("q", values), dtype=np.int64)
    except (TypeError, OverflowError):
        return None
