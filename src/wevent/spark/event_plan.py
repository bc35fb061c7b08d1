"""From a DataFrame of events to each user's last cell of each slot: what batch and streaming have in common.

Everything is Spark's own expressions: no row passes through Python, and none can end the query.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType
from pyspark.sql.window import Window

from wevent.counting.counts import Rejected
from wevent.errors import InvalidSettings
from wevent.spark.identities import CellPlaces, identities
from wevent.spark.instants import instants, slot_number
from wevent.streams.clock import SlotClock
from wevent.streams.files.inputs import require_columns
from wevent.streams.stream_settings import StreamSettings
from wevent.streams.uncounted import MALFORMED, Uncounted

COUNTS = 0
REASONS = ("no_record", "no_user", "no_cell", "no_time", "no_offset", "before", "after", "unknown_cell")
"""Why an event does not count, in the names of `wevent.streams.uncounted`; reason i + 1 stands for the i-th of them."""
WHY = {name: place for place, name in enumerate(REASONS, start=1)}
"""The number of each reason."""
_MOST_MOMENTS = 1 << 62


class EventPlan:
    """How events are read and folded.

    Args:
        settings: columns, times, cells and k.
        clock: when slots begin.

    Raises:
        InvalidSettings: for settings that only an input with an order can have, or slots too long for Spark's numbers.
    """

    def __init__(self, settings: StreamSettings, clock: SlotClock) -> None:
        self._settings, self._clock = settings, clock
        self._places = CellPlaces(settings.cells)
        self._limit = settings.max_cells_per_user
        if settings.slot_column is not None:
            raise InvalidSettings(
                "times, for Spark",
                "slot_column",
                "Rows in Spark have no order, so which event of a slot came last is not known: give a column of times.",
                key="slot_column",
            )
        if clock.length_us * len(settings.cells) >= _MOST_MOMENTS:
            raise InvalidSettings(
                "slots × cells that Spark can number",
                f"slots of {clock.length_us // 1_000_000:,} s and {len(settings.cells):,} cells",
                "Declare shorter slots or fewer cells.",
                key="slot",
            )

    def read(self, events: DataFrame, last: Column, now_us: Column | None = None) -> DataFrame:
        """Every event as user, slot, since (µs into its slot), place, and why it does not count (0: it does).

        Args:
            events: with the columns that the settings name.
            last: the last slot an event may lie in; it may be made of the column `now_us`.
            now_us: when its batch began, in columns of the events; to be kept.

        Raises:
            InvalidInput, InvalidEvents: for columns that are missing or of other types.
        """
        clock, names = self._clock, self._settings.columns
        raw, kinds = _chosen(events, names, now_us)
        micros, unzoned = instants(F.col("raw_time"), kinds["time"], self._settings)
        users = identities(F.col("raw_user"), kinds["user"], names["user"])
        labels = identities(F.col("raw_cell"), kinds["cell"], names["cell"])
        rows = self._places.found(raw.withColumns({"user": users.labels, "micros": micros}), labels)
        slot = slot_number(F.col("micros"), clock.origin_us, clock.length_us)
        no_time = F.when(unzoned, WHY["no_offset"]).otherwise(WHY["no_time"])
        why = F.when(F.col("user").isNull(), WHY["no_user"]).when(labels.labels.isNull(), WHY["no_cell"])
        why = why.when(F.col("micros").isNull(), no_time).when(slot < 1, WHY["before"]).when(slot > last, WHY["after"])
        why = why.when(F.col("place").isNull(), WHY["unknown_cell"]).otherwise(COUNTS)
        since = F.pmod(F.col("micros") - F.lit(clock.origin_us), F.lit(clock.length_us))
        kept = [F.col(name) for name in raw.columns if name == "now_us"]
        return rows.select("user", slot.alias("slot"), since.alias("since"), "place", why.alias("why"), *kept)

    def moment(self) -> Column:
        """What is largest of a user's last event: its time with one cell; with several the time in each of them."""
        if self._limit == 1:  # of equal times the cell declared last wins, as live
            return F.col("since") * F.lit(len(self._settings.cells)) + F.col("place")
        return F.col("since")

    def keys(self, slot: str) -> list[str]:
        """What is folded into one row."""
        return [slot, "user"] if self._limit == 1 else [slot, "user", "place"]

    def fold(self, rows: DataFrame, slot: str = "slot") -> DataFrame:
        """Rows with a moment, folded: the last one of each of `keys`, and how many events there were."""
        folded = [F.max("moment").alias("moment"), F.count(F.lit(1)).alias("events")]
        return rows.groupBy(*self.keys(slot)).agg(*folded)

    def last_cells(self, folded: DataFrame) -> DataFrame:
        """slot, user, place and events, a row for each of a user's last k cells of a slot."""
        if self._limit == 1:
            place = F.pmod(F.col("moment"), F.lit(len(self._settings.cells)))
            return folded.select("slot", "user", place.alias("place"), "events")
        newest = Window.partitionBy("slot", "user").orderBy(F.desc("moment"), F.desc("place"))
        ranked = folded.withColumn("rank_", F.row_number().over(newest))
        kept = F.when(F.col("rank_") <= self._limit, F.col("place"))  # the others' events count as events all the same
        return ranked.select("slot", "user", kept.alias("place"), "events")


def tally() -> list[Column]:
    """How many rows there are, and how many of them do not count for each of `REASONS`; of rows that were `read`."""
    reasons = [F.count_if(F.col("why") == place).alias(name) for name, place in WHY.items()]
    return [F.count(F.lit(1)).alias("rows"), *reasons]


def note_tally(uncounted: Uncounted, found: Mapping[str, int]) -> None:
    """Add what `tally` says to the operator's totals."""
    malformed = [found[name] for name in MALFORMED]
    uncounted.events += found["rows"] - sum(malformed)
    uncounted.malform(malformed)
    uncounted.outside(found["before"], found["after"])
    uncounted.reject(Rejected(unknown_cell=found["unknown_cell"]))


def _chosen(
    events: DataFrame, names: Mapping[str, str], now_us: Column | None
) -> tuple[DataFrame, dict[str, DataType]]:
    """The columns that the settings name, and nothing else, as raw_time, …; and their types.

    By place: names of a frame are the user's. They may have dots and backticks in them, differ by case alone, or be what
    columns are called in here.
    """
    require_columns("the DataFrame", events.columns, list(names.values()))
    places = {role: events.columns.index(name) for role, name in names.items()}
    more = [] if now_us is None else [now_us]
    numbered = events.select("*", *more).toDF(*map(str, range(len(events.columns) + len(more))))
    raw = [F.col(str(place)).alias(f"raw_{role}") for role, place in places.items()]
    raw += [F.col(str(len(events.columns))).alias("now_us") for _ in more]
    return numbered.select(*raw), {role: events.schema.fields[place].dataType for role, place in places.items()}
