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
from wevent.counting.label_index import to_int64
from wevent.counting.string_column import Bytes, StringColumn, words_of
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
_MINUTE = 16  # characters of a time up to its minute
_SHAPES = 8  # of one length that are tried at once, before texts are read one by one
_MONTH_STARTS = np.array([0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334])  # days before a month of a plain year


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
                return self._of_length(texts, int(length))
            times[rows], valid[rows] = self._of_length(texts.where(rows), int(length))
        return times, valid

    def _of_length(self, fields: StringColumn, length: int) -> tuple[IntArray, BoolArray]:
        numbers, valid = fields.whole_numbers()
        times = self._numbers(numbers)
        left = np.flatnonzero(~valid)
        for _ in range(_SHAPES):
            if len(left) < 2:
                break
            sample = fields.where(left[:1]).texts()[0]
            match = self._iso(sample)
            if match is not None:
                found, fits = self._like(_characters(fields.data, fields.starts[left], length), match)
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

    def _like(self, characters: list[Any], match: re.Match[str]) -> tuple[IntArray, BoolArray]:
        """Return times of the texts that have digits and other characters where the matched text has them.

        Args:
            characters: for each place the character of every text, or of one text if all have the same.
            match: match of one text.
        """
        fits = np.ones(len(characters[-1]), dtype=np.bool_)
        values = [column - np.uint8(ord("0")) for column in characters]  # wraps: above 9 if it is no digit
        for place, character in enumerate(match[0]):
            fits &= values[place] <= 9 if character.isdigit() else characters[place] == ord(character)
        parts = (_number(values, *match.span(group)) for group in (1, 2, 3, 4, 5, 6, 10, 11))
        year, month, day, hour, minute, second, offset_hour, offset_minute = parts
        fits &= (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1) & (hour < 24) & (minute < 60) & (second < 60)
        fits &= (offset_hour < 24) & (offset_minute < 60)
        month = np.clip(month, 1, 12)
        fits &= day <= _days_before(year, month + 1) - _days_before(year, month)
        decimals = match.end(7) - match.start(7)
        fraction = _number(values, match.start(7), match.start(7) + min(decimals, 6)) * 10 ** max(0, 6 - decimals)
        minutes = ((_days_before(year, month) + day - 1) * 24 + hour) * 60 + minute
        offset: Any = (offset_hour * 60 + offset_minute) * 60 * SECOND_US * (-1 if match[9] == "-" else 1)
        if not (match[8] or match[9]):
            offset = self._timezone_us
        times = (minutes * 60 + second) * SECOND_US + fraction - offset
        return np.broadcast_to(times, fits.shape), fits

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


def _characters(data: Bytes, starts: IntArray, length: int) -> list[Any]:
    """Return for each place the character of every text; times of one minute have the same first ones."""
    same = 0
    while same + 8 <= min(_MINUTE, length - 1):  # the last one has to be of every text
        words = words_of(data)[starts + same]
        if not (words == words[0]).all():
            break
        same += 8
    return [data[starts[:1] + place] for place in range(same)] + [data[starts + place] for place in range(same, length)]


def _number(values: list[Any], start: int, end: int) -> IntArray:
    """Return the number in some columns of digits; 0 without columns."""
    number = np.zeros(1, dtype=np.int64)
    for column in values[max(start, 0) : max(end, 0)]:
        number = number * 10 + column
    return number


def _days_before(year: IntArray, month: IntArray) -> IntArray:
    """Return the days from 1970 to the first of a month (13: the next January), in the Gregorian calendar."""
    year, month = np.where(month > 12, year + 1, year), np.where(month > 12, 1, month)
    past = year - (month <= 2)  # a leap day counts from March on
    leaps = past // 4 - past // 100 + past // 400
    days: IntArray = 365 * (year - 1970) + _MONTH_STARTS[month - 1] + leaps - 477
    return days


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
