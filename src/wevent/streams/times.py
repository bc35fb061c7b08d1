"""Readers of the time column: texts and numbers to microseconds since 1970.

Legal are ISO 8601 with Z or an offset (without one only if a timezone is declared) and numbers since 1970. Digits finer
than a microsecond are cut off; a number with a fraction is rounded to the nearest microsecond.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from wevent.core.arrays import BoolArray, FloatArray, IntArray
from wevent.counting.labels import to_int64
from wevent.counting.string_column import StringColumn
from wevent.settings.values import SECOND_US

UNITS = {"s": SECOND_US, "ms": 1_000, "us": 1}
FAR_US = 4 * 10**18  # beyond any clock, within int64
MAX_TIME_BYTES = 64

_ISO = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?"
    r"(?:([Zz])|([+-])([0-9]{2})(?::?([0-9]{2}))?)?"
)
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
_MICROS = len("2026-01-01T00:00:00.000000")
_SHAPES = 8  # of one length that are tried at once, before texts are read one by one


RawTimes = StringColumn | npt.NDArray[Any] | Sequence[Any]
"""A column of times: texts, whole numbers, floats, or Python values of any of these."""


class TimeReader:
    """Reader of times.

    Args:
        timezone_us: the offset of times that carry none; None makes them malformed.
        time_unit: unit of numbers: s, ms or us.
    """

    def __init__(self, timezone_us: int | None, time_unit: str) -> None:
        self._timezone_us = timezone_us
        self._unit = UNITS[time_unit]
        self._time_unit = time_unit

    def one(self, value: Any) -> int | None:
        """Return the time of a text, a whole number or a float; None if it is no time."""
        times, is_time = self.read([value])
        return int(times[0]) if is_time[0] else None

    def read(self, raw: RawTimes) -> tuple[IntArray, BoolArray]:
        """Return times, and which are valid."""
        if isinstance(raw, StringColumn):
            return self._texts(raw)
        if isinstance(raw, np.ndarray):
            if raw.dtype.kind == "f":
                return self._floats(raw)
            return self._numbers(raw), np.ones(len(raw), dtype=np.bool_)
        numbers = to_int64(raw)
        if numbers is not None:
            return self.read(numbers)
        if all(type(value) is float for value in raw):
            return self._floats(np.array(raw))
        try:
            return self._texts(StringColumn.from_texts(raw))
        except TypeError:  # not all are texts
            return self._texts(StringColumn.from_texts([str(value) for value in raw]))

    def lack_offset(self, raw: RawTimes, rows: IntArray) -> BoolArray:
        """Return which of the values at some places, which are no times, would be if an offset were declared."""
        if self._timezone_us is not None or isinstance(raw, np.ndarray):
            return np.zeros(len(rows), dtype=np.bool_)
        chosen = raw.where(rows) if isinstance(raw, StringColumn) else [raw[row] for row in rows.tolist()]
        return TimeReader(0, self._time_unit).read(chosen)[1]

    def _texts(self, texts: StringColumn) -> tuple[IntArray, BoolArray]:
        times, valid = np.zeros(len(texts), dtype=np.int64), np.zeros(len(texts), dtype=np.bool_)
        lengths = texts.sizes
        for length in np.flatnonzero(np.bincount(np.minimum(lengths, MAX_TIME_BYTES + 1))[: MAX_TIME_BYTES + 1]):
            rows = np.flatnonzero(lengths == length)
            if len(rows) == len(texts):
                return self._of_one_length(texts)
            times[rows], valid[rows] = self._of_one_length(texts.where(rows))
        return times, valid

    def _of_one_length(self, fields: StringColumn) -> tuple[IntArray, BoolArray]:
        numbers, valid = fields.whole_numbers()
        times = self._numbers(numbers)
        left = np.flatnonzero(~valid)
        for _ in range(_SHAPES):
            if len(left) < 2:
                break
            sample = fields.where(left[:1]).texts()[0]
            match = self._iso(sample)
            if match is not None:
                found, fits = self._like(fields.where(left), match)
                times[left[fits]], valid[left[fits]] = found[fits], True
                left = left[1:][~fits[1:]]  # the first one fits, or is none
            else:
                times[left[:1]], valid[left[:1]] = self._one_by_one([sample])
                left = left[1:]
        times[left], valid[left] = self._one_by_one(fields.where(left).texts())
        return times, valid

    def _one_by_one(self, texts: Sequence[str]) -> tuple[IntArray, BoolArray]:
        """Return times of texts of any form."""
        times, valid = self._floats(np.array([_to_float(text) for text in texts], dtype=np.float64))
        for place, text in enumerate(texts):
            if not valid[place]:
                time = self._moment(text)
                times[place], valid[place] = time or 0, time is not None
            elif text.lstrip("+-").isdigit():  # of any length: exact
                times[place] = self._numbers(np.array([max(-FAR_US, min(FAR_US, int(text)))]))[0]
        return times, valid

    def _numbers(self, numbers: IntArray) -> IntArray:
        farthest = FAR_US // self._unit
        return np.clip(numbers, -farthest, farthest) * self._unit

    def _floats(self, numbers: FloatArray) -> tuple[IntArray, BoolArray]:
        with np.errstate(over="ignore"):
            times = numbers * self._unit
        valid = np.isfinite(times)
        return np.rint(np.clip(np.where(valid, times, 0.0), -FAR_US, FAR_US)).astype(np.int64), valid

    def _iso(self, text: str) -> re.Match[str] | None:
        match = _ISO.fullmatch(text)
        if match is None or (match[8] is None and match[9] is None and self._timezone_us is None):
            return None
        return match

    def _like(self, texts: StringColumn, match: re.Match[str]) -> tuple[IntArray, BoolArray]:
        """Return times of the texts that have digits and other characters where the matched text has them."""
        shape = np.frombuffer(match[0].encode(), dtype=np.uint8)[:, None]
        characters = texts.data[texts.starts + np.arange(len(shape))[:, None]]
        digits = characters - np.uint8(ord("0"))  # wraps: above 9 if it is no digit
        is_digit = (shape >= ord("0")) & (shape <= ord("9"))
        fits = np.where(is_digit, digits <= 9, characters == shape).all(axis=0) & digits[:4].any(axis=0)
        offset = np.zeros(len(texts), dtype=np.int64)
        if match[9]:
            hour, minute = (_number(digits, *match.span(group)) for group in (10, 11))
            fits &= (hour < 24) & (minute < 60)
            offset = (hour * 60 + minute) * (60 * SECOND_US if match[9] == "+" else -60 * SECOND_US)
        elif not match[8]:
            offset += self._timezone_us or 0
        end = match.end(5) if match[6] is None else match.end(6) if match[7] is None else min(match.end(7), _MICROS)
        moments = characters[:end, fits].T.copy()
        moments[:, 10] = ord("T")
        times = np.zeros(len(texts), dtype=np.int64)
        try:
            times[fits] = moments.view(f"S{end}")[:, 0].astype("M8[us]").astype(np.int64)
        except ValueError:  # a day or an hour that does not exist
            return self._one_by_one(texts.texts())
        return times - offset, fits

    def _moment(self, text: str) -> int | None:
        """Return the time of an ISO text; None if it is none."""
        match = self._iso(text)
        if match is None or (match[11] or "0") > "59":
            return None
        try:
            moment = datetime.fromisoformat(text.upper())
        except ValueError:
            return None
        if moment.tzinfo is None:
            return (moment.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND - (self._timezone_us or 0)
        return (moment - _EPOCH) // _MICROSECOND


def _to_float(text: str) -> float:
    return float(text) if _NUMBER.fullmatch(text) else math.nan


def _number(digits: npt.NDArray[np.uint8], start: int, end: int) -> IntArray:
    """Return the number in two rows of digits; 0 without rows."""
    return digits[start].astype(np.int64) * 10 + digits[start + 1] if start >= 0 else np.zeros(1, dtype=np.int64)


class SlotReader(TimeReader):
    """Reader of slot numbers in place of times: the number less one."""

    def __init__(self) -> None:
        super().__init__(0, "us")

    def _iso(self, text: str) -> None:
        return None

    def _numbers(self, numbers: IntArray) -> IntArray:
        return np.clip(numbers, 1 - FAR_US, 1 + FAR_US) - 1

    def _floats(self, numbers: FloatArray) -> tuple[IntArray, BoolArray]:
        valid = np.isfinite(numbers) & (numbers == np.floor(numbers))
        return np.clip(np.where(valid, numbers, 0.0), -FAR_US, FAR_US).astype(np.int64) - 1, valid
