"""Spark: the same loop and journal, fed by Structured Streaming; Spark counts, and the step sees class × cell only.

It needs pyspark (`pip install 'wevent[spark]'`) and Java 17 or 21. A name is imported when it is first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from wevent.spark.dependencies import require_pyspark

if TYPE_CHECKING:
    from wevent.spark.class_counts import count
    from wevent.spark.starting import publish
    from wevent.spark.streaming_query import SparkPublication

__all__ = ["SparkPublication", "count", "publish"]

_HOME_OF = {
    "SparkPublication": "wevent.spark.streaming_query",
    "count": "wevent.spark.class_counts",
    "publish": "wevent.spark.starting",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'wevent.spark' has no attribute {name!r}")
    require_pyspark()
    found = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return list(__all__)
