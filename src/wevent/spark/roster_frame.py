"""A roster as a DataFrame that closed rows are joined with: ids and classes, broadcast while they are few."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from wevent.counting.lookup import Labels
from wevent.counting.roster import Roster
from wevent.counting.spelling import Spelled

BROADCAST = 200_000
"""Rosters of more ids are joined where the rows are, instead of being sent to every executor for every slot."""
_AT_ONCE = 1 << 20  # ids of one Arrow chunk: their texts stay within 32-bit offsets


class RosterFrames:
    """The frame of the roster in use; of another one when it is asked for, and then the old one is let go.

    Args:
        kept: whether Spark keeps it for the next slots; False where nobody is there to `release` it.
    """

    def __init__(self, *, kept: bool = True) -> None:
        self._kept = kept
        self._roster: Roster | None = None
        self._frame: DataFrame | None = None
        self._by_number = False

    def with_classes(self, rows: DataFrame, roster: Roster) -> DataFrame:
        """Return rows with the `class` of their user, NULL for unregistered users."""
        numbered = isinstance(rows.schema["user"].dataType, T.LongType)
        by_number = numbered and roster.numbered
        members = self._of(rows.sparkSession, roster, by_number=by_number)
        user = rows["user"] if by_number else rows["user"].cast("string")
        return rows.join(members, user == members["member"], "left").drop("member")

    def _of(self, session: SparkSession, roster: Roster, *, by_number: bool) -> DataFrame:
        """Return a frame with columns `member` and `class`, one row per user of the roster."""
        if self._frame is None or self._roster is not roster or self._by_number != by_number:
            self.release()
            frame = session.createDataFrame(_table(roster, by_number=by_number))
            if len(roster) > BROADCAST:
                frame = frame.repartition("member")
            self._frame = frame.persist() if self._kept else frame
            self._roster, self._by_number = roster, by_number
        return self._frame if len(roster) > BROADCAST else self._frame.hint("broadcast")

    def release(self) -> None:
        """Let Spark forget it."""
        if self._frame is not None and self._kept:
            self._frame.unpersist()
        self._roster = self._frame = None


def _table(roster: Roster, *, by_number: bool) -> pyarrow.Table:
    ids, classes = roster.ids, roster.classes.astype(np.int32)
    if by_number:
        assert not isinstance(ids, Spelled), "a numbered roster has numbers"
        return pyarrow.table({"member": ids.astype(np.int64), "class": classes})
    return pyarrow.table({"member": pyarrow.chunked_array(_texts(ids), type=pyarrow.string()), "class": classes})


def _texts(ids: npt.NDArray[Any] | Spelled) -> list[pyarrow.Array]:
    """Ids as Arrow text, without a Python string for each where they are in a buffer."""
    if isinstance(ids, Spelled):
        parts = (ids.where(slice(start, start + _AT_ONCE)).tight() for start in range(0, len(ids), _AT_ONCE))
        return [_spelled(part) for part in parts]
    if ids.dtype.kind in "iu":
        return [pyarrow.array(ids).cast(pyarrow.string())]
    return [pyarrow.array([str(value) for value in Labels.of(ids).values()], type=pyarrow.string())]


def _spelled(texts: Spelled) -> pyarrow.Array:
    offsets = np.concatenate(([0], np.cumsum(texts.sizes))).astype(np.int32)
    return pyarrow.StringArray.from_buffers(
        len(texts), pyarrow.py_buffer(offsets), pyarrow.py_buffer(np.ascontiguousarray(texts.data))
    )
