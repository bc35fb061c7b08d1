"""Columns of ids and cell labels, whatever their types; compared as text, as everywhere (`wevent.counting.lookup`)."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from wevent.core.limits import MAX_LABEL_BYTES
from wevent.counting.cells import Cells
from wevent.counting.lookup import Labels
from wevent.errors import InvalidInput

_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_CANONICAL = r"^(0|[1-9][0-9]{0,17})\z"


class Identities(NamedTuple):
    """A column of ids or labels.

    Attributes:
        labels: BIGINT or STRING, NULL for what can be none.
        numbered: whether it is BIGINT.
    """

    labels: Column
    numbered: bool


def identities(column: Column, kind: T.DataType, name: str) -> Identities:
    """Ids or labels from a column of this type.

    Args:
        column: the column.
        kind: its type.
        name: what it is called.

    Raises:
        InvalidInput: for a type that is neither numbers nor text.
    """
    if isinstance(kind, _WHOLE):
        return Identities(column.cast("bigint"), True)
    if isinstance(kind, (T.FloatType, T.DoubleType)):  # a frame column with gaps
        number = column.cast("double")
        whole = ~F.isnan(number) & (number == F.rint(number)) & (F.abs(number) < F.lit(9e15))  # floor fails at infinity
        return Identities(F.when(whole, number.try_cast("bigint")), True)
    if isinstance(kind, T.StringType):
        text = column.cast("string")  # in the binary collation, whatever it had
        legal = F.octet_length(text).between(1, MAX_LABEL_BYTES) & F.is_valid_utf8(text)
        return Identities(F.when(legal & ~F.contains(text, F.expr("chr(0)")), text), False)
    if isinstance(kind, (T.BooleanType, T.DecimalType)):
        return Identities(column.cast("string"), False)
    raise InvalidInput(
        f"a column {name!r} of ids or labels: numbers or text",
        f"the type {kind.simpleString()[:40]}",
        "Convert the column (binary as of Kafka: cast it to string), or name another one.",
        path=None,
        column=name,
    )


class CellPlaces:
    """Finds the place of each label among the declared cells.

    Args:
        cells: the declared cells.
    """

    def __init__(self, cells: Cells) -> None:
        self._cells = cells

    def found(self, rows: DataFrame, labels: Identities) -> DataFrame:
        """The rows with one more column, `place`: BIGINT, NULL for an undeclared cell."""
        if self._cells.numbered:
            return rows.withColumn("place", self._numbered(labels))
        table = self._table(rows.sparkSession).hint("broadcast")
        joined = rows.withColumn("label_", labels.labels.cast("string"))
        return joined.join(table, joined["label_"] == table["declared_"], "left").drop("label_", "declared_")

    def _numbered(self, labels: Identities) -> Column:
        number = labels.labels
        if not labels.numbered:
            number = F.when(number.rlike(_CANONICAL), number.try_cast("bigint"))
        return F.when(number.between(0, len(self._cells) - 1), number)

    def _table(self, session: SparkSession) -> DataFrame:
        labels = [str(label) for label in Labels.of(list(self._cells)).values()]  # 2.0 is "2", as everywhere
        return session.createDataFrame(pyarrow.table({"declared_": labels, "place": range(len(labels))}))
